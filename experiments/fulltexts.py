"""Reads JSON lines, and the introductions of whole texts as `../shared/data/biomed/FULLTEXT.md` describes them."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from citerec.drafts.context import without_markers
from citerec.drafts.sentences import LEAST_WORDS
from citerec.text import word_count


def lines_of(file: Path) -> Iterator[Any]:
    """Yield the values of a file of JSON lines."""
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
        yield from map(orjson.loads, stream)


def introductions(file: Path) -> dict[str, tuple[str, ...]]:
    """Return the sentences of the first section of each article by its id, without citation markers."""
    found = dict[str, tuple[str, ...]]()
    for article in lines_of(file):
        texts = (
            without_markers(sentence["text"])
            for sentence in article["sentences"]
            if sentence["section"] == 0
        )
        found[article["id"]] = tuple(t for t in texts if word_count(t) >= LEAST_WORDS)
    return found
