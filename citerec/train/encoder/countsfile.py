"""Reads files of counts: how often two papers were viewed, read or cited together.

The format is SPECTER's published training input: one JSON object, plain or compressed,
`{"query id": {"other id": {"count": 5}, ...}, ...}`. It is read query by query, so a file may exceed the memory.
"""

import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from citerec.errors import BadInputError, shown
from citerec.inputs import UNREADABLE, open_unpacked, reading

CHUNK = 2**20  # characters read at once at least
MAX_RECORD = 64 * 2**20  # characters of one query's counts
MAX_COUNT = 2**53  # larger whole numbers are not exact in float64
FORM = '{"query id": {"other id": {"count": 5}, ...}, ...}'

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_CUT = 16  # a JSON error this close to the end of the buffer may be caused by its end


@dataclass(frozen=True, slots=True)
class QueryCounts:
    """The counts of one query with other papers."""

    query: str
    others: tuple[str, ...]
    counts: tuple[float, ...]  # same length, 0 or more


def read_records(file: Path) -> Generator[QueryCounts]:
    """Read the counts query by query.

    Raises:
        BadInputError: If the file cannot be read, or is no file of counts.
    """
    check_there(file)
    with reading(file):
        try:
            with (
                open_unpacked(file) as (stream, _),
                TextIOWrapper(stream, encoding="utf-8-sig") as text,
            ):
                yield from _Reader(file, text).records()
        except UnicodeDecodeError as error:
            raise BadInputError(file, f"not UTF-8 text; expected counts: {FORM}") from error
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise BadInputError(file, f"cannot be unpacked: {error}; fetch it again") from error


def check_there(file: Path) -> None:
    """Refuse a missing file of counts.

    Raises:
        BadInputError: If there is no such file.
    """
    with reading(file):
        if not file.is_file():
            raise BadInputError(file, f"no such file; expected counts: {FORM}")


class _Reader:
    """Reads one JSON value after the other from a stream."""

    def __init__(self, file: Path, stream: TextIOWrapper) -> None:
        self._file, self._stream = file, stream
        self._text, self._at, self._line = "", 0, 1
        self._ended = False

    def records(self) -> Generator[QueryCounts]:
        self._take("{")
        if self._next() == "}":
            return
        while True:
            if self._next() != '"':
                self._refuse(f"found {self._next()!r} where a query id should be")
            query = self._value()
            self._take(":")
            self._next()
            line = self._line
            yield self._record(query, self._value(), line)
            if self._next() == "}":
                break
            self._take(",")
        self._at += 1
        if extra := self._next():
            self._refuse(f"found {extra!r} after the end of the object")

    def _record(self, query: str, value: Any, line: int) -> QueryCounts:
        if not isinstance(value, dict):
            self._refuse(f"the counts of {query!r} are {shown(value)}", line)
        counts: dict[str, float] = {}
        entries: dict[str, Any] = value
        for other, entry in entries.items():
            if (count := _count(entry)) is None:
                self._refuse(f"the count of {query!r} with {other!r} is {shown(entry)}", line)
            counts[other] = count
        return QueryCounts(query, tuple(counts), tuple(counts.values()))

    def _take(self, expected: str) -> None:
        """Skip the expected next character."""
        if (character := self._next()) != expected:
            self._refuse(
                f"found {character!r} where {expected!r} should be"
                if character
                else "the file ends too early"
            )
        self._at += 1

    def _next(self) -> str:
        """Go to the next character that is no white space; return it, or an empty text at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._go(match.end() if match else self._at)
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Read the next value, complete."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                truncated = "Unterminated" in error.msg or error.pos > len(self._text) - _CUT
                if not truncated or not self._more():
                    line = self._line + self._text.count("\n", self._at, error.pos)
                    self._refuse(f"not JSON: {error.msg}", line)
            except RecursionError:
                self._refuse("too deeply nested JSON")
            else:
                self._go(end)
                return value

    def _more(self) -> bool:
        """Read more; at least as much as is buffered, so that a long value is not parsed too often."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > MAX_RECORD:
            self._refuse(f"the counts of one query are longer than {MAX_RECORD // 2**20} MiB")
        read = self._stream.read(max(CHUNK, len(rest)))
        self._text, self._at, self._ended = rest + read, 0, not read
        return bool(read)

    def _go(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _refuse(self, problem: str, line: int | None = None) -> NoReturn:
        raise BadInputError(self._file, f"{problem}; expected {FORM}", line=line or self._line)


def _count(entry: Any) -> float | None:
    """Return the count of an entry, 0 or more; None if it has no valid one."""
    fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
    count: Any = fields.get("count")
    return float(count) if type(count) in (int, float) and 0 <= count <= MAX_COUNT else None
