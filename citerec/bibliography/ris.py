"""Reads papers from RIS; rispy parses a record, and this module finds where records begin."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

from citerec.bibliography.keys import doi_of
from citerec.bibliography.preprint import is_preprint
from citerec.bibliography.record import Draft, Record, first_year

_START = re.compile(r"^TY  -(?= |$)", re.MULTILINE)
_ONE_SPACE = re.compile(r"^([A-Z][A-Z0-9]) -(?= |$)", re.MULTILINE)
_TITLES = ("title", "primary_title")
ABSTRACTS = ("abstract", "notes_abstract")
_YEARS = ("year", "publication_year", "date")
_AUTHORS = ("authors", "first_authors")
VENUES = ("journal_name", "secondary_title", "alternate_title3", "alternate_title2")


def read_records(text: str) -> list[Record]:
    """Read every record of a RIS file; a record without an end tag is read, too."""
    if not _START.search(text):  # some programs write one space before the dash
        text = _ONE_SPACE.sub(r"\1  -", text)
    preamble, *records = _START.split(text)
    lines = accumulate((part.count("\n") for part in records), initial=preamble.count("\n") + 1)
    # not strict: the last line is where a next record would begin
    return [_record(f"TY  -{rest}", line) for rest, line in zip(records, lines, strict=False)]


def _record(text: str, line: int) -> Record:
    rispy: Any = import_module("rispy")  # it has no types
    # rispy drops a record without an end tag; a second one has no effect.
    complete = _joined(f"{text}\nER  - \n", frozenset(rispy.RisParser.DEFAULT_LIST_TAGS))
    parsed: list[dict[str, Any]] = rispy.loads(complete, skip_unknown_tags=True)
    title = first_text(parsed[0], _TITLES)
    label = f"record {title[:60]!r}" if title else "this record"
    return Record(number=line, line=line, label=label, fields=parsed[0])


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


def first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of the named fields that has text, with lists joined; else an empty string."""
    for name in names:
        value: Any = fields.get(name, "")
        if text := value if isinstance(value, str) else " ".join(value):
            return text
    return ""


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the papers of a RIS file; every text with a `TY` line can be read."""
    return [_draft(record) for record in read_records(text)]


def _draft(record: Record) -> Draft:
    fields = record.fields
    return Draft(
        record=record,
        id=first_text(fields, ("id",)),
        title=record_title(record),
        abstract=first_text(fields, ABSTRACTS),
        year=record_year(record),
        authors=record_authors(record),
        venue=first_text(fields, VENUES),
        doi=next(iter(record_dois(record)), ""),
    )


def record_dois(record: Record) -> tuple[str, ...]:
    """Return the DOIs in the DOI field and the URL field of a record."""
    values = (first_text(record.fields, (name,)) for name in ("doi", "urls"))
    return tuple(filter(None, map(doi_of, values)))


def record_title(record: Record) -> str:
    """Return the title of a record, from any of the fields that programs use for it."""
    return first_text(record.fields, _TITLES)


def record_year(record: Record) -> int | None:
    """Return the year of a record; None if it has none."""
    return first_year(first_text(record.fields, _YEARS))


def record_authors(record: Record) -> tuple[str, ...]:
    """Return the authors of a record, each as `First Last`."""
    fields = record.fields
    people: Sequence[str] = next((fields[n] for n in _AUTHORS if fields.get(n)), ())
    return tuple(map(_first_last, people))


def is_preprint_record(record: Record) -> bool:
    """Whether a record is a preprint: one that is unpublished is, unless it names a journal or proceedings."""
    kind = first_text(record.fields, ("type_of_reference",)).lower()
    remarks = [first_text(record.fields, (name,)) for name in ("publisher", "note", "notes")]
    addresses = [first_text(record.fields, (name,)) for name in ("doi", "urls")]
    return is_preprint(kind, first_text(record.fields, VENUES), remarks, addresses)


def _first_last(name: str) -> str:
    """Turn `Last, First, Jr.` into `First Last Jr.`."""
    last, *rest = (part.strip() for part in name.split(","))
    return " ".join([*rest[:1], last, *rest[1:]])
