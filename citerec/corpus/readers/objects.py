"""Streams the objects of JSON: of a list, one after another, or the lists within one object; with their lines.

A list of a gigabyte is read with the memory of its longest object; an object that is not valid JSON is a broken record,
and the next one is read.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import orjson

from citerec.corpus.readers.streams import Broken, Rows, StreamFaultError
from citerec.inputs import BOM, MAX_LINE

_CHUNK = 2**18
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}]|"', re.DOTALL)


def json_objects(stream: BinaryIO, *, depth: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the objects of a JSON file with the lines at which they begin, as bytes.

    Args:
        stream: The file.
        depth: How many objects enclose the objects: 1 for `{"items": [{…}, {…}]}`.

    Raises:
        StreamFaultError: If the file ends within an object, or an object is too long.
    """
    buffer, line = b"", 1
    level, start, at = (
        0,
        0,
        0,
    )  # start: of the object in the buffer; at: where the next token is searched
    first = True
    while chunk := stream.read(max(_CHUNK, len(buffer))):  # grows, so that long strings stay linear
        buffer += chunk.removeprefix(BOM) if first else chunk
        first = False
        counted = 0
        while token := _TOKEN.search(buffer, at):
            sign = token[0]
            if sign == b'"':  # a string that the buffer does not hold completely
                at = token.start()
                break
            at = token.end()
            if sign == b"{":
                if level == depth:
                    line += buffer.count(b"\n", counted, token.start())
                    counted = start = token.start()
                level += 1
            elif sign == b"}":
                level = max(level - 1, 0)
                if level == depth:
                    yield line, buffer[start:at]
                    line += buffer.count(b"\n", counted, at)
                    counted = start = at
        else:
            at = len(buffer)
        keep = start if level > depth else at
        line += buffer.count(b"\n", counted, keep)
        buffer, at, start = buffer[keep:], at - keep, 0
        if len(buffer) > MAX_LINE:
            raise StreamFaultError(f"a record of over {MAX_LINE:,} bytes", line)
    if level > depth:
        raise StreamFaultError("the file ends within this record; fetch or export it again", line)


def object_records(stream: BinaryIO, *, depth: int = 0) -> Rows:
    """Yield the objects of a JSON file as `json_objects` finds them, parsed; invalid ones as `Broken`."""
    for line, text in json_objects(stream, depth=depth):
        try:
            record: Any = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            yield line, Broken(f"not JSON: {error.msg} (line {error.lineno} of this record)")
        else:
            yield line, cast("dict[str, Any]", record)
