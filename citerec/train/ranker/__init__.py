"""Training the final ranker: which queries, the features of their pools, boosted trees, the model folder."""
