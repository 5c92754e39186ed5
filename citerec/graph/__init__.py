"""The citation graph as it was known at a time."""
