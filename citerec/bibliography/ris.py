"""Reads papers from RIS; rispy parses a record, and this module finds where records begin."""

import re
from collections.abc import Mapping
from importlib import import_module
from itertools import accumulate
from typing import Any

from citerec.bibliography.entry import Entry, Record, first_year, is_preprint
from citerec.bibliography.keys import doi_of

_START = re.compile(r"^TY  -(?= |$)", re.MULTILINE)
_ONE_SPACE = re.compile(r"^([A-Z][A-Z0-9]) -(?= |$)", re.MULTILINE)
_TITLES = ("title", "primary_title")
_VENUES = ("journal_name", "secondary_title", "alternate_title3", "alternate_title2")


def read_records(text: str) -> list[Record]:
    """Read every record of a RIS file; a record without an end tag is read, too."""
    if not _START.search(text):  # some programs write one space before the dash
        text = _ONE_SPACE.sub(r"\1  -", text)
    preamble, *records = _START.split(text)
    lines = accumulate((part.count("\n") for part in records), initial=preamble.count("\n") + 1)
    # not strict: the last line is where a next record would begin
    return [
        Record(line, _fields(f"TY  -{rest}")) for rest, line in zip(records, lines, strict=False)
    ]


def _fields(text: str) -> dict[str, Any]:
    rispy: Any = import_module("rispy")  # it has no types
    # rispy drops a record without an end tag; a second one has no effect
    complete = _joined(f"{text}\nER  - \n", frozenset(rispy.RisParser.DEFAULT_LIST_TAGS))
    return rispy.loads(complete, skip_unknown_tags=True)[0]


def _joined(text: str, list_tags: frozenset[str]) -> str:
    """Return a record with each value on one line: rispy needs quadratic time for values of many lines.

    Further lines of a tag of `list_tags` stay separate: each is a value.
    """
    values: list[list[str]] = []
    tag = ""
    for line in text.split("\n"):
        # rispy's rule for tags
        if line[2:5] == "  -" and line[:2].isupper() and line[:1].isalpha():
            tag = line[:2] if values else ""  # lines after TY are skipped
            values.append([line])
        elif not tag or tag in list_tags:
            values.append([line])
        elif line.strip():
            values[-1].append(line.strip())
    return "\n".join(" ".join(lines) for lines in values)


def first_text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of the named fields that has text, with lists joined; else an empty string."""
    for name in names:
        value: Any = fields.get(name, "")
        if text := value if isinstance(value, str) else " ".join(value):
            return text
    return ""


def to_entry(record: Record) -> Entry:
    """Return a record as an entry; one that is unpublished and names no venue is a preprint."""

    def text(*names: str) -> str:
        return first_text(record.fields, *names)

    title, venue, doi, url = text(*_TITLES), text(*_VENUES), text("doi"), text("urls")
    dois = tuple(filter(None, map(doi_of, (doi, url))))
    ids = (text("id"), text("accession_number"), doi, doi_of(url))
    people = next(
        (record.fields[n] for n in ("authors", "first_authors") if record.fields.get(n)), ()
    )
    remarks = map(text, ("publisher", "note", "notes"))
    return Entry(
        ids=tuple(filter(None, map(str.strip, ids))),
        title=title,
        abstract=text("abstract", "notes_abstract"),
        year=first_year(text("year", "publication_year", "date")),
        authors=tuple(map(_first_last, people)),
        venue=venue,
        key=text("id").strip(),
        dois=dois,
        is_preprint=is_preprint(text("type_of_reference").lower(), venue, remarks, (doi, url)),
        line=record.line,
        label=f"record {title[:60]!r}" if title else "this record",
    )


def _first_last(name: str) -> str:
    """Turn `Last, First, Jr.` into `First Last Jr.`."""
    last, *rest = (part.strip() for part in name.split(","))
    return " ".join([*rest[:1], last, *rest[1:]])
