"""What reproduces papers: rows of results tables, datasets of the literature, SciDocs; the audit of an evaluation.

Nothing imports it but `citerec.cli`.
"""
