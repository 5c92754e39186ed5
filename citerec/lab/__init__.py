"""What reproduces papers: rows of results tables, datasets of the literature, SciDocs, encoders of words, NNSelect.

Nothing imports it but `citerec.cli`; encoders and systems of this package are found by their entry points.
"""
