"""Finds drafts and references in a corpus: by id, DOI, title, year and authors."""
