"""Builds and opens the parts of an index: Lucene's index, its postings, vectors."""
