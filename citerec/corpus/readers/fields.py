"""Reads the fields of one record, checks their types, and names file and line of a wrong one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from citerec.errors import BadRecordError, shown
from citerec.types import BIBLIOGRAPHIC, Paper
from citerec.valid import MAX_ABSTRACT, MAX_TITLE, id_fault, whole, year_fault

MAX_ID = 512  # characters
MAX_SHORT = 2_000  # characters of a URL, a type, a publisher; a longer one counts as missing
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")  # control characters without white space


@dataclass(frozen=True, slots=True)
class Fields:
    """One record of a corpus, with the file and line that it was read from."""

    record: Mapping[str, Any]
    path: Path
    line: int

    def fail(self, message: str, kind: str = "wrong_types") -> NoReturn:
        """Refuse the record; faults are counted by `kind`."""
        raise BadRecordError(self.path, self.line, message, kind=kind)

    def paper(
        self, *, abstract: str = "abstract", citations: str = "citations", **names: str
    ) -> Paper:
        """Read a paper whose fields have the usual names, except for those given.

        Args:
            abstract: The name of the field that holds the abstract.
            citations: The name of the field that holds the references.
            names: As for `bibliographic`.
        """
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
        """Read the fields of `BIBLIOGRAPHIC`; they have the usual names, except for those in `names`.

        Other corpora use these names for other things, too: a value that is neither a short text nor a number counts as
        missing.
        """
        keys = [names.get(name, name) for name in BIBLIOGRAPHIC] if names else BIBLIOGRAPHIC
        pairs = zip(BIBLIOGRAPHIC, keys, strict=True)
        return {name: self._short(key) if key in self.record else "" for name, key in pairs}

    def _short(self, key: str) -> str:
        value = self.record[key]
        if isinstance(value, list):  # several types of one paper, the most general first
            value = next(iter(cast("list[Any]", value)), "")
        if (
            isinstance(value, bool)
            or not isinstance(value, (str, int))
            or len(str(value)) > MAX_SHORT
        ):
            return ""
        return " ".join(_printable(str(value)).split())

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
        """Read the title, with white space reduced to single blanks; it may be empty, but not missing.

        Control characters, which PDFs leave in texts and terminals execute, become blanks, as in `text`.
        """
        value = self._required(key)
        if not isinstance(value, str):
            self.fail(f"{key!r} must be a string, found {shown(value)}")
        if len(value) > MAX_TITLE:
            self.fail(f"{key!r} has {len(value):,} characters; expected at most {MAX_TITLE:,}")
        return " ".join(_printable(value).split())

    def text(self, key: str) -> str:
        """Read a text; if it is missing or null, it is empty."""
        value = self.record.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(f"{key!r} must be a string, found {shown(value)}")
        if len(value) > MAX_ABSTRACT:
            self.fail(f"{key!r} has {len(value):,} characters; expected at most {MAX_ABSTRACT:,}")
        return _printable(value).strip()

    def year(self, key: str = "year") -> int | None:
        """Read a year: 2019, "2019", 2019.0; None if it is missing, null or ""."""
        value = self.record.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value.strip()[:5])
        value = whole(value)
        if fault := year_fault(value):
            self.fail(f"{key!r} {fault}")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Read a list of strings; if it is missing or null, it is empty."""
        return self.items(key, lambda item: item if isinstance(item, str) else None)

    def names(self, key: str) -> tuple[str, ...]:
        """Read a list of authors, each a string or an object with a "name"."""
        return tuple([name for name in self.items(key, _name) if name])

    def items(self, key: str, read: Callable[[Any], str | None]) -> tuple[str, ...]:
        """Read a list; `read` converts each item and returns None for a wrong type."""
        value: Any = self.record.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fail(f"{key!r} must be a list, found {shown(value)}")
        values = cast("list[Any]", value)
        items = [text for item in values if (text := read(item)) is not None]
        if len(items) < len(values):
            wrong = next(item for item in values if read(item) is None)
            self.fail(f"{key!r} must hold strings, found {shown(wrong)}")
        return tuple(items)

    def _required(self, key: str) -> Any:
        if key not in self.record:
            present = ", ".join(list(self.record)[:6]) or "none"
            self.fail(f"no {key!r} in this record (its fields: {present})", kind="missing_fields")
        return self.record[key]


def _name(author: Any) -> str | None:
    if isinstance(author, dict):
        author = cast("dict[str, Any]", author).get("name", "")
    return " ".join(_printable(author).split()) if isinstance(author, str) else None


def _printable(text: str) -> str:
    """Replace control characters by blanks; `isprintable` is a fast test that most texts pass."""
    return text if text.isprintable() else CONTROL.sub(" ", text)
