"""One paper of a file, and its conversion to a query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.errors import BadInputError, InvalidValueError
from citerec.text import one_line
from citerec.types import MAX_ABSTRACT, MAX_TITLE, Query, QueryKind

_FOUR_DIGITS = re.compile(r"(?<![0-9])[1-9][0-9]{3}(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One paper of a file, with unchecked values."""

    number: int  # from 1: its line; in a JSON list, its position
    line: int | None  # where it starts, from 1; None in a JSON list
    key: str = ""  # its name in the file, outside its fields
    type: str = ""  # of an entry of BibTeX, in lower case
    label: str = ""  # its name in messages; empty if the line is enough
    fields: Mapping[str, Any]

    def error(self, name: Path | str, message: str) -> BadInputError:
        """Return the error for a fault in this record of the file `name`."""
        full_message = f"{self.label}: {message}" if self.label else message
        return BadInputError(name, full_message, line=self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The fields of a record as a format read them; `id` is empty if the record has none."""

    record: Record
    id: str
    title: str
    abstract: str
    year: int | None
    authors: tuple[str, ...]
    venue: str
    doi: str = ""  # bare
    context: str = ""  # the sentence that needs references


def first_year(text: str) -> int | None:
    """Return the first group of four digits in a date such as `c. 2019` or `2019/05`; None if there is none."""
    match = _FOUR_DIGITS.search(text)
    return int(match[0]) if match else None


def to_query(draft: Draft, name: Path | str, default_id: str) -> Query:
    """Validate `draft` and make a query of it.

    Raises:
        BadInputError: If a text is too long, or `Query` refuses it: for an empty title, a control character in its id
            or an invalid year.
    """
    query_id = draft.id.strip() or default_id
    title, abstract = one_line(draft.title), one_line(draft.abstract)
    context = one_line(draft.context)
    lengths = (
        ("title", title, MAX_TITLE),
        ("abstract", abstract, MAX_ABSTRACT),
        ("context", context, MAX_TITLE),
    )
    for field, value, most in lengths:
        if len(value) > most:
            fault = f"the {field} has {len(value):,} characters; expected at most {most:,}"
            advice = "put the title on a line or in a field by itself"
            raise draft.record.error(name, f"{fault}; {advice}")
    try:
        return Query(
            id=query_id,
            title=title or context,
            abstract=abstract,
            year=draft.year,
            authors=tuple(filter(None, map(one_line, draft.authors))),
            venue=one_line(draft.venue),
            named=bool(draft.id.strip()),
            doi=draft.doi,
            context=context if title else "",
            kind=QueryKind.SENTENCE if context and not title else QueryKind.DRAFT,
        )
    except InvalidValueError as error:
        raise draft.record.error(name, error.fault) from error
