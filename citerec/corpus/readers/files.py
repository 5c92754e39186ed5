"""What every reader yields and reads: records with their places, the head of a file, lines of text."""

import csv
import io
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from citerec.corpus.readers.fields import Fields
from citerec.errors import BadInputError, BadRecordError
from citerec.inputs import BOM, UNREADABLE, damaged, open_unpacked, reading
from citerec.types import Log, Paper

HEAD = 64 * 2**10  # bytes by which a format is recognised, unpacked
REPORT_EVERY = 500  # records
MAX_TEXT_LINE = 16 * 2**20  # characters of a line of a text format
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Source:
    """The files that hold the papers of one corpus, in reading order."""

    path: Path  # as the user named it
    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()  # files of the folder that hold no records

    @property
    def folder(self) -> Path:
        """The folder that may also hold splits and queries of the corpus."""
        return self.path if self.path.is_dir() else self.path.parent


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


class StreamFaultError(Exception):
    """A stream that cannot be read any further; raised by `records`, which does not know the file."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line = message, line


Rows = Iterator[tuple[int, Mapping[str, Any] | Broken]]  # line or number of each record, from 1
Records = Callable[[BinaryIO], Rows]
BytesRead = Callable[[int], None]  # receives how many more bytes were read


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of corpora; a file is of it if `sniff` or, in case of JSON, `matches` says so.

    Attributes:
        records: Yields the records of an unpacked file, each with its line (or number), from 1; broken ones as
            `Broken`. It raises `StreamFaultError` if the rest cannot be read.
        read: Makes a paper of a record; the methods of `Fields` raise `BadRecordError` with file and line.
        sniff: Receives the first 64 KiB of a file, unpacked, and its name without .gz and the like.
        matches: Receives the first record of a file; of one longer than 64 KiB, its keys.
        papers: Reads a corpus in several passes or from several files, with a folder for temporary files or None;
            None for one file after the other.
        note: A line for the user, such as what the format lacks.
    """

    records: Records
    read: Callable[[Fields], Paper]
    sniff: Callable[[bytes, str], bool] = lambda head, name: False
    matches: Callable[[Mapping[str, Any]], bool] = lambda record: False
    papers: Callable[[Source, BytesRead, Log, Path | None], Iterator[Located]] | None = None
    note: str = ""


def head_of(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked, at most `HEAD`; a damaged file gives those before the damage.

    Raises:
        BadInputError: If it cannot be opened.
    """
    head = b""
    with reading(file), open_unpacked(file) as (stream, _):
        unpacked: Any = stream  # read1 returns what there is before the damage
        try:
            while len(head) < HEAD and (piece := unpacked.read1(HEAD - len(head))):
                head += piece
        except UNREADABLE:
            pass
    return head


def head_text(head: bytes) -> str:
    """Return the first bytes of a file as text, without a byte-order mark; undecodable bytes are replaced."""
    if head[:2] in _UTF16:
        return head.decode("utf-16", errors="replace")
    return head.removeprefix(BOM).decode(errors="replace")


def read_file(file: Path, records: Records, read: BytesRead = lambda more: None) -> Rows:
    """Yield the records of one file.

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
    except UnicodeDecodeError as error:
        advice = "not UTF-8 text; if this is Latin-1, convert it: iconv -f ISO-8859-1 -t UTF-8 FILE"
        raise BadInputError(file, advice, line=line + 1) from error
    except csv.Error as error:
        message = f"not CSV: {error}; is a quote not closed?"
        raise BadInputError(file, message, line=line + 1) from error
    except UNREADABLE as error:
        raise damaged(file, line, error) from error


def located(
    file: Path, line: int, row: Mapping[str, Any] | Broken, to_paper: Callable[[Fields], Paper]
) -> Located:
    """Return a record as a paper, or as its fault."""
    if isinstance(row, Broken):
        return Located(file, line, BadRecordError(file, line, row.message, kind="broken_lines"))
    try:
        return Located(file, line, to_paper(Fields(row, file, line)))
    except BadRecordError as error:
        return Located(file, line, error)


@contextmanager
def text_stream(stream: BinaryIO, *, newline: str | None) -> Generator[io.TextIOWrapper]:
    """Yield a text stream over bytes in UTF-8, or in UTF-16 with its byte-order mark; `newline` is as for `open`."""
    start = stream.read(2)
    stream.seek(0)
    text = io.TextIOWrapper(stream, "utf-16" if start in _UTF16 else "utf-8-sig", newline=newline)
    try:
        yield text
    finally:
        text.detach()  # else the stream would be closed with it


def text_lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1, each without its line end.

    Raises:
        StreamFaultError: If a line is too long.
    """
    number = 0
    with text_stream(stream, newline=None) as text:
        while line := text.readline(MAX_TEXT_LINE + 1):
            number += 1
            if len(line) > MAX_TEXT_LINE:
                raise StreamFaultError(f"a line of over {MAX_TEXT_LINE:,} characters", number)
            yield number, line.rstrip("\n")


def text_blocks(stream: BinaryIO, start: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that begin with lines of a pattern, each with the number of its first line."""
    first, block = 0, list[str]()
    for number, line in text_lines(stream):
        if start.match(line):
            if block:
                yield first, "\n".join(block)
            first, block = number, [line]
        elif block:
            block.append(line)
    if block:
        yield first, "\n".join(block)
