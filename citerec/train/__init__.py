"""Training of the models on the citations of an index."""
