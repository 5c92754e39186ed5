"""Reads corpora (`readers`, `collect`) and stores them in an index (`papers`, `graph`, `splits`)."""
