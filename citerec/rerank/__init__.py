"""The second stage: a cross-encoder reads query and candidate together, and says whether one should cite the other."""
