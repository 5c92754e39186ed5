"""Streams the objects of JSON files of any size: lines, one huge array, a list inside an object, indented objects.

Only one object is in memory at a time. Brackets are counted outside of strings, so nesting costs no stack, and an
object that is not valid JSON does not hide the next one.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import orjson

from citerec.corpus.readers.streams import Broken, Rows, StreamFaultError
from citerec.errors import shown
from citerec.inputs import BOM, MAX_LINE

CHUNK = 2**20  # bytes read at once
HEAD = 64 * 2**10  # bytes in which the list of an object must begin
_TEXT = rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+'
_TO_BRACKET = re.compile(_TEXT, re.DOTALL)  # whole strings, and what is neither string nor bracket
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LITERAL = re.compile(rb"[^\s,\]][^\s,\]]*+(?=[\s,\]])")
_BETWEEN = re.compile(rb"[\s,]*+")
_KEY = re.compile(rb'"([^"\\]{1,60})"\s*:')
_OPENING, _CLOSING = b"{[", b"}]"
_CUT = "the file ends inside record {}; it is cut off or damaged: fetch it again"

Repair = Callable[[bytes], bytes]  # turns what is almost JSON into JSON


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
            assert between is not None
            self.move(between.end())
            if self.at < len(self.data):
                return self.data[self.at : self.at + 1]
            if not self.more():
                return b""

    def value(self, number: int) -> bytes:
        """Return the next value; `number` is that of the record, for messages."""
        while not (end := _end_of_value(self.data, self.at)):
            if len(self.data) - self.at > MAX_LINE:
                raise StreamFaultError(f"record {number} has over {MAX_LINE:,} bytes", self.line)
            if not self.more():
                raise StreamFaultError(_CUT.format(number), self.line)
        value = self.data[self.at : end]
        self.move(end)
        return value

    def text_line(self) -> bytes:
        """Return the next line with its end, at most `MAX_LINE` + 1 bytes of it; empty at the end."""
        while (end := self.data.find(b"\n", self.at) + 1) == 0:
            if len(self.data) - self.at > MAX_LINE:
                return self._long_line()
            if not self.more():
                end = len(self.data)
                break
        line = self.data[self.at : end]
        self.move(end)
        return line

    def _long_line(self) -> bytes:
        start = self.data[self.at : self.at + MAX_LINE + 1]
        while (end := self.data.find(b"\n", self.at) + 1) == 0:
            self.at = len(self.data)
            if not self.more():
                return start
        self.move(end)
        return start

    def find(self, opener: "re.Pattern[bytes]") -> bool:
        """Go on after the next match of `opener`; return whether there is one."""
        while not (match := opener.search(self.data, self.at)):
            self.move(max(self.at, len(self.data) - HEAD))
            if not self.more():
                return False
        self.move(match.end())
        return True


def json_records(
    stream: BinaryIO, opener: "re.Pattern[bytes] | None" = None, repair: Repair | None = None
) -> Rows:
    """Yield the objects of a stream with their lines; of an array on one line, with their numbers.

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
        yield from _parsed(_values(window, b"]"), repair)
    elif first == b"{" and opener and opener.search(window.data, 0, window.at + HEAD):
        while window.find(opener):
            yield from _parsed(_values(window, b"]"), repair)
    elif first == b"{" and _is_spread(window):
        yield from _parsed(_values(window, b""), repair)
    else:
        yield from _line_records(window, repair)


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
    else:
        head = head.removeprefix(b"[")
    head = head.lstrip(b", \t\r\n")
    if head.startswith(b"{") and (end := _end_of_value(head, 0)):
        row = _parse(head[:end], 1, repair)
        if not isinstance(row, Broken):
            return frozenset(row)
        head = head[:end]
    return frozenset(key.decode(errors="replace") for key in _KEY.findall(head))


def _values(window: _Window, closing: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the values of a list up to its closing bracket, with their lines or, on one line, their numbers."""
    count, one_line, first_line = 0, False, window.line
    while (first := window.peek()) != closing:
        count += 1
        if not first:
            raise StreamFaultError(_CUT.format(count), window.line)
        line = window.line
        if count == 2:
            one_line = line == first_line
        elif count == 1:
            first_line = line
        yield (count if one_line else line), window.value(count)
    if closing:
        window.move(window.at + 1)


def _end_of_value(data: bytes, start: int) -> int:
    """Return where the value at `start` ends; 0 if `data` ends before."""
    if data[start] not in _OPENING:
        match = (_STRING if data[start] == 0x22 else _LITERAL).match(data, start)
        return match.end() if match else 0
    depth, at = 0, start
    while True:
        text = _TO_BRACKET.match(data, at)
        assert text is not None
        at = text.end()
        if at == len(data):
            return 0
        if data[at] in _OPENING:
            depth += 1
        elif data[at] in _CLOSING:
            depth -= 1
        else:  # a string that does not end in `data`
            return 0
        at += 1
        if depth == 0:
            return at


def _is_spread(window: _Window) -> bool:
    """Whether the first object, which may be longer than the window, is on several lines."""
    end = _end_of_value(window.data, window.at) or len(window.data)
    return b"\n" in window.data[window.at : end].rstrip(b"\n")


def _line_records(window: _Window, repair: Repair | None) -> Rows:
    while True:
        number = window.line
        if not (line := window.text_line()):
            return
        if len(line) > MAX_LINE:
            yield number, Broken(f"a line of over {MAX_LINE:,} bytes; expected one record a line")
        elif line.strip():
            yield number, _parse(line, 0, repair)


def _parsed(values: Iterator[tuple[int, bytes]], repair: Repair | None) -> Rows:
    for count, (line, value) in enumerate(values, start=1):
        yield line, _parse(value, count, repair)


def _parse(value: bytes, count: int, repair: Repair | None) -> dict[str, Any] | Broken:
    """Parse one record; `count` is its number in its list, or 0 if its line is known."""
    what = f"record {count} is " if count else ""
    try:
        record: Any = _loads(value, repair)
    except orjson.JSONDecodeError as error:
        return Broken(f"{what}not JSON: {error.msg} at character {error.pos + 1}")
    if isinstance(record, dict):
        return cast("dict[str, Any]", record)
    return Broken(f"expected {what and f'record {count} as '}a JSON object, found {shown(record)}")


def _loads(value: bytes, repair: Repair | None) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        if repair is None:
            raise
        return orjson.loads(repair(value))
