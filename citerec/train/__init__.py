"""Training of the models, on an index's own citations."""
