"""Which papers of a corpus a text, a list or a bibliography names."""
