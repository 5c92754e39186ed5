"""Fetches a corpus from OpenAlex or Semantic Scholar: the papers around a list of references.

resolve (references -> works) -> snowball (what they cite, and what cites them) -> run (canonical JSONL) -> watch (new
papers for drafts) -> feed. Only ids and titles of the references are sent. The command line and the server import it.
"""
