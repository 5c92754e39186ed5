"""Training of word-vector encoders: the baselines without a transformer."""
