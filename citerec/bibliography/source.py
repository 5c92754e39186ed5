"""Bytes from a file or standard input, made text; and which format that text is in."""

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from citerec.errors import BadInputError
from citerec.inputs import other_format, read_stream

_STDIN = "standard input"
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_RIS = re.compile(r"^TY {1,2}-(?: |$)", re.MULTILINE)
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[\]{\"]|$))")
_MAX_BIBLIOGRAPHY = 32 * 2**20  # characters; parsing takes a second per megabyte
_MAX_ENTRIES = 200_000  # estimated before parsing


class Kind(StrEnum):
    """The formats of a file of papers; CSL is JSON, too."""

    JSON = "JSON"
    BIBTEX = "BibTeX"
    RIS = "RIS"
    TEXT = "plain text"


def read_bytes(
    path: str | Path, stdin: BinaryIO | None = None, *, hint: str = ""
) -> tuple[bytes, str]:
    """Return the bytes of a file, or of standard input for `-`, and the name of their source in messages.

    Raises:
        BadInputError: If there is no such file (`hint` says what to do), or it cannot be read.
    """
    if str(path) == "-":
        if not (stdin or sys.stdin):  # Python has no stream for a closed one
            raise BadInputError(_STDIN, "this is closed; name a file, or pipe one into the command")
        return read_stream(stdin or sys.stdin.buffer, _STDIN), _STDIN
    try:
        with Path(path).open("rb") as stream:
            return read_stream(stream, path), str(path)
    except FileNotFoundError:
        raise BadInputError(path, f"no such file{hint and f'; {hint}'}") from None
    except IsADirectoryError:
        raise BadInputError(path, "this is a folder, expected a file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInputError(path, f"cannot be read: {reason}") from error


def decode(data: bytes, name: Path | str, *, reads: str) -> str:
    r"""Return UTF-8 as text, without a byte order mark, with lines ended by `\n`.

    Raises:
        BadInputError: If it is empty or not UTF-8; the message states what it is, and `reads`, the formats that can be
            read.
    """
    if other := other_format(data):
        raise BadInputError(name, f"this is {other}; {reads}")
    if b"\0" in data:
        raise BadInputError(name, f"this is binary data or UTF-16, not UTF-8 text; {reads}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(
            name,
            f"byte 0x{data[error.start]:02x} is not UTF-8; if this is Latin-1, "
            "convert it: iconv -f ISO-8859-1 -t UTF-8 FILE",
            line=data.count(b"\n", 0, error.start) + 1,
        ) from None
    if not text.strip():
        raise BadInputError(name, f"this is empty; {reads}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def kind_of(text: str, name: Path | str) -> Kind:
    """Recognise the format of `text` by its content; text of no other format is plain text.

    Raises:
        BadInputError: If it would take minutes to parse.
    """
    if _JSON.match(text):
        return Kind.JSON  # it is parsed fast, and may be a batch of many queries
    kind = Kind.RIS if _RIS.search(text) else Kind.TEXT
    kind = Kind.BIBTEX if _BIBTEX.search(text) else kind
    entries = {Kind.BIBTEX: text.count("@"), Kind.RIS: text.count("\nTY  -")}.get(kind, 0)
    if len(text) > _MAX_BIBLIOGRAPHY or entries > _MAX_ENTRIES:
        most = f"{_MAX_BIBLIOGRAPHY:,} characters and {_MAX_ENTRIES:,} entries"
        raise BadInputError(
            name, f"this {kind} is too long; expected at most {most}; split the file"
        )
    return kind
