"""What NumPy leaves to torch."""


class UnsupportedError(Exception):
    """A model that is not run by NumPy exactly as transformers runs it; the message says why."""
