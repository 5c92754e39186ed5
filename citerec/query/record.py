"""One paper as its file gives it, and the checks that make a query of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.corpus.readers.fields import MAX_ABSTRACT, MAX_TITLE
from citerec.errors import BadInputError, InvalidValueError
from citerec.types import Query

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FOUR_DIGITS = re.compile(r"(?<![0-9])[1-9][0-9]{3}(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One paper of a file, its values not checked yet."""

    number: int  # from 1: its line; inside a JSON list, its place there
    line: int | None  # where it starts, from 1; None inside a JSON list
    key: str = ""  # what its file calls it, outside its fields
    label: str = ""  # what a message calls it; empty if its line says enough
    fields: Mapping[str, Any]

    def error(self, name: Path | str, message: str) -> BadInputError:
        """Return the error that says what is wrong with this record of the file `name`."""
        shown = f"{self.label}: {message}" if self.label else message
        return BadInputError(name, shown, line=self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a format understood of a record: text as found, an empty `id` where it has none."""

    record: Record
    id: str
    title: str
    abstract: str
    year: int | None
    authors: tuple[str, ...]
    venue: str
    doi: str = ""  # bare


def one_line(text: str) -> str:
    """Return `text` with every run of white space and control characters as one space."""
    return " ".join(_CONTROL.sub(" ", text).split())


def first_year(text: str) -> int | None:
    """Return the first group of four digits in a date such as `c. 2019` or `2019/05`, if any."""
    found = _FOUR_DIGITS.search(text)
    return int(found[0]) if found else None


def to_query(draft: Draft, name: Path | str, default_id: str) -> Query:
    """Check `draft` and make a query of it.

    Raises:
        BadInputError: If it is too long, or `Query` refuses it: for an empty title, a control character in its id or
            an impossible year.
    """
    query_id = draft.id.strip() or default_id
    title, abstract = one_line(draft.title), one_line(draft.abstract)
    for what, value, most in (("title", title, MAX_TITLE), ("abstract", abstract, MAX_ABSTRACT)):
        if len(value) > most:
            found = f"the {what} has {len(value):,} characters; at most {most:,} are taken"
            advice = "put the title on a line or in a field of its own"
            raise draft.record.error(name, f"{found}; {advice}")
    try:
        return Query(
            id=query_id,
            title=title,
            abstract=abstract,
            year=draft.year,
            authors=tuple(filter(None, map(one_line, draft.authors))),
            venue=one_line(draft.venue),
            named=bool(draft.id.strip()),
            doi=draft.doi,
        )
    except InvalidValueError as error:
        raise draft.record.error(name, error.fault) from error
