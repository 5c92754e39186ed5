"""The error for models that NumPy does not run, and torch does."""


class UnsupportedError(Exception):
    """NumPy cannot run a model exactly as transformers runs it; the message is the reason."""
