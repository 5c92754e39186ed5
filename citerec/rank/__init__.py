"""The last word: what the citation graph says of candidates, features of each, a learned ranker, reasons in words."""
