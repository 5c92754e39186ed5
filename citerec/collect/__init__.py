"""Fetches a corpus from OpenAlex or Semantic Scholar: the papers around a list of references.

resolve (references -> works) -> snowball (what they cite, and what cites them) -> run (canonical JSONL). Only ids and
titles of the references are sent. Nothing below the command line imports this package.
"""
