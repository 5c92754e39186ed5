"""Builds the parts of an index: `bm25`."""
