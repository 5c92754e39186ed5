"""One record of a corpus or a list: its fields are checked here, and a wrong one is a fault with file and line."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, cast

import orjson

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import dois_of, plain_text
from citerec.display import one_line
from citerec.errors import BadRecordError, shown
from citerec.types import (
    MAX_ABSTRACT,
    MAX_TITLE,
    YEARS,
    Context,
    Json,
    Paper,
    id_fault,
    year_of,
)

MAX_ID = 512  # characters
# characters of a URL, a type, a publisher; a longer one counts as missing
MAX_SHORT = 2_000
NO_CITATIONS = "this library has no citations: the ranker cannot use them; `citerec collect` fetches them"
# Control characters without white space: PDFs leave them in texts, and terminals execute them.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_OF_PAPER = tuple(Paper.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Fields:
    """One record of a corpus, with the file and line that it was read from.

    A key such as `journal.name` is that of the field `name` of the object `journal`.
    """

    record: Json
    path: Path
    line: int

    def fail(self, message: str, kind: str = "wrong_types") -> NoReturn:
        """Refuse the record; faults are counted by `kind`."""
        raise BadRecordError(self.path, self.line, message, kind=kind)

    def of(self, record: Json) -> "Fields":
        """Return other fields at the same place."""
        return Fields(record, self.path, self.line)

    def paper(
        self, keys: Mapping[str, str] = MappingProxyType({}), **values: Any
    ) -> Paper:
        """Read a paper; `keys` are those that a canonical record names differently, `values` are not read."""
        readers: dict[str, Callable[[str], Any]] = {
            "id": self.id,
            "title": self.title,
            "abstract": self.text,
            "year": self.year,
            "authors": self.names,
            "venue": self.text,
            "citations": self.strings,
            "retracted": self.flag,
            "doi": self.doi,
            "contexts": self.contexts,
        }
        for name in _OF_PAPER:
            if name not in values:
                values[name] = readers.get(name, self.short)(keys.get(name, name))
        return Paper(**values)

    def get(self, key: str) -> Any:
        """Return the value of a field; None if it is missing."""
        if "." not in key:
            return self.record.get(key)
        outer, _, rest = key.partition(".")
        return self.inner(outer).get(rest)

    def id(self, key: str = "id") -> str:
        """Read the paper's id: a string without control characters, not empty."""
        value = self._required(key)
        if fault := id_fault(value):
            self.fail(f"{key!r} {fault}")
        if len(value) > MAX_ID:
            self.fail(f"{key!r} has {len(value)} characters; expected at most {MAX_ID}")
        return value

    def title(self, key: str = "title") -> str:
        """Read the title on one line; it may be empty, but not missing."""
        return one_line(self._checked(key, self._required(key), MAX_TITLE))

    def text(self, key: str) -> str:
        """Read a text; if it is missing or null, it is empty."""
        value = self.get(key)
        return "" if value is None else self._checked(key, value, MAX_ABSTRACT).strip()

    def venue(self, key: str) -> str:
        """Read a venue: a text, or an object with its name, as of AMiner and S2AG."""
        if isinstance(self.get(key), dict):
            names = (self.short(f"{key}.{name}") for name in ("raw", "name_d", "name"))
            return next(filter(None, names), "")
        return self.text(key)

    def restored(self, key: str) -> str:
        """Read the abstract of an inverted index: `{"word": [0, 7], ...}`, or inside of `InvertedIndex`, as of AMiner.

        The index may be a text in JSON, as tables and AMiner have it. Values of wrong types are skipped.
        """
        value = self.get(key) or None
        if isinstance(value, str):
            with suppress(orjson.JSONDecodeError):  # any other text is no index
                value = orjson.loads(value)
        index = self.of({key: value}).inner(key)
        if isinstance(index.get("InvertedIndex"), dict):
            index = index.inner("InvertedIndex")
        lists = [
            (word, found)
            for word, found in index.record.items()
            if isinstance(found, list)
        ]
        if (
            length := sum((len(word) + 1) * len(found) for word, found in lists)
        ) > MAX_ABSTRACT:
            self.fail(
                f"the abstract has {length:,} characters; expected at most {MAX_ABSTRACT:,}"
            )
        places = [
            (place, word)
            for word, found in lists
            for place in found
            if type(place) is int
        ]
        return " ".join([word for _, word in sorted(places)])

    def _required(self, key: str) -> Any:
        if key not in self.record:
            present = ", ".join(list(self.record)[:6]) or "none"
            self.fail(
                f"no {key!r} in this record (its fields: {present})",
                kind="missing_fields",
            )
        return self.record[key]

    def _checked(self, key: str, value: Any, most: int) -> str:
        if not isinstance(value, str):
            self.fail(f"{key!r} must be a string, found {shown(value)}")
        if len(value) > most:
            self.fail(
                f"{key!r} has {len(value):,} characters; expected at most {most:,}"
            )
        # `isprintable` is a fast test that most texts pass
        return value if value.isprintable() else _CONTROL.sub(" ", value)

    def year(self, key: str = "year") -> int | None:
        """Read a year: 2019, "2019", 2019.0; None if it is missing, null or ""."""
        value = self.get(key)
        if isinstance(value, str):
            text = value.strip()
            value = (
                int(text[:5]) if text.isascii() and text.isdigit() else value or None
            )
        try:
            return year_of(value)
        except ValueError as error:
            self.fail(f"{key!r} {error}")

    def flag(self, key: str) -> bool:
        """Read true or false, or 1 or 0; false if it is missing or empty."""
        value = self.get(key) or False
        if value not in (0, 1):
            self.fail(f"{key!r} must be true or false, found {shown(value)}")
        return bool(value)

    def strings(self, key: str) -> tuple[str, ...]:
        """Read a list of strings; if it is missing or null, it is empty."""
        return self.items(key, lambda item: item if isinstance(item, str) else None)

    def names(self, key: str) -> tuple[str, ...]:
        """Read a list of authors, each a string or an object with a "name"."""
        return self.items(key, _name)

    def items(self, key: str, read: Callable[[Any], str | None]) -> tuple[str, ...]:
        """Read a list; `read` converts each item: None for a wrong type, empty for one to leave out."""
        items: list[str] = []
        for item in self._of_type(key, list, "a list"):
            if (text := read(item)) is None:
                self.fail(f"{key!r} must hold strings, found {shown(item)}")
            if text:
                items.append(text)
        return tuple(items)

    def contexts(self, key: str) -> tuple[Context, ...]:
        """Read sentences that cite, `{"cites": [ids], "text": "… [CITE] …"}`; one without ids is left out."""
        found = list[Context]()
        for item in self.objects(key):
            text = one_line(item.text("text"))
            if not text or "cites" not in item.record:
                self.fail(
                    f"each of {key!r} needs a 'text' and 'cites', found {shown(item.record)}"
                )
            if cites := item.strings("cites"):
                found.append(Context(text, cites))
        return tuple(found)

    def inner(self, key: str) -> "Fields":
        """Return the object at a key; it is empty if it is missing or null."""
        return self.of(self._of_type(key, dict, "an object"))

    def _of_type(self, key: str, type: type[list[Any] | Json], name: str) -> Any:
        value = self.get(key)
        if value is not None and not isinstance(value, type):
            self.fail(f"{key!r} must be {name}, found {shown(value)}")
        return value or type()

    def objects(self, key: str) -> "list[Fields]":
        """Return the objects of a list; it is empty if it is missing or null."""
        values = self.get(key) or []
        if not isinstance(values, list) or not all(
            isinstance(value, dict) for value in values
        ):
            self.fail(f"{key!r} must be a list of objects, found {shown(values)}")
        return [self.of(value) for value in values]

    def short(self, key: str) -> str:
        """Return a short text or number on one line, the first of a list; anything else counts as missing."""
        if (value := self.get(key)) is None:
            return ""
        # several types of one paper, the most general first
        if isinstance(value, list):
            value = next(iter(cast("list[Any]", value)), "")
        text = number_text(value)
        return one_line(text) if len(text) <= MAX_SHORT else ""

    def doi(self, key: str) -> str:
        """Read a DOI: bare, of several the first; a text that has none stays as it is."""
        text = self.short(key)
        return next(iter(dois_of(text)), text)

    def pages(self, first: str, last: str) -> str:
        """Return pages such as `12-19` from the fields of two keys; `12` if there is one page only."""
        return "-".join(
            dict.fromkeys(filter(None, (self.short(first), self.short(last))))
        )


