"""Papers and drafts to vectors: opens a SPECTER-like encoder and runs it fast."""
