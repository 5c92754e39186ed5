"""Rows of results tables: read from their files, run, written to tables."""
