"""Reranking: a cross-encoder reads query and candidate together, and scores whether the query should cite it."""
