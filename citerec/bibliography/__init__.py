"""Bibliography formats: BibTeX, RIS and JSON read into records; the keys by which ids, DOIs and titles are compared."""
