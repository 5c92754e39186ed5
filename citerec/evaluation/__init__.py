"""Evaluation of rankings against citations: the protocol, the metrics, the report."""
