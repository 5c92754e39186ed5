"""Papers as RIS; rispy reads a record, we find where each begins."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any

from citerec.query.doi import doi_of
from citerec.query.record import Draft, Record, first_year

_START = re.compile(r"^TY  -(?= |$)", re.MULTILINE)
_ONE_SPACE = re.compile(r"^([A-Z][A-Z0-9]) -(?= |$)", re.MULTILINE)
_TITLES = ("title", "primary_title")
_ABSTRACTS = ("abstract", "notes_abstract")
_YEARS = ("year", "publication_year", "date")
_AUTHORS = ("authors", "first_authors")
_VENUES = ("journal_name", "secondary_title", "alternate_title3", "alternate_title2")


def read_records(text: str) -> list[Record]:
    """Read every record of a RIS file; one that nobody ended counts, too."""
    if not _START.search(text):  # some programs write one space before the dash
        text = _ONE_SPACE.sub(r"\1  -", text)
    before, *records = _START.split(text)
    lines = accumulate((part.count("\n") for part in records[:-1]), initial=before.count("\n") + 1)
    return [_record(f"TY  -{rest}", line) for rest, line in zip(records, lines, strict=True)]


def _record(text: str, line: int) -> Record:
    rispy: Any = import_module("rispy")  # it has no types
    # rispy drops a record without an end; a second end does no harm.
    whole = _joined(f"{text}\nER  - \n", frozenset(rispy.RisParser.DEFAULT_LIST_TAGS))
    found: list[dict[str, Any]] = rispy.loads(whole, skip_unknown_tags=True)
    title = first_text(found[0], _TITLES)
    label = f"record {title[:60]!r}" if title else "this record"
    return Record(number=line, line=line, label=label, fields=found[0])


def _joined(text: str, list_tags: frozenset[str]) -> str:
    """Return a record with each value on one line; rispy needs quadratic time for those of many lines.

    The further lines of a tag of `list_tags` stay: each is a value of its own.
    """
    values: list[list[str]] = []
    tag = ""
    for line in text.split("\n"):
        if line[2:5] == "  -" and line[:2].isupper() and line[:1].isalpha():  # as rispy has it
            tag = line[:2] if values else ""  # what follows TY is passed over
            values.append([line])
        elif not tag or tag in list_tags:
            values.append([line])
        elif line.strip():
            values[-1].append(line.strip())
    return "\n".join(" ".join(lines) for lines in values)


def first_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of the named fields that holds text, a list joined; else an empty string."""
    for name in names:
        value: Any = fields.get(name, "")
        if text := value if isinstance(value, str) else " ".join(value):
            return text
    return ""


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the papers of a RIS file; any text that has a `TY` line can be read."""
    return [_draft(record) for record in read_records(text)]


def _draft(record: Record) -> Draft:
    fields = record.fields
    return Draft(
        record=record,
        id=first_text(fields, ("id",)),
        title=record_title(record),
        abstract=first_text(fields, _ABSTRACTS),
        year=record_year(record),
        authors=record_authors(record),
        venue=first_text(fields, _VENUES),
        doi=next(iter(record_dois(record)), ""),
    )


def record_dois(record: Record) -> tuple[str, ...]:
    """Return the DOIs that a record states, in its field for them or as a link."""
    values = (first_text(record.fields, (name,)) for name in ("doi", "urls"))
    return tuple(filter(None, map(doi_of, values)))


def record_title(record: Record) -> str:
    """Return the title of a record, wherever its program put that."""
    return first_text(record.fields, _TITLES)


def record_year(record: Record) -> int | None:
    """Return the year that a record states, if any."""
    return first_year(first_text(record.fields, _YEARS))


def record_authors(record: Record) -> tuple[str, ...]:
    """Return the authors that a record states, each as `First Last`."""
    fields = record.fields
    people: Sequence[str] = next((fields[n] for n in _AUTHORS if fields.get(n)), ())
    return tuple(map(_given_first, people))


def _given_first(name: str) -> str:
    """Turn `Last, First, Jr.` into `First Last Jr.`."""
    last, *rest = (part.strip() for part in name.split(","))
    return " ".join([*rest[:1], last, *rest[1:]])
