"""The files of a corpus and their lines, whatever they are packed with."""

import bz2
import gzip
import hashlib
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from citerec.errors import BadInputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_LINE = 64 * 2**20  # bytes; the longest real record that we met has 2 MB
PACKED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh[1-9])"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"  # the latter: a frame to skip, by pzstd
)
FOREIGN = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive",
    b"\x89PNG": "a PNG image",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"SQLite": "an SQLite database",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xfd7zXZ": "xz-packed",
}
UNREADABLE = (EOFError, OSError, zlib.error, zstd.ZstdError)  # what reading a bad file raises
TELL_EVERY = 1000  # lines
BOM = b"\xef\xbb\xbf"
OPENING = re.compile(rb'\{[ \t]*"')  # how a record begins
SPREAD = re.compile(rb"\{\s*\n")  # how one JSON object over many lines begins: settings, no records
RECORD_SUFFIXES = {".json", ".jsonl", ".ndjson"}
ASIDE = {"splits", "qrels"}  # folders that go with a corpus but hold no papers


@dataclass(frozen=True, slots=True)
class Source:
    """The files that hold the papers of one corpus, in the order they are read."""

    path: Path  # as the user named it
    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()  # files of the folder that hold no records

    @property
    def folder(self) -> Path:
        """Where what goes with the corpus lies: its splits, its queries."""
        return self.path if self.path.is_dir() else self.path.parent


def find_source(path: Path) -> Source:
    """Find the files of the corpus at `path`, a file or a folder of shards.

    Raises:
        BadInputError: If there is nothing to read, or it is an index folder.
    """
    with reading(path):
        if not path.exists():
            raise BadInputError(path, "no such file or folder; name a corpus file or folder")
        if path.is_file():
            return Source(path, (path,))
        if not path.is_dir():
            raise BadInputError(path, "neither a file nor a folder; a corpus is read several times")
        if _is_index(path):
            raise BadInputError(path, "this is an index, not a corpus; name what it was built from")
        shards, ignored = _shards(path)
    if not shards:
        raise BadInputError(
            path, "no corpus file in this folder; expected JSONL files, plain or as .gz .zst .bz2"
        )
    return Source(path, tuple(shards), tuple(ignored))


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn a failed read of `path` (gone, no permission, a name too long) into a `BadInputError`."""
    try:
        yield
    except OSError as error:
        raise BadInputError(path, f"cannot be read: {error.strerror or error}") from error


def _is_index(folder: Path) -> bool:
    return (folder / "manifest.json").is_file() and (folder / "papers.arrow").is_file()


def _shards(folder: Path) -> tuple[list[Path], list[Path]]:
    indexes = {arrow.parent for arrow in folder.rglob("papers.arrow") if _is_index(arrow.parent)}
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not _is_aside(file.relative_to(folder))
        and indexes.isdisjoint(file.parents)
    ]
    by_stem = {_plain_name(file): file for file in files if file.parent == folder}
    if by_stem.keys() >= {"corpus.jsonl", "queries.jsonl"}:  # BEIR's layout
        return [by_stem["corpus.jsonl"]], [f for f in files if f != by_stem["corpus.jsonl"]]
    shards = [file for file in files if _holds_records(file)]
    return shards, [file for file in files if file not in set(shards)]


def _is_aside(relative: Path) -> bool:
    return any(part.startswith((".", "_")) or part in ASIDE for part in relative.parts)


def _plain_name(file: Path) -> str:
    return file.with_suffix("").name if file.suffix in {".gz", ".zst", ".bz2"} else file.name


def _holds_records(file: Path) -> bool:
    """Whether a file of a folder is a shard: by its name, else by how it begins."""
    name = Path(_plain_name(file))
    try:
        with open_unpacked(file) as (stream, _):
            head = stream.read(64).removeprefix(BOM).lstrip()
    except UNREADABLE:
        return True  # reading it on will say what is wrong
    if name.suffix in RECORD_SUFFIXES or (name.suffix == "" and name.name != file.name):
        return file.stat().st_size > 0 and not (name.suffix == ".json" and SPREAD.match(head))
    return OPENING.match(head) is not None


@contextmanager
def open_unpacked(path: Path) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, unpacking gzip, zstd and bz2 by their first bytes; give the text and the raw stream."""
    with path.open("rb") as raw:
        packed = PACKED.match(raw.read(8))
        kind = packed.lastgroup if packed else None
        raw.seek(0)
        if kind == "gzip":
            with gzip.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        elif kind == "bz2":
            with bz2.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        elif kind == "zstd":
            with zstd.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        else:
            yield raw, raw


def read_lines(
    path: Path, read: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1; blank ones are left out.

    A line of over `MAX_LINE` bytes, which no record has, comes cut, one byte longer than that.

    Args:
        path: The file, plain or packed.
        read: Is told now and then how many more bytes of the file have been read.

    Raises:
        BadInputError: If the file cannot be read, is packed and cut or damaged, or is no text.
    """
    number = position = 0
    try:
        with open_unpacked(path) as (stream, raw):
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(BOM)
                    _refuse_foreign(path, line)
                if len(line) > MAX_LINE:
                    _skip_line(stream, line)
                if number % TELL_EVERY == 0:
                    read(raw.tell() - position)
                    position = raw.tell()
                if line.strip():
                    yield number, line
            read(raw.tell() - position)
    except UNREADABLE as error:
        raise _fault(path, number, error) from error


def _skip_line(stream: BinaryIO, line: bytes) -> None:
    """Read on to the end of a line that was read in part."""
    while line and not line.endswith(b"\n"):
        line = stream.readline(MAX_LINE)


def size_of(source: Source) -> int:
    """Return how many bytes a corpus has, as it is packed.

    Raises:
        BadInputError: If one of its files is gone.
    """
    with reading(source.path):
        return sum(file.stat().st_size for file in source.files)


def sha256_of(source: Source) -> str:
    """Return the checksum of a corpus: of its file, or of the list of its shards' checksums.

    Raises:
        BadInputError: If one of its files cannot be read.
    """
    sums = [(_sha256(file), file.name) for file in source.files]
    if len(sums) == 1:
        return sums[0][0]
    listing = "".join(f"{digest}  {name}\n" for digest, name in sums)
    return hashlib.sha256(os.fsencode(listing)).hexdigest()


def _sha256(file: Path) -> str:
    with reading(file), file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_foreign(path: Path, line: bytes) -> None:
    for magic, what in FOREIGN.items():
        if line.startswith(magic):
            raise BadInputError(path, f"this is {what}; expected JSON lines in UTF-8")
    if b"\0" in line[:4096]:
        raise BadInputError(path, "this is binary data; expected JSON lines in UTF-8")


def _fault(path: Path, line: int, error: Exception) -> BadInputError:
    if isinstance(error, OSError) and error.errno is not None:
        return BadInputError(path, f"cannot be read: {error.strerror}")
    what = "cut off" if isinstance(error, EOFError) else "damaged"
    return BadInputError(
        path, f"the file is {what} after line {line} ({error}); fetch it again or repack it"
    )
