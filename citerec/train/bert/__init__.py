"""BERT on a CPU, faster in training than the modules of transformers: the same weights, the same function."""
