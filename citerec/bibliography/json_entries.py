"""Reads papers from JSON: one, a list, or one per line; with the keys of citerec, CSL or other corpora."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from citerec.bibliography.entry import Entry, first_year, is_preprint
from citerec.bibliography.keys import doi_of
from citerec.bibliography.markup import plain_text, restored
from citerec.errors import BadInputError, shown

T = TypeVar("T")
_IDS = ("id", "_id", "paperId", "paper_id", "corpusid")
_TITLES = ("title", "display_name")
_ABSTRACTS = ("abstract", "paperAbstract", "text", "abstract_inverted_index")
_YEARS = ("year", "publication_year", "issued")
_AUTHORS = ("authors", "author", "authorships")
_VENUES = ("venue", "container-title", "journal")
_ADDRESSES = ("doi", "DOI", "url", "URL")
_REMARKS = ("publisher", "genre", "note", "archive", "number")
_CSL = frozenset({"author", "issued", "container-title", "DOI"})
_YEAR = re.compile(r"\s*[1-9][0-9]{3}\s*")
_KINDS = ((dict, "an object"), (list, "a list"), (str, "a string"), (bool, "true or false"))


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a JSON file, with its position."""

    number: int
    line: int | None
    value: Any

    @property
    def label(self) -> str:
        """Its name in messages; empty if the line is enough."""
        return "" if self.line else f"item {self.number} of the list"


def read_items(text: str, name: Path | str) -> list[Item]:
    """Read the values of a file: its one value, the elements of its list, or one value per line."""
    # only \n ends a line, not a U+2028 inside JSON
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > 1 and _begins_jsonl([line for _, line in lines]):
        return [Item(n, n, loads(line, name, line=n)) for n, line in lines]
    value = loads(text, name)
    if isinstance(value, list):
        elements = cast("list[Any]", value)
        return [Item(n, None, element) for n, element in enumerate(elements, start=1)]
    return [Item(1, lines[0][0], value)]


def _begins_jsonl(lines: list[str]) -> bool:
    """Whether lines are values of their own; single lines may be broken."""
    if all(line.lstrip().startswith("{") for line in lines):
        return True
    try:
        return isinstance(orjson.loads(lines[0]), dict)
    except orjson.JSONDecodeError:
        return False


