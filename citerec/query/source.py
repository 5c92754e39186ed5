"""Bytes from a file or standard input, made text; and which format that text is in."""

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from citerec.errors import BadInputError
from citerec.inputs import read_stream

_STDIN = "standard input"
_UNPACK = "unpack it first"
_UTF8 = "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"
_DOCUMENTS = (  # how the file starts, what that is, what to do
    (b"%PDF-", "a PDF", "pass its text: pdftotext paper.pdf - | citerec recommend --query -"),
    (b"PK\x03\x04", "a zip archive (or a Word document)", "save it as plain text"),
    (b"\xd0\xcf\x11\xe0", "an old Word document", "save it as plain text"),
    (b"{\\rtf", "an RTF document", "save it as plain text"),
    (b"\x89PNG", "a PNG image", "pass the text itself"),
    (b"\xff\xd8\xff", "a JPEG image", "pass the text itself"),
    (b"<?xml", "XML", "pass the title and the abstract as text"),
    (b"<!doctype", "HTML", "pass the title and the abstract as text"),
    (b"<html", "HTML", "pass the title and the abstract as text"),
)
_ENCODED = (
    (b"\x1f\x8b", "compressed by gzip", f"{_UNPACK}: gunzip FILE.gz"),
    (b"BZh", "compressed by bzip2", f"{_UNPACK}: bunzip2 FILE.bz2"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", f"{_UNPACK}: unzstd FILE.zst"),
    (b"\xfd7zXZ", "compressed by xz", f"{_UNPACK}: unxz FILE.xz"),
    (b"\xff\xfe", "UTF-16 text", _UTF8),
    (b"\xfe\xff", "UTF-16 text", _UTF8),
)
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_RIS = re.compile(r"^TY {1,2}-(?: |$)", re.MULTILINE)
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[\]{\"]|$))")


_MAX_BIBLIOGRAPHY = 32 * 2**20  # characters; they take a second a megabyte
_MAX_ENTRIES = 200_000  # likely ones, counted before they are parsed


class Kind(StrEnum):
    """The formats that a file of papers may be in; CSL is JSON, too."""

    JSON = "JSON"
    BIBTEX = "BibTeX"
    RIS = "RIS"
    TEXT = "plain text"


def read_bytes(
    path: str | Path, stdin: BinaryIO | None = None, *, hint: str = ""
) -> tuple[bytes, str]:
    """Read the file `path`, or standard input where that is `-`.

    Args:
        path: The file.
        stdin: What to read for `-`; `sys.stdin.buffer` if not given.
        hint: What to do if there is no such file.

    Returns:
        The bytes, and what messages shall call their source.

    Raises:
        BadInputError: If there is no such file, or it cannot be read.
    """
    if str(path) == "-":
        return read_stream(stdin or sys.stdin.buffer, _STDIN), _STDIN
    try:
        with Path(path).open("rb") as stream:
            return read_stream(stream, path), str(path)
    except FileNotFoundError:
        raise BadInputError(path, f"no such file{hint and f'; {hint}'}") from None
    except IsADirectoryError:
        raise BadInputError(path, "this is a folder, and a file was expected") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        what = getattr(error, "strerror", None) or str(error)
        raise BadInputError(path, f"cannot be read: {what}") from error


def decode(data: bytes, name: Path | str, *, reads: str, for_documents: str = "") -> str:
    r"""Return `data` as text, its lines ended by `\n`.

    Args:
        data: UTF-8; a byte order mark is dropped.
        name: What messages call the source.
        reads: What citerec would read here, for the message about anything else.
        for_documents: What to do with a PDF, a Word document and the like; by default how to make a query of it.

    Raises:
        BadInputError: If it is empty or no UTF-8 text; says what it is and what to do.
    """
    _refuse_foreign(data, name, reads, for_documents)
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


def _refuse_foreign(data: bytes, name: Path | str, reads: str, for_documents: str) -> None:
    """Raise for data that is some other thing than text, by how it starts or a NUL in it."""
    start = data[:64].lstrip().lower()
    documents = ((prefix, what, for_documents or todo) for prefix, what, todo in _DOCUMENTS)
    for prefix, what, todo in (*documents, *_ENCODED):
        if start.startswith(prefix.lower()):
            raise BadInputError(name, f"this is {what}; {reads}; {todo}")
    if b"\0" in data:
        raise BadInputError(name, f"this is binary data or UTF-16, not UTF-8 text; {reads}")


def refuse_long(text: str, kind: Kind, name: Path | str) -> None:
    """Raise for a bibliography or plain text that would take minutes to parse, before that is done."""
    if kind is Kind.JSON:  # which is fast, and may be a batch of many queries
        return
    if len(text) > _MAX_BIBLIOGRAPHY:
        found = f"{len(text):,} characters; at most {_MAX_BIBLIOGRAPHY:,}"
        raise BadInputError(name, f"this {kind} has {found} are read at once; split the file")
    entries = {Kind.BIBTEX: text.count("@"), Kind.RIS: text.count("\nTY  -")}.get(kind, 0)
    if entries > _MAX_ENTRIES:
        found = f"about {entries:,} entries; at most {_MAX_ENTRIES:,}"
        raise BadInputError(name, f"this {kind} has {found} are read at once; split the file")


def kind_of(text: str) -> Kind:
    """Tell by the content which format `text` is in; what is no other is plain text."""
    if _JSON.match(text):
        return Kind.JSON
    if _BIBTEX.search(text):
        return Kind.BIBTEX
    return Kind.RIS if _RIS.search(text) else Kind.TEXT
