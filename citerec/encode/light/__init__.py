"""Encoders of BERT's architecture run by NumPy: slower than torch at work, but open in a tenth of a second.

For commands of a few queries, which would spend most of their time on importing torch and transformers.
"""
