"""The vectors of an index: one faiss file, written as a stream, memory-mapped and searched."""
