"""What every reader yields and reads: records with their places, the head of a file, lines of text, JSON objects."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from citerec.bibliography.fields import Fields
from citerec.errors import BadInputError, BadRecordError, InvalidValueError, shown
from citerec.files.reading import (
    BOM,
    MAX_LINE,
    UNREADABLE,
    damaged,
    lines_of,
    open_unpacked,
    read_toml,
    reading,
)
from citerec.types import Json, Log, Paper

HEAD = 64 * 2**10  # bytes by which a format is recognised, unpacked
REPORT_EVERY = 500  # records
KEYS = read_toml(Path(__file__).with_name("keys.toml"))  # by the source of JSON


@dataclass(frozen=True, slots=True)
class Source:
    """The files that hold the papers of one corpus, in reading order."""

    path: Path  # as the user named it
    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()  # files of the folder that hold no records
    # of a library of whole texts: works that so many of its papers cite become papers; 0 for none
    add_cited: int = 0
    workers: int = 2  # processes that read whole texts
    # for temporary files of large dumps; None: the system's
    scratch: Path | None = None

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


class StreamFaultError(Exception):
    """A stream that cannot be read any further; raised by `records`, which does not know the file."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


# line or number of each record, from 1, and its fields, or why it cannot be parsed
Rows = Iterator[tuple[int, Json | str]]
Records = Callable[[BinaryIO], Rows]
ToPaper = Callable[[Fields], Paper]  # makes a paper of a record
BytesRead = Callable[[int], None]  # receives how many more bytes were read


