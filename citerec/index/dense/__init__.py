"""The vectors of an index: one faiss file, written as a stream, mapped into memory, searched."""
