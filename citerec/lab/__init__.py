"""What reproduces papers: rows of results tables, datasets of the literature, SciDocs.

Nothing imports it but `citerec.cli`.
"""
