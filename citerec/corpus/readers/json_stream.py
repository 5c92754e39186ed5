"""Streams the objects of JSON files of any size: lines, one huge array, a list inside an object, indented objects.

One object is in memory at a time. Brackets are counted outside of strings, so nesting costs no stack, and an object
that is not valid JSON does not hide the next one.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import orjson

from citerec.corpus.readers.files import Broken, Rows, StreamFaultError
from citerec.errors import shown
from citerec.inputs import BOM, MAX_LINE, lines_of

CHUNK = 2**20  # bytes read at once
HEAD = 64 * 2**10  # bytes in which the list of an object must begin
# whole strings, and what is neither string nor bracket
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
_SCALAR = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s,\]"][^\s,\]]*+(?=[\s,\]])', re.DOTALL)
_BETWEEN = re.compile(rb"[\s,]*+")
_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')
_SPREAD = re.compile(rb"\{\s*\n")  # how an object over several lines begins

Repair = Callable[[bytes], bytes]  # turns what is almost JSON into JSON


def json_records(
    stream: BinaryIO, opener: "re.Pattern[bytes] | None" = None, repair: Repair | None = None
) -> Rows:
    """Yield the objects of a stream with their lines; those on line 1 with their numbers.

    Args:
        stream: JSON lines, an array of objects, objects over several lines, or objects that hold a list.
        opener: How the list begins of objects that hold one, such as `"results": [`.
        repair: Applied to an object that is not valid JSON, before it is parsed again.

    Raises:
        StreamFaultError: If the JSON ends too early, or one record is too long.
    """
    window = _Window(stream)
    first = window.peek()
    if first == b"[":
        window.move(window.at + 1)
        values = window.values(b"]")
    elif first == b"{" and opener and opener.search(window.data, 0, window.at + HEAD):
        values = window.lists(opener)
    elif first == b"{" and _SPREAD.match(window.data, window.at):
        values = window.values(b"")
    else:
        stream.seek(0)
        for number, line in lines_of(stream, MAX_LINE):
            if len(line) > MAX_LINE:
                yield number, Broken(f"a line of over {MAX_LINE:,} bytes; expected one record")
            else:
                yield number, _parse(line, 0, repair)
        return
    for count, (line, value) in enumerate(values, start=1):
        yield (count if line == 1 else line), _parse(value, count, repair)


def first_keys(
    head: bytes, opener: "re.Pattern[bytes] | None" = None, repair: Repair | None = None
) -> frozenset[str]:
    """Return the keys of the first object of a file by its first bytes; empty if it does not begin as JSON does.

    Of an object that is longer than `head`, and of an invalid one, nested keys are among them.
    """
    head = head.removeprefix(BOM).lstrip()
    if head[:1] not in {b"{", b"["}:
        return frozenset()
    if opener and head.startswith(b"{") and (match := opener.search(head)):
        head = head[match.end() :]
    head = head.removeprefix(b"[").lstrip(b", \t\r\n")
    if head.startswith(b"{") and (end := _end_of_value(head, 0)):
        row = _parse(head[:end], 1, repair)
        if not isinstance(row, Broken):
            return frozenset(row)
        head = head[:end]
    return frozenset(key.decode(errors="replace") for key in _KEY.findall(head))


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
        self.move(self.at + len(closing))

    def lists(self, opener: "re.Pattern[bytes]") -> Iterator[tuple[int, bytes]]:
        """Yield the values of each list that begins with `opener`."""
        while True:
            while not (match := opener.search(self.data, self.at)):
                self.move(max(self.at, len(self.data) - HEAD))
                if not self.more():
                    return
            self.move(match.end())
            yield from self.values(b"]")


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


def _parse(value: bytes, count: int, repair: Repair | None) -> dict[str, Any] | Broken:
    """Parse one record; `count` is its number in its list, or 0 if its line is known."""
    what = f"record {count} is " if count else ""
    try:
        try:
            record: Any = orjson.loads(value)
        except orjson.JSONDecodeError:
            if repair is None:
                raise
            record = orjson.loads(repair(value))
    except orjson.JSONDecodeError as error:
        return Broken(f"{what}not JSON: {error.msg} at character {error.pos + 1}")
    if isinstance(record, dict):
        return cast("dict[str, Any]", record)
    return Broken(f"expected {what and f'record {count} as '}a JSON object, found {shown(record)}")
