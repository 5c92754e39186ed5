"""Reads untrusted files within limits on size, time and memory; what may exceed them in a process of its own.

gzip, zstd and bz2 are recognised by their first bytes and unpacked as a stream, so limits apply to the unpacked bytes.
A parser never receives what exceeds a limit. Arrays are mapped after their type, length and range are checked; no
pickle is read.
"""

import bz2
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from isal import igzip, igzip_lib

from citerec.errors import BadInputError, CiterecError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")
MAX_LINE = 64 * 2**20  # bytes of a JSON record; the longest known record has 2 MB
MAX_ROW = 2**20  # bytes of a row of a run, of qrels, ids or word vectors
MAX_FILE = 256 * 2**20  # bytes of a file that is read as a whole
MAX_DATASET = 4 * 2**30  # bytes of a published dataset's file that is read as a whole
PACKED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh[1-9])"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"  # the latter: a skippable frame, written by pzstd
)
_TABLE = "a table (pass its column of DOIs or titles alone, or export it as BibTeX or RIS)"
OTHER_FORMATS = {  # by the first bytes, up to case and blanks; the first match decides
    rb"%pdf": "a PDF",
    rb"pk\x03\x04": "a zip archive or a Word document",
    rb"\xd0\xcf\x11\xe0": "an old Word document",
    rb"\x89png": "a PNG image",
    rb"(?:<\?xml[^>]*>\s*)?<rdf:rdf": "RDF (of Zotero? export the library as BibTeX or RIS)",
    rb"(?:<\?xml[^>]*>\s*)?<xml>\s*<records>": "EndNote's XML (export the library as BibTeX or RIS)",
    rb"<\?xml": "XML",
    rb"<(?:!doctype|html)": "HTML",
    rb"sqlite": "an SQLite database (of Zotero? export the library as BibTeX)",
    rb"par1": "a Parquet file",
    rb"\x1f\x8b": "packed by gzip (unpack it: gunzip FILE.gz)",
    rb"bzh": "packed by bzip2 (unpack it: bunzip2 FILE.bz2)",
    rb"\x28\xb5\x2f\xfd": "packed by zstd (unpack it: unzstd FILE.zst)",
    rb"\xfd7zxz": "packed by xz (unpack it: unxz FILE.xz)",
    rb"\xff\xfe|\xfe\xff": "UTF-16 text (convert it: iconv -f UTF-16 -t UTF-8 FILE)",
    rb"pmid- ?[0-9]": "PubMed's .nbib (Zotero turns it into BibTeX or RIS)",
    rb"%[0a-z] [^\n]+\n%[0-9a-z@] ": "EndNote's .enw (Zotero turns it into BibTeX or RIS)",
    rb"fn (?:clarivate|thomson|isi)|pt [a-z]\r?\n[a-z][a-z0-9] ": "an export of Web of Science as plain text "
    "(export it as BibTeX or RIS)",
    rb"\\(?:begin\{thebibliography\}|bibitem)": "LaTeX (pass the .bib file that it was made from)",
    # a column of titles or DOIs among others
    rb'(?=[^\n]*[,;\t])(?:[^\n]*[,;\t])?"?(?:article )?(?:title|doi|di|ti)"?(?:[,;\t](?! )|\r?\n)': _TABLE,
    rb"[^\x00]*\x00": "binary data or UTF-16, not UTF-8 text",
}
_OTHERS = [(re.compile(pattern, re.IGNORECASE), name) for pattern, name in OTHER_FORMATS.items()]
# raised when a damaged file is read
UNREADABLE = (
    EOFError,
    OSError,
    cast("type[Exception]", igzip_lib.IsalError),  # its stub says that it is an object
    zstd.ZstdError,
)
BOM = b"\xef\xbb\xbf"
# of a process of its own, and of each program that it runs
MAX_SECONDS = 20  # of a processor
MAX_WAIT = 60  # seconds until it ends
MAX_MEMORY = 2**30  # bytes
MAX_ANSWER = 64 * 2**20  # bytes of what it returns
_ISOLATED = "_CITEREC_ISOLATED"  # environment variable