def library_paper(
    fields: Fields,
    ids: Sequence[str],
    entry: Entry,
    *,
    retracted: bool = False,
    **values: str,
) -> Paper:
    """Make a paper of an entry of a library or an export, in which an invalid value counts as missing.

    Its id is the first of `ids` that can be one; if there is none, the name of the file and the line, as `refs:12`.
    `values` are the fields that an entry does not have. BadRecordError if it has no title, or a text is too long.
    """
    if not (title := plain_text(entry.title)):
        fields.fail("this record has no title", kind="missing_fields")
    usable = [i for i in map(one_line, ids) if len(i) <= MAX_ID and not id_fault(i)]
    stem = fields.path.name.split(".")[0] or "paper"
    doi = next(iter(entry.dois), "")
    record = {
        **values,
        "id": usable[0] if usable else f"{stem}:{fields.line}",
        "title": one_line(title),
        "abstract": one_line(plain_text(entry.abstract)),
        "year": entry.year if entry.year in YEARS else None,
        "authors": [*entry.authors],
        "venue": one_line(plain_text(entry.venue)),
        "doi": doi,
        "retracted": retracted,
    }
    return fields.of(record).paper()


def number_text(value: Any) -> str:
    """Return a text or a whole number as text without surrounding blanks; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _name(author: Any) -> str | None:
    if isinstance(author, dict):
        author = author.get("author", author)  # an authorship of OpenAlex
    if isinstance(author, dict):
        # of CSL, of S2ORC, and of Europe PMC
        parts = (
            "given first firstName dropping-particle non-dropping-particle family last lastName suffix"
        ).split()
        names = [
            author.get(key)
            for key in ("name", "display_name", "literal", "collectiveName")
        ]
        names += [
            " ".join(p for key in parts if isinstance(p := author.get(key), str) and p)
        ]
        author = next(filter(None, names), None)
    if author is None:
        return ""
    return one_line(author) if isinstance(author, str) else None
