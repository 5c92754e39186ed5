"""Holds rankings against what papers truly cite: the protocol, the metrics, the report."""
