"""CSL-JSON libraries, as Zotero, Mendeley and Pandoc write them; CSL has no references of a paper."""

import re
from typing import Any, BinaryIO, cast

from citerec.bibliography.json_entries import Item, to_entry
from citerec.corpus.readers.fields import (
    NO_CITATIONS,
    Fields,
    library_paper,
)
from citerec.corpus.readers.files import Rows, head_text
from citerec.corpus.readers.json_stream import json_records as objects_of
from citerec.errors import BadInputError
from citerec.types import Paper

NOTE = NO_CITATIONS
_KEYS = frozenset({"issued", "container-title"})
_KEY = re.compile(r'"([A-Za-z_-]+)"\s*:')
_NOT_CSL = frozenset({"_id", "year", "authors", "citations", "authorships", "paperAbstract"})


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: JSON objects with a title and keys of CSL, but none of other corpora."""
    text = head_text(head).lstrip()
    if not text.startswith(("[", "{")):
        return False
    keys = set(_KEY.findall(text[:16_000]))
    is_csl = not keys.isdisjoint(_KEYS) or keys >= {"author", "family"}
    return "title" in keys and is_csl and keys.isdisjoint(_NOT_CSL)


def records(stream: BinaryIO) -> Rows:
    """Yield the items of one file: a list, or one object after another."""
    return objects_of(stream)


def read(fields: Fields) -> Paper:
    """Turn one item into a paper."""
    item = fields.of({key: _single(value) for key, value in fields.record.items()})
    try:
        entry = to_entry(Item(fields.line, fields.line, item.record), fields.path)
    except BadInputError as error:
        fields.fail(error.message)
    more = item.bibliographic(doi="DOI", url="URL", pages="page")
    return library_paper(
        fields,
        ids=[entry.key, *entry.dois],
        title=entry.title,
        abstract=entry.abstract,
        year=entry.year,
        authors=entry.authors,
        venue=entry.venue,
        **more | {"doi": next(iter(entry.dois), "")},
    )


def _single(value: Any) -> Any:
    """Return the text of a list of texts, as Crossref writes titles."""
    if isinstance(value, list) and len(value := cast("list[Any]", value)) > 0:
        return value[0] if all(isinstance(part, str) for part in value) else value
    return value