def loads(text: str, name: Path | str, *, line: int | None = None) -> Any:
    """Return the value of a text, which may be a line of a file; raise a BadInputError if it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        message = f"this is not valid JSON: {error.msg} (column {error.colno})"
        raise BadInputError(name, message, line=line or error.lineno) from None


def to_entry(item: Item, name: Path | str, *, strict: bool = True) -> Entry:
    """Return an item as an entry; unknown keys are ignored.

    If not strict, a value of a wrong type counts as missing, and a string is an id.

    Raises:
        BadInputError: If a value has a wrong type.
    """
    place = Entry(line=item.line, label=item.label)
    if not isinstance(item.value, dict):
        if strict:
            fault = f"expected an object with a title, found {_kind(item.value)}"
            raise place.error(name, fault)
        ids = (item.value.strip(),) if isinstance(item.value, str) and item.value.strip() else ()
        return Entry(ids=ids, line=item.line, label=item.label)
    fields = cast("dict[str, Any]", item.value)

    def checked(read: Callable[[dict[str, Any]], T], default: T) -> T:
        try:
            return read(fields)
        except ValueError as error:
            if strict:
                raise place.error(name, str(error)) from None
            return default

    title = checked(lambda fields: _text(fields, _TITLES), "")
    abstract = checked(lambda fields: _text(fields, _ABSTRACTS), "")
    if not title.strip() and "text" in fields:
        title, abstract = abstract, ""  # a BEIR query is a single text
    addresses = _strings(fields, *_ADDRESSES)
    dois = tuple(filter(None, map(doi_of, addresses)))
    kind, venue = "".join(_strings(fields, "type")[:1]).lower(), checked(_venue, "")
    return Entry(
        ids=tuple(filter(None, (_id(fields, key) for key in (*_IDS, "doi", "DOI")))),
        title=title,
        abstract=abstract,
        year=checked(_year, None),
        authors=checked(_authors, ()),
        venue=venue,
        key=checked(_key, ""),
        dois=dois,
        context=checked(lambda fields: _text(fields, ("context",)), ""),
        # JSON other than CSL does not state what an item is
        is_preprint=bool(kind or venue)
        and is_preprint(kind, venue, _strings(fields, *_REMARKS), addresses),
        line=item.line,
        label=item.label,
    )


def _first(fields: dict[str, Any], keys: tuple[str, ...]) -> tuple[str, Any]:
    """Return the first of `keys` that has a value, and the value; the first key and "" if none has."""
    for key in keys:
        value = fields.get(key)
        if value is not None and value != "":
            return key, value
    return keys[0], ""


def _wrong(key: str, expected: str, value: Any) -> ValueError:
    return ValueError(f'"{key}" must be {expected}, found {_kind(value)}')


def _kind(value: Any) -> str:
    for kind, description in _KINDS:
        if isinstance(value, kind):
            return description
    return "null" if value is None else f"the number {shown(value)}"


def _text(fields: dict[str, Any], keys: tuple[str, ...]) -> str:
    key, value = _first(fields, keys)
    if key == "abstract_inverted_index":
        return restored(value)
    if not isinstance(value, str):
        raise _wrong(key, "a string", value)
    return plain_text(value) if fields.keys() & _CSL else value


def _id(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    is_id = isinstance(value, (str, int)) and not isinstance(value, bool)
    return str(value).strip() if is_id else ""


def _key(fields: dict[str, Any]) -> str:
    key, value = _first(fields, _IDS)
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise _wrong(key, "a string", value)
    return str(value)


def _year(fields: dict[str, Any]) -> int | None:
    key, value = _first(fields, _YEARS)
    if key == "issued" and isinstance(value, dict):
        return _issued(cast("dict[str, Any]", value))
    if value == "":
        return None
    number = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    digits = str(value).removesuffix(".0") if number else ""
    if not _YEAR.fullmatch(digits):
        actual = f'"{value[:60]}"' if isinstance(value, str) else _kind(value)
        raise ValueError(f'"{key}" must be a year such as 2019, or null; found {actual}')
    return int(digits)


def _issued(date: dict[str, Any]) -> int | None:
    """Return the year of a CSL date: from `date-parts`, or from a text such as `raw`."""
    value: Any = date.get("date-parts")
    while isinstance(value, list) and value:  # [[2019, 5]]: the year is first
        value = cast("list[Any]", value)[0]
    words = _strings(date, "raw", "literal")
    return first_year(str(value) if isinstance(value, (int, str)) else " ".join(words))


def _authors(fields: dict[str, Any]) -> tuple[str, ...]:
    key, value = _first(fields, _AUTHORS)
    if isinstance(value, str):  # as in the snapshot of arXiv
        return tuple(re.split(r";| and ", value))
    if not isinstance(value, list):
        raise _wrong(key, "a list of names", value)
    return tuple(_name(key, person) for person in cast("list[Any]", value))


def _name(key: str, person: Any) -> str:
    if isinstance(person, str):
        return person
    if not isinstance(person, dict):
        raise _wrong(key, "a list of names", person)
    fields = cast("dict[str, Any]", person)
    if isinstance(fields.get("author"), dict):  # an authorship of OpenAlex
        fields = cast("dict[str, Any]", fields["author"])
    full_name = _strings(fields, "name", "literal", "display_name")[:1]
    parts = _strings(fields, "given", "non-dropping-particle", "family", "suffix")
    return " ".join(full_name or parts)


def _venue(fields: dict[str, Any]) -> str:
    key, value = _first(fields, _VENUES)
    if isinstance(value, dict):  # {"raw": …} in AMiner, {"name": …} in S2AG
        return "".join(_strings(cast("dict[str, Any]", value), "raw", "name")[:1])
    if not isinstance(value, str):
        raise _wrong(key, "a string", value)
    return value


def _strings(fields: dict[str, Any], *keys: str) -> list[str]:
    """Return the values of `keys` that are non-empty strings."""
    return [value for key in keys if isinstance(value := fields.get(key), str) and value]
