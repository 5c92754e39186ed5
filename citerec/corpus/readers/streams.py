"""Streams of records: what every file reader yields, decoded lines of text, and faults with file and line."""

import codecs
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from citerec.corpus.readers.fields import Fields
from citerec.errors import BadInputError, BadRecordError
from citerec.inputs import BOM, UNREADABLE, damaged, open_unpacked, reading
from citerec.types import Paper

HEAD = 64 * 2**10  # bytes by which a format is recognised, unpacked
REPORT_EVERY = 500  # records
MAX_TEXT_LINE = 16 * 2**20  # characters of a line of a text format
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Located:
    """A record of a corpus with its place: a paper, or the fault of the record."""

    path: Path
    line: int
    paper: Paper | BadRecordError


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that cannot be parsed; `records` yields it instead of fields, and continues with the next record."""

    message: str
    kind: str = "broken_lines"  # by which faults are counted


class StreamFaultError(Exception):
    """A stream that cannot be read any further; raised by `records`, which does not know the file."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line = message, line


Rows = Iterator[tuple[int, Mapping[str, Any] | Broken]]  # line or number of each record, from 1
Records = Callable[[BinaryIO], Rows]


def head_of(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked, at most `HEAD`; a damaged file gives those before the damage.

    Raises:
        BadInputError: If it cannot be opened.
    """
    pieces: list[bytes] = []
    with reading(file), open_unpacked(file) as (stream, _):
        unpacked: Any = stream  # read1 returns what there is before the damage
        try:
            while (length := sum(map(len, pieces))) < HEAD:
                if not (piece := unpacked.read1(HEAD - length)):
                    break
                pieces.append(piece)
        except UNREADABLE:
            pass
    return b"".join(pieces)


def head_text(head: bytes) -> str:
    """Return the first bytes of a file as text, without a byte-order mark; undecodable bytes are replaced."""
    if encoding := _UTF16.get(head[:2]):
        return head[2:].decode(encoding, errors="replace")
    return head.removeprefix(BOM).decode(errors="replace")


def read_file(file: Path, records: Records, read: Callable[[int], None]) -> Rows:
    """Yield the records of one file as a `records` function parses it.

    Args:
        file: Plain, or packed by gzip, zstd or bz2.
        records: Parses the unpacked stream.
        read: Receives from time to time how many more bytes of the file have been read.

    Raises:
        BadInputError: If the file cannot be read to its end.
    """
    line = position = 0
    try:
        with open_unpacked(file) as (stream, raw):
            for count, (line, row) in enumerate(records(stream), start=1):
                yield line, row
                if count % REPORT_EVERY == 0:
                    read(raw.tell() - position)
                    position = raw.tell()
        read(file.stat().st_size - position)
    except StreamFaultError as fault:
        raise BadInputError(file, fault.message, line=fault.line) from fault
    except UNREADABLE as error:
        raise damaged(file, line, error) from error


def located(
    file: Path, line: int, row: Mapping[str, Any] | Broken, to_paper: Callable[[Fields], Paper]
) -> Located:
    """Return a record as a paper, or as its fault."""
    if isinstance(row, Broken):
        return Located(file, line, BadRecordError(file, line, row.message, kind=row.kind))
    try:
        return Located(file, line, to_paper(Fields(row, file, line)))
    except BadRecordError as error:
        return Located(file, line, error)


def text_lines(stream: BinaryIO, *, universal: bool = True) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a text with their numbers, from 1, each without its line end.

    UTF-16 is recognised by its byte-order mark; all else is read as UTF-8.

    Args:
        stream: The bytes; it is not closed.
        universal: Whether `\r` alone ends a line, too.

    Raises:
        StreamFaultError: If the text cannot be decoded, or a line is too long.
    """
    number = 0
    text = text_stream(stream, newline=None if universal else "\n")
    while True:
        try:
            line = text.readline(MAX_TEXT_LINE + 1)
        except UnicodeDecodeError as error:
            raise not_text(error, number + 1) from error
        if not line:
            break
        number += 1
        if len(line) > MAX_TEXT_LINE:
            raise StreamFaultError(f"a line of over {MAX_TEXT_LINE:,} characters", number)
        yield number, line.rstrip("\r\n")
    text.detach()


def not_text(error: UnicodeDecodeError, line: int) -> StreamFaultError:
    """Return the fault of a text that is not in its encoding; `line` is near it, since text is decoded in blocks."""
    if error.encoding.startswith("utf-16"):
        return StreamFaultError("damaged UTF-16 text", line)
    byte = error.object[error.start]
    after = error.object.count(b"\n", 0, error.start)
    return StreamFaultError(
        f"byte 0x{byte:02x} is not UTF-8; if this is Latin-1, convert it: iconv -f ISO-8859-1 -t UTF-8 FILE",
        line + after,
    )


class _Unclosed(io.RawIOBase):
    """Passes reads on to a stream that it does not close."""

    def __init__(self, stream: BinaryIO, first: bytes) -> None:
        self._stream, self._first = stream, first

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first[: len(buffer)] or self._stream.read(len(buffer))
        self._first = self._first[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def text_stream(stream: BinaryIO, *, newline: str | None) -> io.TextIOWrapper:
    """Return a text stream over bytes, without a byte-order mark; `newline` is as for `open`."""
    first = stream.read(3)
    encoding = _UTF16.get(first[:2])
    first = first[2:] if encoding else first.removeprefix(BOM)
    return io.TextIOWrapper(prefixed(stream, first), encoding or "utf-8", newline=newline)


def prefixed(stream: BinaryIO, first: bytes) -> io.BufferedReader:
    """Return a stream of `first` and the rest of `stream`, which is not closed with it."""
    return io.BufferedReader(_Unclosed(stream, first), 2**16)
