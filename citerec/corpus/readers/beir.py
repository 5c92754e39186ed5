"""BEIR: `corpus.jsonl` with `_id title text`, next to it `queries.jsonl` and `qrels/<split>.tsv`.

A year, authors and references are taken from `metadata` where it has them (as SciDocs' does).
Source: Thakur et al., NeurIPS 2021.
"""

from collections.abc import Mapping
from typing import Any

from citerec.corpus.readers.fields import Fields
from citerec.types import Paper


def matches(keys: Mapping[str, object]) -> bool:
    """Whether records with these keys are of this format."""
    return "_id" in keys and "text" in keys


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    metadata: Any = fields.record.get("metadata") or {}
    if not isinstance(metadata, dict):
        fields.fail("'metadata' must be an object")
    more = Fields(metadata, fields.path, fields.line)
    return Paper(
        id=fields.id("_id"),
        title=fields.title() if "title" in fields.record else "",
        abstract=fields.text("text"),
        year=more.year(),
        authors=more.names("authors"),
        venue=more.text("venue"),
        citations=more.strings("references"),
        **more.bibliographic(),
    )
