"""Learning to rank: candidate expansion by the citation graph, features, the model, and reasons as text."""