def head_of(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked, at most `HEAD`; a damaged file gives those before the damage."""
    head = b""
    with reading(file), open_unpacked(file) as (stream, _):
        unpacked: Any = stream  # read1 returns what there is before the damage
        try:
            while len(head) < HEAD and (piece := unpacked.read1(HEAD - len(head))):
                head += piece
        except UNREADABLE:
            pass
    return head


def read_file(
    file: Path, records: Records, read: BytesRead = lambda more: None
) -> Rows:
    """Yield the records of one file; BadInputError if it cannot be read to its end."""
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
        fault = "not UTF-8 text; save it as UTF-8"  # `iconv` would destroy it if letters of it are
        raise BadInputError(file, fault, line=line + 1) from error
    except UNREADABLE as error:
        raise damaged(file, line, error) from error


def located(file: Path, line: int, row: Json | str, to_paper: ToPaper) -> Located:
    """Return a record as a paper, or as its fault."""
    if isinstance(row, str):
        return Located(file, line, BadRecordError(file, line, row, kind="broken_lines"))
    try:
        return Located(file, line, to_paper(Fields(row, file, line)))
    except BadRecordError as error:
        return Located(file, line, error)
    except InvalidValueError as error:  # of a reader that makes papers by itself
        return Located(
            file, line, BadRecordError(file, line, str(error), kind="wrong_types")
        )


# --- Streams of JSON objects: one is in memory at a time

# Brackets are counted outside of strings, so nesting costs no stack, and an invalid object does not hide the next one.
CHUNK = 2**20  # bytes read at once
# whole strings, and what is neither string nor bracket
_TO_BRACKET = re.compile(
    rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL
)
_SCALAR = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,\]"][^\s,\]]*+(?=[\s,\]])', re.DOTALL
)
_BETWEEN = re.compile(rb"[\s,]*+")
_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')
SPREAD = re.compile(rb"\{\s*\n")  # how an object over several lines begins
# what may precede the first record: a list, which an object may hold, as in the public data file of Crossref
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*+(?P<list>(?:\{\s*"items"\s*:\s*)?\[)?')
_SHELL = re.compile(  # a string, or a value in the notation of MongoDB's shell
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    rb'|Number(?:Int|Long|Decimal)\(\s*"?(?P<number>-?[0-9.]+)"?\s*\)'
    rb'|(?:ObjectId|ISODate|UUID)\(\s*(?P<text>"[^"\\]*")\s*\)'
    rb"|\b(?P<none>NaN|undefined)\b",
    re.DOTALL,
)


def json_records(stream: BinaryIO) -> Rows:
    """Yield the objects of a stream with their lines; those on line 1 with their numbers.

    StreamFaultError if the JSON ends too early, or one record is too long.
    """
    head = stream.read(HEAD)
    start = _START.match(head)
    assert start
    is_array = start["list"] is not None
    if is_array or SPREAD.match(head, start.end()):
        stream.seek(start.end())
        line = 1 + head.count(b"\n", 0, start.end())
        values = _values(stream, line, b"]" if is_array else b"")
    else:
        stream.seek(0)
        values = lines_of(stream, MAX_LINE)
    for count, (line, value) in enumerate(values, start=1):
        if len(value) > MAX_LINE:
            yield line, f"a line of over {MAX_LINE:,} bytes; expected one record"
            continue
        for item in _items(_parse(value, count if is_array else 0)):
            yield (count if line == 1 else line), item


def first_record(head: bytes) -> Json:
    """Return the first object of a file by its first bytes; empty if it does not begin as JSON does.

    Of an object that is longer than `head`, and of an invalid one, the keys are returned, nested ones among them.
    """
    with suppress(StreamFaultError):
        _, row = next(json_records(BytesIO(head)), (0, ""))
        if not isinstance(row, str):
            return row
    is_json = head.lstrip(BOM + b" \t\r\n").startswith((b"{", b"["))
    keys = _KEY.findall(head) if is_json else ()
    return dict.fromkeys(key.decode(errors="replace") for key in keys)


def _values(stream: BinaryIO, line: int, closing: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the values of a stream from a line on; those of an array up to the bracket that closes it."""
    data = b""
    at = 0
    count = 1
    while True:
        between = _BETWEEN.match(data, at)
        start = between.end() if between else at
        line = line + data.count(b"\n", at, start)
        at = start
        if closing and data[at : at + 1] == closing:
            break
        if end := _end_of_value(data, at):
            yield line, data[at:end]
            line = line + data.count(b"\n", at, end)
            at = end
            count += 1
            continue
        if len(data) - at > MAX_LINE:
            raise StreamFaultError(f"record {count} has over {MAX_LINE:,} bytes", line)
        data = data[at:]
        at = 0
        # doubles: a long object is scanned often
        piece = stream.read(max(CHUNK, len(data)))
        if not piece and not data and not closing:
            return
        if not piece:
            raise StreamFaultError(
                f"the file ends inside record {count}; it is cut off or damaged: fetch it again",
                line,
            )
        data += piece
    rest = (data[at:] + stream.read(CHUNK)).lstrip(b"]} \t\r\n")
    if rest.startswith((b"[", b"{")):
        raise StreamFaultError(
            "another list follows; expected one list in a file", line
        )


def _end_of_value(data: bytes, start: int) -> int:
    """Return where the value at `start` ends; 0 if `data` ends before."""
    if data[start : start + 1] not in (b"{", b"["):
        match = _SCALAR.match(data, start)
        return match.end() if match else 0
    depth = 0
    at = start
    while text := _TO_BRACKET.match(data, at):
        at = text.end() + 1
        # a string that does not end in `data`
        if at > len(data) or data[at - 1] == 0x22:
            return 0
        depth += 1 if data[at - 1] in b"{[" else -1
        if depth == 0:
            return at
    return 0


def _parse(value: bytes, count: int) -> Any:
    """Parse one record; `count` is its number in its list, or 0 if its line is known."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        try:
            return orjson.loads(_SHELL.sub(_plain, value))
        except orjson.JSONDecodeError:
            what = f"record {count} is " if count else ""
            return f"{what}not JSON: {error.msg} at character {error.pos + 1}"


def _plain(match: "re.Match[bytes]") -> bytes:
    return match["number"] or match["text"] or (b"null" if match["none"] else match[0])


PAGES = "items", "data", "recommendedPapers", "result"


def _items(row: Any) -> Iterator[Json | str]:
    """Yield a record, or those of a page of an API.

    They are in `results` of OpenAlex, in `message` of Crossref, in `data` or `recommendedPapers` of Semantic Scholar,
    and in `resultList` of Europe PMC.
    """
    if not isinstance(row, dict):
        is_broken = isinstance(row, str)
        yield row if is_broken else f"expected a JSON object, found {shown(row)}"
        return
    record = cast("Json", row)
    inner = record.get("message" if "message-type" in record else "resultList")
    if isinstance(inner, dict):
        record = cast("Json", inner)
    names = ("results",) if "meta" in record else PAGES
    page = next((record[name] for name in names if name in record), None)
    if isinstance(page, list) and "title" not in record:
        for item in cast("list[Any]", page):
            yield from _items(item)
    else:
        yield record


# --- Formats


def papers_of(
    files: Sequence[Path],
    to_paper: ToPaper,
    read: BytesRead,
    log: Log,
    records: Records = json_records,
    why: Callable[[Json], str | None] = lambda record: "",
) -> Iterator[Located]:
    """Yield the records of files as papers, except for those that `why` gives a reason to leave out.

    `log` receives how many were left out for each reason, such as `works that were deleted`; None is a reason that is
    not told.
    """
    counts = Counter[str | None]()
    for file in files:
        for line, row in read_file(file, records, read):
            reason = "" if isinstance(row, str) else why(row)
            counts[reason] += 1
            if reason == "":
                yield located(file, line, row, to_paper)
    for reason in sorted(filter(None, counts)):
        log(f"left out {counts[reason]:,} {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of corpora; a file is of it if `sniff` or, in case of JSON, `matches` says so.

    Attributes:
        read: Makes a paper of a record; the methods of `Fields` raise `BadRecordError` with file and line.
        records: Yields the records of an unpacked file, each with its line (or number), from 1; of a broken one
            what is wrong. It raises `StreamFaultError` if the rest cannot be read.
        sniff: Receives the first 64 KiB of a file, unpacked, and its name without .gz and the like.
        matches: Receives the first record of a file; of one longer than 64 KiB, its keys.
        papers: Reads a corpus in several passes or from several files; None for one file after the other.
        joins: Receives files of a folder, and the formats of those that are a corpus by themselves; returns those that
            are one corpus of this format together, none if they are not.
        note: A line for the user, such as what the format lacks.
    """

    read: ToPaper
    records: Records = json_records
    sniff: Callable[[bytes, str], bool] = lambda head, name: False
    matches: Callable[[Json], bool] = lambda record: False
    papers: Callable[[Source, BytesRead, Log], Iterator[Located]] | None = None
    joins: Callable[[Sequence[Path], Mapping[Path, str]], list[Path]] = (
        lambda files, formats: []
    )
    note: str = ""
