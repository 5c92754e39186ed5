"""Files of counts: how often two papers were viewed, read or cited together.

They are as SPECTER's published training input: one JSON object, plain or packed,
`{"query id": {"other id": {"count": 5}, ...}, ...}`. Read a query at a time, a file may be larger than the memory.
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

CHUNK = 2**20  # characters that are read at once, at least
MAX_RECORD = 64 * 2**20  # characters of one query's counts
MAX_COUNT = 2**53  # above which whole numbers are no longer told apart
FORM = '{"query id": {"other id": {"count": 5}, ...}, ...}'

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_CUT = 16  # an error that is closer to the end of what was read may be due to the cut alone


@dataclass(frozen=True, slots=True)
class Record:
    """The counts of one query: with each of the others, 0 or more."""

    query: str
    others: tuple[str, ...]
    counts: tuple[float, ...]  # same length


def read_records(file: Path) -> Generator[Record]:
    """Read the counts of one query after the other.

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
            raise BadInputError(file, f"no UTF-8 text; expected counts: {FORM}") from error
        except UNREADABLE as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise BadInputError(file, f"cannot be unpacked: {error}; fetch it again") from error


def check_there(file: Path) -> None:
    """Refuse a file of counts that is not there.

    Raises:
        BadInputError: If it is not.
    """
    with reading(file):
        if not file.is_file():
            raise BadInputError(file, f"no such file; expected counts: {FORM}")


class _Reader:
    """Takes one JSON value after the other from a stream."""

    def __init__(self, file: Path, stream: TextIOWrapper) -> None:
        self._file, self._stream = file, stream
        self._text, self._at, self._line = "", 0, 1
        self._ended = False

    def records(self) -> Generator[Record]:
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
        if found := self._next():
            self._refuse(f"found {found!r} after the end of the object")

    def _record(self, query: str, value: Any, line: int) -> Record:
        if not isinstance(value, dict):
            self._refuse(f"{query!r} has {shown(value)} for counts", line)
        counts: dict[str, float] = {}
        entries: dict[str, Any] = value
        for other, entry in entries.items():
            if (count := _count(entry)) is None:
                self._refuse(f"{query!r} with {other!r} is {shown(entry)}", line)
            counts[other] = count
        return Record(query, tuple(counts), tuple(counts.values()))

    def _take(self, wanted: str) -> None:
        """Go past a sign that must be next."""
        if (found := self._next()) != wanted:
            self._refuse(
                f"found {found!r} where {wanted!r} should be" if found else "ends too early"
            )
        self._at += 1

    def _next(self) -> str:
        """Go to the next sign that is no white space; return it, or nothing at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._go(match.end() if match else self._at)
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Take the next value, whole."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = "Unterminated" in error.msg or error.pos > len(self._text) - _CUT
                if not cut or not self._more():
                    line = self._line + self._text.count("\n", self._at, error.pos)
                    self._refuse(f"no JSON: {error.msg}", line)
            except RecursionError:
                self._refuse("lists within lists without end")
            else:
                self._go(end)
                return value

    def _more(self) -> bool:
        """Read on, as much as waits already, so that a long value is not tried too often."""
        if self._ended:
            return False
        waiting = self._text[self._at :]
        if len(waiting) > MAX_RECORD:
            self._refuse(f"the counts of one query are longer than {MAX_RECORD // 2**20} MiB")
        read = self._stream.read(max(CHUNK, len(waiting)))
        self._text, self._at, self._ended = waiting + read, 0, not read
        return bool(read)

    def _go(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _refuse(self, found: str, line: int | None = None) -> NoReturn:
        raise BadInputError(self._file, f"{found}; expected {FORM}", line=line or self._line)


def _count(entry: Any) -> float | None:
    """Return the count of an entry, 0 or more; None if it has none."""
    found: dict[str, Any] = entry if isinstance(entry, dict) else {}
    count: Any = found.get("count")
    return float(count) if type(count) in (int, float) and 0 <= count <= MAX_COUNT else None
