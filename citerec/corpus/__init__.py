"""Reads corpora (`readers`) and stores them in an index (`papers`, `graph`, `splits`)."""