# --- Texts


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn a failed read of `path` (missing, no permission, a name too long) into a `BadInputError`."""
    try:
        yield
    except OSError as error:
        raise BadInputError(path, f"cannot be read: {error.strerror or error}") from error


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
                    raise BadInputError(path, f"this is {other}; expected {expected} in UTF-8")
                if len(row) > MAX_ROW:
                    message = f"a line of more than {MAX_ROW:,} bytes; expected {expected}"
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
    return next((name for pattern, name in _OTHERS if pattern.match(start)), "")


def damaged(path: Path, line: int, error: Exception) -> BadInputError:
    """Return the error for one of `UNREADABLE`: a file that is cut off, damaged or gone after `line`."""
    if isinstance(error, OSError) and error.errno is not None:
        return BadInputError(path, f"cannot be read: {error.strerror}")
    condition = "cut off" if isinstance(error, EOFError) else "damaged"
    return BadInputError(
        path, f"the file is {condition} after line {line} ({error}); fetch it again or repack it"
    )


# --- Readers in a process of their own


def isolated(read: Callable[[], T], name: str, instead: str = "send less at once") -> T:
    """Return what `read`, which can be pickled, returns in a process of its own.

    A file may be made to loop, to recurse or to fill the memory; no other work waits for it then. BadInputError if it
    exceeds a limit, which advises `instead`; errors of `read` are raised here.
    """
    if _ISOLATED in os.environ:
        return read()
    path = os.pathsep.join(folder for folder in sys.path if folder)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", "from citerec.inputs import main; main()"],
            input=pickle.dumps((read, MAX_SECONDS)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MAX_WAIT,
            env=os.environ | {"PYTHONPATH": path, _ISOLATED: "1"},
            check=False,
        )
        answer = pickle.loads(done.stdout)
    except (subprocess.TimeoutExpired, EOFError, pickle.UnpicklingError):
        fault = f"reading this needs too much time or memory; {instead}"
        raise BadInputError(name, fault) from None
    if isinstance(answer, CiterecError):
        raise answer
    if isinstance(answer, Exception):
        fault = f"cannot be read: {type(answer).__name__}: {answer}"
        raise BadInputError(name, fault) from answer
    return answer


def main() -> None:
    """Write what the pickled reader on standard input returns or raises, pickled, to standard output."""

    def late(*_: object) -> None:
        raise TimeoutError

    read, seconds = pickle.load(sys.stdin.buffer)
    with suppress(ImportError, ValueError):  # Windows; there are lower limits
        import resource

        os.nice(5)
        signal.signal(signal.SIGXCPU, late)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    output = sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        answer = read()
    except (MemoryError, RecursionError, TimeoutError):
        return
    except Exception as error:
        answer = error
    if len(data := pickle.dumps(answer)) <= MAX_ANSWER:
        output.write(data)


# --- Arrays of an index


def save_array(path: Path, array: "npt.NDArray[Any]") -> None:
    """Write an array as `np.save` does, which misses that its last write failed, except into such a stream."""
    import numpy as np

    with path.open("w+b") as stream:  # no `io.BufferedWriter`, past which numpy writes by itself
        np.save(stream, array)


def open_array(
    path: Path, *kinds: "npt.DTypeLike", length: int | None = None
) -> "npt.NDArray[Any]":
    """Map the file of a one-dimensional array, of one of some types, into memory.

    OSError if it cannot be read; ValueError if type, shape or `length` differ, or the file has more or fewer bytes than
    its header states.
    """
    import numpy as np

    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # numpy parses the header as Python: it may raise anything
        raise ValueError(f"{path.name} is not a whole array as numpy writes it") from error
    if array.ndim != 1 or array.dtype not in [np.dtype(kind) for kind in kinds]:
        expected = " or ".join(str(np.dtype(kind)) for kind in kinds)
        raise ValueError(f"{path.name}: {array.dtype} of shape {array.shape}, expected {expected}")
    if length is not None and len(array) != length:
        raise ValueError(f"{path.name} holds {len(array):,} numbers, expected {length:,}")
    if path.stat().st_size != array.offset + array.nbytes:
        raise ValueError(f"{path.name} has more bytes than {len(array):,} numbers need")
    return np.asarray(array)  # slices of a memory map cost ten times as much


def check_rows(
    name: str, rows: "npt.NDArray[np.integer]", end: int, *, distinct: bool = False
) -> None:
    """Raise ValueError unless numbers are at least 0 and below `end`, and each at most once if `distinct`."""
    import numpy as np

    if len(rows) and not (rows.min() >= 0 and rows.max() < end):
        raise ValueError(f"{name} names rows that are not from 0 to {end - 1:,}")
    if distinct:
        seen = np.zeros(end, np.bool_)
        seen[rows] = True
        if np.count_nonzero(seen) != len(rows):
            raise ValueError(f"{name} names a row twice")


def check_ends(name: str, ends: "npt.NDArray[np.integer]", last: int) -> None:
    """Raise ValueError unless the offsets of consecutive lists start at 0, end at `last` and never fall."""
    if not len(ends) or ends[0] != 0 or ends[-1] != last or (ends[1:] < ends[:-1]).any():
        raise ValueError(f"{name} does not rise from 0 to {last:,}")
