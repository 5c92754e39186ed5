"""Reads papers from JSON: one, a list, or one per line; with the keys of citerec, CSL or other corpora."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from citerec.bibliography.inverted_index import restored
from citerec.bibliography.keys import doi_of
from citerec.bibliography.record import Draft, Record, first_year
from citerec.errors import BadInputError, shown

IDS = ("id", "_id", "paperId", "paper_id", "corpusid")
_TITLES = ("title", "display_name")
_ABSTRACTS = ("abstract", "paperAbstract", "text", "abstract_inverted_index")
_YEARS = ("year", "publication_year", "issued")
_AUTHORS = ("authors", "author", "authorships")
_VENUES = ("venue", "container-title", "journal")
_DOIS = ("doi", "DOI", "url", "URL")
_CSL = frozenset({"author", "issued", "container-title", "DOI"})
_MARKUP = re.compile(r"</?(?:i|b|em|p|sub|sup|sc|span|jats:[a-z-]+)(?:\s[^<>]*)?>")
_YEAR = re.compile(r"\s*[1-9][0-9]{3}\s*")
_KINDS = ((dict, "an object"), (list, "a list"), (str, "a string"), (bool, "true or false"))


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a JSON file, with its position."""

    number: int
    line: int | None
    value: Any


def read_items(text: str, name: Path | str) -> list[Item]:
    """Read the values of a file: its one value, the elements of its list, or one value per line.

    Raises:
        BadInputError: If it is not JSON; the message names the line.
    """
    if _is_jsonl(text):
        return [Item(n, n, _loads(line, name, line=n)) for n, line in _lines(text)]
    value = _loads(text, name)
    if isinstance(value, list):
        elements = cast("list[Any]", value)
        return [Item(n, None, element) for n, element in enumerate(elements, start=1)]
    start = len(text) - len(text.lstrip())
    return [Item(1, text.count("\n", 0, start) + 1, value)]


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the papers of a JSON, JSONL or CSL-JSON file.

    Raises:
        BadInputError: If it is not JSON, or a value has a wrong type.
    """
    return [_Object(_record(item, name), name).draft() for item in read_items(text, name)]


def read_draft(record: Record, name: Path | str) -> Draft:
    """Read the paper of one object, whose keys and values are the fields of `record`.

    Raises:
        BadInputError: If a value has a wrong type.
    """
    return _Object(record, name).draft()


def stated_year_and_authors(item: Item) -> tuple[int | None, tuple[str, ...]]:
    """Return the year and the authors of an object; a value of a wrong type counts as missing."""
    if not isinstance(item.value, dict):
        return None, ()
    paper = _Object(_record(item, ""), "")
    year, authors = None, ()
    with suppress(BadInputError):
        year = paper.year()
    with suppress(BadInputError):
        authors = paper.authors()
    return year, authors


def _is_jsonl(text: str) -> bool:
    """Whether `text` is one value per line; single lines may be broken."""
    lines = [line for _, line in _lines(text)]
    if len(lines) < 2:
        return False
    if all(line.lstrip().startswith("{") for line in lines):
        return True
    try:
        return isinstance(orjson.loads(lines[0]), dict)
    except orjson.JSONDecodeError:
        return False


def _lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the lines that are not blank, with numbers from 1; only `\n` ends a line, not a U+2028 inside JSON."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _loads(text: str, name: Path | str, *, line: int | None = None) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInputError(
            name,
            f"this is not valid JSON: {error.msg} (column {error.colno})",
            line=line or error.lineno,
        ) from None


def _record(item: Item, name: Path | str) -> Record:
    label = "" if item.line else f"item {item.number} of the list"
    if not isinstance(item.value, dict):
        record = Record(number=item.number, line=item.line, label=label, fields={})
        raise record.error(name, f"expected an object with a title, found {_kind(item.value)}")
    fields = cast("dict[str, Any]", item.value)
    return Record(number=item.number, line=item.line, label=label, fields=fields)


def _kind(value: Any) -> str:
    if description := next(
        (description for kind, description in _KINDS if isinstance(value, kind)), ""
    ):
        return description
    return "null" if value is None else f"the number {shown(value)}"


@dataclass(frozen=True, slots=True)
class _Object:
    """One JSON object that should be a paper, from the file `name`."""

    record: Record
    name: Path | str

    def draft(self) -> Draft:
        """Read every field that a query has; unknown keys are ignored."""
        title, abstract = self._text(_TITLES), self._text(_ABSTRACTS)
        if not title.strip() and "text" in self.record.fields:
            title, abstract = abstract, ""  # a BEIR query is a single text
        return Draft(
            record=self.record,
            id=self._id(),
            title=title,
            abstract=abstract,
            year=self.year(),
            authors=self.authors(),
            venue=self._venue(),
            doi=self._doi(),
            context=self._text(("context",)),
        )

    def _first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """Return the first of `keys` that has a value, and the value; the first key and "" if none has."""
        for key in keys:
            value = self.record.fields.get(key)
            if value is not None and value != "":
                return key, value
        return keys[0], ""

    def _wrong(self, key: str, expected: str, value: Any) -> BadInputError:
        return self.record.error(self.name, f'"{key}" must be {expected}, found {_kind(value)}')

    def _text(self, keys: tuple[str, ...]) -> str:
        key, value = self._first(keys)
        if key == "abstract_inverted_index":
            return self._from_positions(value)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return _MARKUP.sub("", value) if self.record.fields.keys() & _CSL else value

    def _from_positions(self, index: Any) -> str:
        """Restore an abstract of OpenAlex from its inverted index, which holds the positions of each word."""
        try:
            return restored(index)
        except ValueError as error:
            raise self.record.error(self.name, str(error)) from None

    def _id(self) -> str:
        key, value = self._first(IDS)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value

    def _doi(self) -> str:
        values = _strings(dict(self.record.fields), *_DOIS)
        return next(filter(None, map(doi_of, values)), "")

    def year(self) -> int | None:
        """Return the year of the object; None if it has none."""
        key, value = self._first(_YEARS)
        if key == "issued" and isinstance(value, dict):
            return _issued(cast("dict[str, Any]", value))
        if value == "":
            return None
        number = isinstance(value, (int, float, str)) and not isinstance(value, bool)
        digits = str(value).removesuffix(".0") if number else ""
        if not _YEAR.fullmatch(digits):
            actual = f'"{value[:60]}"' if isinstance(value, str) else _kind(value)
            message = f'"{key}" must be a year such as 2019, or null; found {actual}'
            raise self.record.error(self.name, message)
        return int(digits)

    def authors(self) -> tuple[str, ...]:
        """Return the names of the authors."""
        key, value = self._first(_AUTHORS)
        if isinstance(value, str):  # as in the snapshot of arXiv
            return tuple(re.split(r";| and ", value))
        if not isinstance(value, list):
            raise self._wrong(key, "a list of names", value)
        people = cast("list[Any]", value)
        return tuple(self._name(key, person) for person in people)

    def _name(self, key: str, person: Any) -> str:
        if isinstance(person, str):
            return person
        if not isinstance(person, dict):
            raise self._wrong(key, "a list of names", person)
        fields = cast("dict[str, Any]", person)
        if isinstance(fields.get("author"), dict):  # an authorship of OpenAlex
            fields = cast("dict[str, Any]", fields["author"])
        full_name = _strings(fields, "name", "literal", "display_name")[:1]
        parts = _strings(fields, "given", "non-dropping-particle", "family", "suffix")
        return " ".join(full_name or parts)

    def _venue(self) -> str:
        key, value = self._first(_VENUES)
        if isinstance(value, dict):  # {"raw": …} in AMiner, {"name": …} in S2AG
            return "".join(_strings(cast("dict[str, Any]", value), "raw", "name")[:1])
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value


def _strings(fields: dict[str, Any], *keys: str) -> list[str]:
    """Return the values of `keys` that are non-empty strings."""
    return [value for key in keys if isinstance(value := fields.get(key), str) and value]


def _issued(date: dict[str, Any]) -> int | None:
    """Return the year of a CSL date: from `date-parts`, or from a text such as `raw`."""
    value: Any = date.get("date-parts")
    while isinstance(value, list) and value:  # [[2019, 5]]: the year is first
        value = cast("list[Any]", value)[0]
    words = _strings(date, "raw", "literal")
    return first_year(str(value) if isinstance(value, (int, str)) else " ".join(words))
