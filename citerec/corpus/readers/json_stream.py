"""Streams the objects of JSON files of any size: lines, one huge array, indented objects, pages of an API.

One object is in memory at a time. Brackets are counted outside of strings, so nesting costs no stack, and an object
that is not valid JSON does not hide the next one. A value in the notation of MongoDB's shell, as in AMiner's v13, is
read as JSON.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, cast

import orjson

from citerec.corpus.readers.files import Broken, Rows, StreamFaultError
from citerec.errors import shown
from citerec.inputs import BOM, MAX_LINE, lines_of

CHUNK = 2**20  # bytes read at once
# whole strings, and what is neither string nor bracket
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
_SCALAR = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,\]"][^\s,\]]*+(?=[\s,\]])', re.DOTALL)
_BETWEEN = re.compile(rb"[\s,]*+")
_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')
_SPREAD = re.compile(rb"\{\s*\n")  # how an object over several lines begins
_SHELL = re.compile(  # a string, or a value in the notation of MongoDB's shell
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    rb'|Number(?:Int|Long|Decimal)\(\s*"?(?P<number>-?[0-9.]+)"?\s*\)'
    rb'|(?:ObjectId|ISODate|UUID)\(\s*(?P<text>"[^"\\]*")\s*\)'
    rb"|\b(?P<none>NaN|undefined)\b",
    re.DOTALL,
)


def json_records(stream: BinaryIO) -> Rows:
    """Yield the objects of a stream with their lines; those on line 1 with their numbers.

    Raises:
        StreamFaultError: If the JSON ends too early, or one record is too long.
    """
    window = _Window(stream)
    first = window.peek()
    if first == b"[":
        window.move(window.at + 1)
        values = window.values(b"]")
    elif first == b"{" and _SPREAD.match(window.data, window.at):
        values = window.values(b"")
    else:
        stream.seek(0)
        values = lines_of(stream, MAX_LINE)
    for count, (line, value) in enumerate(values, start=1):
        if len(value) > MAX_LINE:
            yield line, Broken(f"a line of over {MAX_LINE:,} bytes; expected one record")
            continue
        row = _parse(value, count if first == b"[" else 0)
        for item in _items(row):
            yield (count if line == 1 else line), item


def first_record(head: bytes) -> Mapping[str, Any]:
    """Return the first object of a file by its first bytes; empty if it does not begin as JSON does.

    Of an object that is longer than `head`, and of an invalid one, the keys are returned, nested ones among them.
    """
    head = head.removeprefix(BOM).lstrip()
    if head[:1] not in {b"{", b"["}:
        return {}
    head = head.removeprefix(b"[").lstrip(b", \t\r\n")
    if head.startswith(b"{") and (end := _end_of_value(head, 0)):
        row = next(_items(_parse(head[:end], 1)), Broken(""))
        if not isinstance(row, Broken):
            return row
        head = head[:end]
    return dict.fromkeys(key.decode(errors="replace") for key in _KEY.findall(head))


class _Window:
    """The part of a stream that is being parsed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.data = stream.read(CHUNK).removeprefix(BOM)
        self.at = 0  # of the next byte in `data`
        self.line = 1  # of that byte

    def more(self) -> bool:
        """Read on, and forget what was parsed; return whether there was more."""
        rest = self.data[self.at :]
        piece = self._stream.read(max(CHUNK, len(rest)))  # doubles: a long object is scanned often
        self.data, self.at = rest + piece, 0
        return bool(piece)

    def move(self, end: int) -> None:
        """Go on at `end`."""
        self.line += self.data.count(b"\n", self.at, end)
        self.at = end

    def peek(self) -> bytes:
        """Return the first byte of the next value, or the bracket that closes the list; empty at the end."""
        while True:
            between = _BETWEEN.match(self.data, self.at)
            self.move(between.end() if between else self.at)
            if self.at < len(self.data):
                return self.data[self.at : self.at + 1]
            if not self.more():
                return b""

    def values(self, closing: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the values of a list with their lines, up to the bracket that closes it."""
        count = 0
        while (first := self.peek()) != closing:
            count, line = count + 1, self.line
            while not first or not (end := _end_of_value(self.data, self.at)):
                if len(self.data) - self.at > MAX_LINE:
                    raise StreamFaultError(f"record {count} has over {MAX_LINE:,} bytes", line)
                if not self.more():
                    cut = f"the file ends inside record {count}; it is cut off or damaged: fetch it again"
                    raise StreamFaultError(cut, line)
                first = first or self.peek()
            value = self.data[self.at : end]
            self.move(end)
            yield line, value


def _end_of_value(data: bytes, start: int) -> int:
    """Return where the value at `start` ends; 0 if `data` ends before."""
    if data[start] not in b"{[":
        match = _SCALAR.match(data, start)
        return match.end() if match else 0
    depth, at = 0, start
    while text := _TO_BRACKET.match(data, at):
        at = text.end()
        if at == len(data) or data[at] == 0x22:  # a string that does not end in `data`
            return 0
        depth += 1 if data[at] in b"{[" else -1
        at += 1
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
            return Broken(f"{what}not JSON: {error.msg} at character {error.pos + 1}")


def _plain(match: "re.Match[bytes]") -> bytes:
    return match["number"] or match["text"] or (b"null" if match["none"] else match[0])


def _items(row: Any) -> Iterator[Mapping[str, Any] | Broken]:
    """Yield a record, or those of a page of an API."""
    if isinstance(row, dict) and "meta" in row and isinstance(page := row.get("results"), list):
        for item in cast("list[Any]", page):
            yield from _items(item)
    elif isinstance(row, dict):
        yield cast("dict[str, Any]", row)
    else:
        yield (
            row
            if isinstance(row, Broken)
            else Broken(f"expected a JSON object, found {shown(row)}")
        )
