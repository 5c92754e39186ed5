"""Encoders without a transformer: word vectors (summed, propagated or inferred), and random vectors."""
