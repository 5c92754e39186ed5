"""Training of the cross-encoder on citations: a query and a cited paper get a high score."""
