"""Reading files of users: unpacked, decoded, within bounds; errors name the file, the line and what was found."""

import bz2
import re
import sys
import tomllib  # noqa: TID251 (here alone)
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from isal import igzip, igzip_lib

from citerec.errors import (
    BadInputError,
)

# bytes that are not UTF-8, as Python keeps them
_FOREIGN = re.compile("[\udc80-\udcff]")


def decoded(data: bytes) -> tuple[str, int]:
    r"""Return UTF-8 as text, without a byte order mark, with lines ended by `\n`, and how many bytes were foreign.

    A byte that is not UTF-8 is read as Windows-1252, whose letters are those of Latin-1; the others are not affected.
    """
    text = data.decode("utf-8-sig", "surrogateescape")
    text, foreign = _FOREIGN.subn(
        lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode("cp1252", "replace"), text
    )
    return text.replace("\r\n", "\n").replace("\r", "\n"), foreign


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; BadInputError if it is none."""
    try:
        return tomllib.loads(read_whole(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also no UTF-8, a 32nd of May
        raise BadInputError(path, f"not TOML: {error}") from error


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


MAX_LINE = 64 * 2**20  # bytes of a JSON record; the longest known record has 2 MB
MAX_ROW = 2**20  # bytes of a row of a run, of qrels, ids or word vectors
MAX_FILE = 256 * 2**20  # bytes of a file that is read as a whole
MAX_DATASET = 4 * 2**30  # bytes of a published dataset's file that is read as a whole
PACKED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh[1-9])"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"  # the latter: a skippable frame, written by pzstd
)
_TABLE = (
    "a table (pass its column of DOIs or titles alone, or export it as BibTeX or RIS)"
)
OTHER_FORMATS = {  # by the first bytes, up to case and blanks; the first match decides
    rb"%pdf": "a PDF",
    rb"pk\x03\x04": "a zip archive (unpack it; of a project in LaTeX, give the main file) or a Word document",
    rb"\xd0\xcf\x11\xe0": "an old Word document, or one with a password (save it as .docx, without a password)",
    rb"\x89png|\xff\xd8\xff|gif8": "a picture (run OCR on it, which makes a text of it)",
    rb"(?:<\?xml[^>]*>\s*)?<rdf:rdf": "RDF (of Zotero? export the library as BibTeX or RIS)",
    rb"(?:<\?xml[^>]*>\s*)?<xml>\s*<records>": "EndNote's XML (export the library as BibTeX or RIS)",
    rb"<\?xml": "XML",
    rb"<(?:!doctype|html)": "HTML",
    rb"sqlite": "an SQLite database (of Zotero? export the library as BibTeX)",
    rb"par1": "a Parquet file",
    rb"[\s\S]{257}ustar": "a tar archive (unpack it: tar -xf FILE; of a project in LaTeX, give the main file)",
    rb"\x1f\x8b": "packed by gzip (unpack it: gunzip FILE.gz, or tar -xf FILE.tar.gz)",
    rb"bzh": "packed by bzip2 (unpack it: bunzip2 FILE.bz2)",
    rb"\x28\xb5\x2f\xfd": "packed by zstd (unpack it: unzstd FILE.zst)",
    rb"\xfd7zxz": "packed by xz (unpack it: unxz FILE.xz)",
    rb"\xff\xfe|\xfe\xff": "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)",
    rb"\\(?:begin\{thebibliography\}|bibitem)": "LaTeX (pass the .bib file that it was made from)",
    # a column of titles or DOIs among others
    rb'(?=[^\n]*[,;\t])(?:[^\n]*[,;\t])?"?(?:(?:article|item) )?(?:title|doi|di|ti)"?(?:[,;\t](?! )|\r?\n)': _TABLE,
}
# raised when a damaged file is read
UNREADABLE = (
    EOFError,
    OSError,
    cast("type[Exception]", igzip_lib.IsalError),  # its stub says that it is an object
    zstd.ZstdError,
)
BOM = b"\xef\xbb\xbf"


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn a failed read of `path` (missing, no permission, a name too long) into a `BadInputError`."""
    try:
        yield
    except OSError as error:
        raise BadInputError(
            path, f"cannot be read: {error.strerror or error}"
        ) from error


@contextmanager
def open_unpacked(path: Path) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, unpacking gzip, zstd and bz2; yield the unpacked and the raw stream."""
    with path.open("rb") as raw:
        packed = PACKED.match(raw.read(8))
        raw.seek(0)
        # igzip takes a third of the time of `gzip`
        openers = {"gzip": igzip.open, "bz2": bz2.open, "zstd": zstd.open}
        if packed and packed.lastgroup:
            with openers[packed.lastgroup](raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        else:
            yield raw, raw


def lines_of(stream: BinaryIO, longest: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a stream with their numbers, from 1; blank lines and a byte-order mark are skipped.

    A line of more than `longest` bytes is truncated to `longest` + 1 bytes, so that the caller can recognise it.
    """
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        rest = line if len(line) > longest else b"\n"
        while rest and not rest.endswith(b"\n"):  # skip what was not read of the line
            rest = stream.readline(2**20)
        if line.strip():
            yield number, line


def read_rows(path: Path, expected: str) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a text file with their line numbers, from 1; blank lines are skipped.

    BadInputError if a row has more than `MAX_ROW` bytes or a NUL, or the file cannot be read to its end.
    """
    number = 0
    try:
        with open_unpacked(path) as (stream, _):
            for number, row in lines_of(stream, MAX_ROW):
                other = other_format(row) if number == 1 else ""
                if other and other != _TABLE:  # which is rows of text
                    raise BadInputError(
                        path, f"this is {other}; expected {expected} in UTF-8"
                    )
                if len(row) > MAX_ROW:
                    message = (
                        f"a line of more than {MAX_ROW:,} bytes; expected {expected}"
                    )
                    raise BadInputError(path, message, line=number)
                if b"\0" in row:
                    message = f"binary data or UTF-16; expected {expected} in UTF-8"
                    raise BadInputError(path, message, line=number)
                yield number, row
    except UNREADABLE as error:
        raise damaged(path, number, error) from error


def read_whole(path: Path, *, most: int = MAX_FILE) -> bytes:
    """Return the bytes of a file, not unpacked; BadInputError if it cannot be read or has more than `most`."""
    with reading(path), path.open("rb") as stream:
        return read_stream(stream, path, most=most)


def read_stream(stream: BinaryIO, name: Path | str, *, most: int = MAX_FILE) -> bytes:
    """Return all bytes of a stream; BadInputError if there are more than `most`, of which one more is read."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise BadInputError(
            name, f"more than {most // 2**20:,} MB, the limit for one file; split it"
        )
    return data


def other_format(data: bytes) -> str:
    """Return what a file is, by its first bytes, and what to do, if it is known not to be read as text; else empty."""
    start = data[:4096].removeprefix(BOM).lstrip()
    binary = "binary data or UTF-16, not UTF-8 text (save it as text in the program that wrote it)"
    for pattern, name in OTHER_FORMATS.items():
        if re.match(pattern, start, re.IGNORECASE):
            return name
    return binary if b"\0" in data else ""


def damaged(path: Path, line: int, error: Exception) -> BadInputError:
    """Return the error for one of `UNREADABLE`: a file that is cut off, damaged or gone after `line`."""
    if isinstance(error, OSError) and error.errno is not None:
        return BadInputError(path, f"cannot be read: {error.strerror}")
    condition = "cut off" if isinstance(error, EOFError) else "damaged"
    return BadInputError(
        path,
        f"the file is {condition} after line {line} ({error}); fetch it again or repack it",
    )
