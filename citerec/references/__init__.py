"""Works on an author's file of references: checks it against a corpus, adds papers to it."""
