"""The rules of recommendation, evaluation and training: which papers are eligible, known, held out."""
