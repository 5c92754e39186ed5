"""Builds indexes, their vectors, and corpora."""
