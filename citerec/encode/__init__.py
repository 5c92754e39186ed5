"""Turns papers and drafts into vectors: opens a SPECTER-like encoder and runs it."""
