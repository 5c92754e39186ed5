"""Trains encoders of words: the baselines that need no transformer."""
