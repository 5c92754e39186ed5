"""Training of the cross-encoder: a query and what it cites belong together."""
