"""The second stage: a cross-encoder reads query and candidate together, and scores whether to cite the candidate."""
