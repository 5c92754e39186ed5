"""Encoders of BERT's architecture run by NumPy: they run slower than with torch, but open in a tenth of a second.

They are meant for commands of a few queries, which would spend most of their time importing torch and transformers.
"""


class UnsupportedError(Exception):
    """NumPy cannot run a model exactly as transformers runs it; the message is the reason."""
