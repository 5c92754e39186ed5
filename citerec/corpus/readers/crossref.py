"""Crossref's public data file: JSON lines, or files `{"items": [...]}`; pages of its API have the same list.

The id of a paper is its DOI in lower case, as are its references. Source: https://www.crossref.org/documentation.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from citerec.bibliography.doi import doi_of
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.markup import plain_text
from citerec.corpus.readers.nested import inner, listed, objects, short
from citerec.corpus.readers.streams import Rows
from citerec.errors import shown
from citerec.types import Paper
from citerec.valid import MAX_TITLE

_LIST = re.compile(rb'(?<!\\)"items"\s*:\s*\[')
_OWN_KEYS = {
    "reference-count",
    "references-count",
    "is-referenced-by-count",
    "member",
    "prefix",
    "deposited",
    "content-domain",
}
_DATES = ("issued", "published", "published-print", "published-online")
_TITLE_IS_LIST = re.compile(rb'"title"\s*:\s*\[')


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format."""
    keys = first_keys(head, _LIST)
    if "DOI" not in keys or "id" in keys:
        return False
    return not keys.isdisjoint(_OWN_KEYS) or _TITLE_IS_LIST.search(head) is not None


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file."""
    return json_records(stream, _LIST)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper; journals, issues and the like have no title, and it is empty then."""
    doi = _doi(fields)
    checked = Fields(
        {
            "id": doi.lower(),
            "title": plain_text(_first(fields, "title")),
            "abstract": plain_text(fields.text("abstract")),
            "year": _year(fields),
        },
        fields.path,
        fields.line,
    )
    return Paper(
        id=checked.id(),
        title=checked.title(),
        abstract=checked.text("abstract"),
        year=checked.year(),
        authors=tuple(_authors(fields)),
        venue=plain_text(_first(fields, "container-title")),
        citations=tuple(_references(fields)),
        doi=doi,
        url=short(fields, "URL"),
        type=short(fields, "type"),
        volume=short(fields, "volume"),
        issue=short(fields, "issue"),
        pages=short(fields, "page"),
        publisher=short(fields, "publisher"),
    )


def _doi(fields: Fields) -> str:
    if "DOI" not in fields.record:
        fields.id("DOI")  # raises
    value = fields.record["DOI"]
    if not isinstance(value, str) or not (doi := doi_of(value)):
        fields.fail(f"'DOI' must be a DOI such as 10.1000/182, found {shown(value)}")
    return doi


def _first(fields: Fields, key: str) -> str:
    """Return a text, or the first text of a list; empty if there is none."""
    value = fields.record.get(key)
    if isinstance(value, list):
        value = next((text for text in listed(fields, key) if text is not None), None)
    if value is not None and not isinstance(value, str):
        fields.fail(f"{key!r} must hold a string, found {shown(value)}")
    if value and len(value) > MAX_TITLE:
        fields.fail(f"{key!r} has {len(value):,} characters; expected at most {MAX_TITLE:,}")
    return value or ""


def _year(fields: Fields) -> object:
    """Return the year of the first date that has one, unchecked."""
    for key in _DATES:
        parts = listed(inner(fields, key), "date-parts")
        date = parts[0] if parts else None
        year = date[0] if isinstance(date, list) and date else date
        if year is not None and year != "":
            return year
    return None


def _authors(fields: Fields) -> Iterator[str]:
    for author in objects(fields, "author"):
        parts = [short(author, key) for key in ("given", "family", "suffix")]
        name = " ".join(filter(None, parts)) or short(author, "name") or short(author, "literal")
        if name:
            yield plain_text(name)


def _references(fields: Fields) -> Iterator[str]:
    for reference in objects(fields, "reference"):
        if doi := doi_of(short(reference, "DOI")):
            yield doi.lower()
