"""Training of the learning-to-rank model: queries, features of their candidates, boosted trees, the model folder."""
