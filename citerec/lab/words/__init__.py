"""Encoders that need no transformer: word vectors, summed, propagated or inferred, and random ones."""
