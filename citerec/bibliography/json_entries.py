"""Reads papers from JSON: one, a list, or one per line; with the keys of citerec, CSL or other corpora."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from citerec.bibliography.entry import Entry, first_year, is_preprint
from citerec.bibliography.keys import doi_of
from citerec.bibliography.markup import plain_text, restored
from citerec.errors import BadInputError, shown

T = TypeVar("T")
_IDS = ("id", "_id", "paperId", "paper_id", "corpusid")
_ADDRESSES = ("doi", "DOI", "url", "URL")
_REMARKS = ("publisher", "genre", "note", "archive", "number")
_CSL = frozenset({"author", "issued", "container-title", "DOI"})
_YEAR = re.compile(r"\s*[1-9][0-9]{3}\s*")


def read_entries(text: str, name: Path | str, *, strict: bool) -> list[Entry]:
    """Read the entries of a file: its one value, the elements of its list, or one value per line.

    Raises:
        BadInputError: If it is not JSON, or, if strict, a value has a wrong type.
    """
    # only \n ends a line, not a U+2028 inside JSON
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    # single lines may be broken
    if len(lines) > 1 and (
        all(line.lstrip().startswith("{") for _, line in lines) or _is_object(lines[0][1])
    ):
        values = ((loads(line, name, line=n), Entry(line=n)) for n, line in lines)
        return [to_entry(value, place, name, strict=strict) for value, place in values]
    value = loads(text, name)
    if not isinstance(value, list):
        return [to_entry(value, Entry(line=lines[0][0]), name, strict=strict)]
    return list_entries(cast("list[Any]", value), name, strict=strict)


def list_entries(values: Sequence[Any], name: Path | str, *, strict: bool) -> list[Entry]:
    """Return the entries of a JSON list, as `read_entries` does."""
    return [
        to_entry(value, Entry(label=f"item {n} of the list"), name, strict=strict)
        for n, value in enumerate(values, start=1)
    ]


def _is_object(line: str) -> bool:
    with suppress(orjson.JSONDecodeError):
        return isinstance(orjson.loads(line), dict)
    return False


def loads(text: str, name: Path | str, *, line: int | None = None) -> Any:
    """Return the value of a text, which may be a line of a file; raise a BadInputError if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = f"this is not valid JSON: {error.msg} (column {error.colno})"
        raise BadInputError(name, message, line=line or error.lineno) from None


def to_entry(item: Any, place: Entry, name: Path | str, *, strict: bool = True) -> Entry:
    """Return an item of the file `name` as an entry, at the line of `place`; unknown keys are ignored.

    If not strict, a value of a wrong type counts as missing, and a string is an id.

    Raises:
        BadInputError: If a value has a wrong type.
    """
    if not isinstance(item, dict):
        if strict:
            raise place.error(name, f"expected an object with a title, found {shown(item)}")
        docid = item.strip() if isinstance(item, str) else ""
        return replace(place, ids=(docid,) if docid else ())
    fields = cast("dict[str, Any]", item)

    def field(keys: str, read: Callable[[Any], T], default: T) -> T:
        """Read the first of some keys that has a value."""
        stated = ((key, fields.get(key)) for key in keys.split())
        key, value = next(((k, v) for k, v in stated if v is not None and v != ""), ("", None))
        try:
            return read(value) if key else default
        except ValueError as error:
            if strict:
                raise place.error(name, f'"{key}" {error}') from None
            return default

    def text(value: Any) -> str:
        return plain_text(_string(value)) if fields.keys() & _CSL else _string(value)

    title = field("title display_name", text, "")
    abstract = field(
        "abstract paperAbstract text abstract_inverted_index",
        lambda value: restored(value) if isinstance(value, dict) else text(value),
        "",
    )
    if not title.strip() and "text" in fields:
        title, abstract = abstract, ""  # a BEIR query is a single text
    addresses = _strings(fields, *_ADDRESSES)
    dois = tuple(filter(None, map(doi_of, addresses)))
    kind = "".join(_strings(fields, "type")[:1]).lower()
    venue = field("venue container-title journal", _venue, "")
    ids = (_id(fields[key]).strip() for key in (*_IDS, "doi", "DOI") if _is_id(fields.get(key)))
    return replace(
        place,
        ids=tuple(filter(None, ids)),
        title=title,
        abstract=abstract,
        year=field("year publication_year issued", _year, None),
        authors=field("authors author authorships", _authors, ()),
        venue=venue,
        key=field(" ".join(_IDS), _id, ""),
        dois=dois,
        context=field("context", text, ""),
        # JSON other than CSL does not state what an item is
        is_preprint=bool(kind or venue)
        and is_preprint(kind, venue, _strings(fields, *_REMARKS), addresses),
    )


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, found {shown(value)}")
    return value


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _id(value: Any) -> str:
    return str(value) if _is_id(value) else _string(value)


def _year(value: Any) -> int | None:
    if isinstance(value, dict):  # a date of CSL: `date-parts`, or a text such as `raw`
        date = cast("dict[str, Any]", value)
        part: Any = date.get("date-parts")
        while isinstance(part, list) and part:  # [[2019, 5]]: the year is first
            part = cast("list[Any]", part)[0]
        texts = _strings(date, "raw", "literal")
        return first_year(str(part) if isinstance(part, (int, str)) else " ".join(texts))
    number = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    digits = str(value).removesuffix(".0") if number else ""
    if not _YEAR.fullmatch(digits):
        raise ValueError(f"must be a year such as 2019, or null; found {shown(value)}")
    return int(digits)


def _authors(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):  # as in the snapshot of arXiv
        return tuple(re.split(r";| and ", value))
    if not isinstance(value, list):
        raise ValueError(f"must be a list of names, found {shown(value)}")
    return tuple(map(_name, cast("list[Any]", value)))


def _name(person: Any) -> str:
    if isinstance(person, str):
        return person
    if not isinstance(person, dict):
        raise ValueError(f"must be a list of names, found {shown(person)}")
    fields = cast("dict[str, Any]", person)
    if isinstance(fields.get("author"), dict):  # an authorship of OpenAlex
        fields = cast("dict[str, Any]", fields["author"])
    full_name = _strings(fields, "name", "literal", "display_name")[:1]
    parts = _strings(fields, "given", "non-dropping-particle", "family", "suffix")
    return " ".join(full_name or parts)


def _venue(value: Any) -> str:
    if isinstance(value, dict):  # {"raw": …} in AMiner, {"name": …} in S2AG
        return "".join(_strings(cast("dict[str, Any]", value), "raw", "name")[:1])
    return _string(value)


def _strings(fields: dict[str, Any], *keys: str) -> list[str]:
    """Return the values of `keys` that are non-empty strings."""
    return [value for key in keys if isinstance(value := fields.get(key), str) and value]
