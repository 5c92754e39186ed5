"""One record of a corpus: its fields are checked once, here, and a wrong one is a fault with file and line."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from citerec.errors import BadRecordError, shown
from citerec.text import one_line
from citerec.types import BIBLIOGRAPHIC, MAX_ABSTRACT, MAX_TITLE, YEARS, Paper, id_fault, year_of

MAX_ID = 512  # characters
MAX_SHORT = 2_000  # characters of a URL, a type, a publisher; a longer one counts as missing
# Control characters without white space: PDFs leave them in texts, and terminals execute them.
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Fields:
    """One record of a corpus, with the file and line that it was read from."""

    record: Mapping[str, Any]
    path: Path
    line: int

    def fail(self, message: str, kind: str = "wrong_types") -> NoReturn:
        """Refuse the record; faults are counted by `kind`."""
        raise BadRecordError(self.path, self.line, message, kind=kind)

    def of(self, record: Mapping[str, Any]) -> "Fields":
        """Return other fields at the same place."""
        return Fields(record, self.path, self.line)

    def paper(
        self, *, abstract: str = "abstract", citations: str = "citations", **names: str
    ) -> Paper:
        """Read a paper whose fields have the names of a canonical record, except for those given."""
        return Paper(
            id=self.id(),
            title=self.title(),
            abstract=self.text(abstract),
            year=self.year(),
            authors=self.names("authors"),
            venue=self.text("venue"),
            citations=self.strings(citations),
            **self.bibliographic(**names),
        )

    def bibliographic(self, **names: str) -> dict[str, str]:
        """Read the fields of `BIBLIOGRAPHIC`; they have the usual names, except for those in `names`."""
        return {name: self.short(names.get(name, name)) for name in BIBLIOGRAPHIC}

    def id(self, key: str = "id") -> str:
        """Read the paper's id: a string without control characters, not empty."""
        value = self._required(key)
        if fault := id_fault(value):
            self.fail(f"{key!r} {fault}")
        if len(value) > MAX_ID:
            self.fail(f"{key!r} has {len(value)} characters; expected at most {MAX_ID}")
        if value[0] in "\ufeff\ufffe":  # Java drops it from the text
            self.fail(f"{key!r} begins with a byte-order mark: {shown(value)}")
        return value

    def title(self, key: str = "title") -> str:
        """Read the title on one line; it may be empty, but not missing."""
        value = self._required(key)
        if not isinstance(value, str):
            self.fail(f"{key!r} must be a string, found {shown(value)}")
        return " ".join(self._limited(key, value, MAX_TITLE).split())

    def text(self, key: str) -> str:
        """Read a text; if it is missing or null, it is empty."""
        value = self.record.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(f"{key!r} must be a string, found {shown(value)}")
        return self._limited(key, value, MAX_ABSTRACT).strip()

    def _limited(self, key: str, value: str, most: int) -> str:
        if len(value) > most:
            self.fail(f"{key!r} has {len(value):,} characters; expected at most {most:,}")
        return _printable(value)

    def year(self, key: str = "year") -> int | None:
        """Read a year: 2019, "2019", 2019.0; None if it is missing, null or ""."""
        value = self.record.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value.strip()[:5])
        try:
            return year_of(value)
        except ValueError as error:
            self.fail(f"{key!r} {error}")

    def strings(self, key: str) -> tuple[str, ...]:
        """Read a list of strings; if it is missing or null, it is empty."""
        return self.items(key, lambda item: item if isinstance(item, str) else None)

    def names(self, key: str) -> tuple[str, ...]:
        """Read a list of authors, each a string or an object with a "name"."""
        return tuple([name for name in self.items(key, _name) if name])

    def items(self, key: str, read: Callable[[Any], str | None]) -> tuple[str, ...]:
        """Read a list; `read` converts each item and returns None for a wrong type."""
        items: list[str] = []
        for item in self.listed(key):
            if (text := read(item)) is None:
                self.fail(f"{key!r} must hold strings, found {shown(item)}")
            items.append(text)
        return tuple(items)

    def listed(self, key: str) -> list[Any]:
        """Return a list; it is empty if it is missing or null."""
        value: Any = self.record.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(f"{key!r} must be a list, found {shown(value)}")
        return cast("list[Any]", value)

    def inner(self, *keys: str) -> "Fields":
        """Return the object at a path of keys; it is empty if one is missing or null."""
        fields = self
        for key in keys:
            value: Any = fields.record.get(key)
            if value is not None and not isinstance(value, dict):
                self.fail(f"{key!r} must be an object, found {shown(value)}")
            fields = self.of(cast("dict[str, Any]", value or {}))
        return fields

    def objects(self, key: str) -> Iterator["Fields"]:
        """Yield the objects of a list; null and missing items are skipped."""
        for value in self.listed(key):
            if value is not None and not isinstance(value, dict):
                self.fail(f"{key!r} must hold objects, found {shown(value)}")
            if value is not None:
                yield self.of(cast("dict[str, Any]", value))

    def short(self, key: str) -> str:
        """Return a short text or number on one line, the first of a list; anything else counts as missing."""
        value = self.record.get(key)
        if isinstance(value, list):  # several types of one paper, the most general first
            value = next(iter(cast("list[Any]", value)), "")
        text = number_text(value)
        return " ".join(_printable(text).split()) if len(text) <= MAX_SHORT else ""

    def _required(self, key: str) -> Any:
        if key not in self.record:
            present = ", ".join(list(self.record)[:6]) or "none"
            self.fail(f"no {key!r} in this record (its fields: {present})", kind="missing_fields")
        return self.record[key]


def number_text(value: Any) -> str:
    """Return a text or a whole number as text without surrounding blanks; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def page_range(first: str, last: str) -> str:
    """Return pages such as `12-19`; `12` if there is one page only."""
    return f"{first}-{last}" if first and last and first != last else first or last


def _name(author: Any) -> str | None:
    if isinstance(author, dict):
        author = cast("dict[str, Any]", author).get("name", "")
    return " ".join(_printable(author).split()) if isinstance(author, str) else None


def _printable(text: str) -> str:
    """Replace control characters by blanks; `isprintable` is a fast test that most texts pass."""
    return text if text.isprintable() else CONTROL.sub(" ", text)


# Records of libraries and exports are free text: an invalid value counts as missing there.

NO_CITATIONS = (
    "this library has no citations: the ranker cannot use them; `citerec collect` fetches them"
)


def library_paper(
    fields: Fields,
    *,
    ids: Sequence[str],
    title: str,
    abstract: str = "",
    year: int | None = None,
    authors: Sequence[str] = (),
    venue: str = "",
    citations: Sequence[str] = (),
    **bibliographic: str,
) -> Paper:
    """Make a paper of the texts of a record.

    Its id is the first of `ids` that can be one; if there is none, the name of the file and the line, as `refs:12`.

    Raises:
        BadRecordError: If it has no title, or a text is too long.
    """
    if not (title := one_line(title)):
        fields.fail("this record has no title", kind="missing_fields")
    texts = fields.of({"title": title, "abstract": abstract})
    usable = (text for value in ids if (text := one_line(value)) and len(text) <= MAX_ID)
    stem = fields.path.name.split(".")[0] or "paper"
    return Paper(
        id=next((text for text in usable if not id_fault(text)), f"{stem}:{fields.line}"),
        title=texts.title(),
        abstract=texts.text("abstract"),
        year=year if year in YEARS else None,
        authors=tuple(filter(None, map(one_line, authors))),
        venue=one_line(venue),
        citations=tuple(citations),
        **fields.of(bibliographic).bibliographic(),
    )
