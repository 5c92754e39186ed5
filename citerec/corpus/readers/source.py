"""The files of a corpus and their lines, whatever they are packed with."""

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from citerec.errors import BadInputError, BadRecordError

MAX_LINE = 64 * 2**20  # bytes; the longest real record that we met has 2 MB
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
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
TELL_EVERY = 1000  # lines
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
    if not path.exists():
        raise BadInputError(path, "no such file or folder; name a corpus file or a folder of them")
    if path.is_file():
        return Source(path, (path,))
    if (path / "manifest.json").is_file() and (path / "papers.arrow").is_file():
        raise BadInputError(path, "this is an index, not a corpus; name what it was built from")
    shards, ignored = _shards(path)
    if not shards:
        raise BadInputError(
            path, "no corpus file in this folder; expected JSONL files, plain or as .gz .zst .bz2"
        )
    return Source(path, tuple(shards), tuple(ignored))


def _shards(folder: Path) -> tuple[list[Path], list[Path]]:
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not _is_aside(file.relative_to(folder))
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
    if name.suffix in RECORD_SUFFIXES or (name.suffix == "" and name.name != file.name):
        return file.stat().st_size > 0
    try:
        with open_unpacked(file) as (stream, _):
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    except (EOFError, OSError, zlib.error):
        return False


@contextmanager
def open_unpacked(path: Path) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Open a file, unpacking gzip, zstd and bz2 by their first bytes; give the text and the raw stream."""
    with path.open("rb") as raw:
        head = raw.read(8)
        raw.seek(0)
        kind = next((name for magic, name in PACKED.items() if head.startswith(magic)), None)
        if kind == "gzip":
            with gzip.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        elif kind == "bz2":
            with bz2.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        elif kind == "zstd":
            from backports import zstd

            with zstd.open(raw, "rb") as stream:
                yield cast("BinaryIO", stream), raw
        else:
            yield raw, raw


def read_lines(
    path: Path, read: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, from 1; blank ones are left out.

    Args:
        path: The file, plain or packed.
        read: Is told now and then how many more bytes of the file have been read.

    Raises:
        BadInputError: If the file is packed and cut or damaged, or not UTF-8 text at all.
        BadRecordError: If a line is longer than any record can be.
    """
    number = position = 0
    try:
        with open_unpacked(path) as (stream, raw):
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                    _refuse_foreign(path, line)
                if len(line) > MAX_LINE:
                    raise BadRecordError(
                        path, number, f"a line of over {MAX_LINE >> 20} MB", kind="broken_lines"
                    )
                if number % TELL_EVERY == 0:
                    read(raw.tell() - position)
                    position = raw.tell()
                if line.strip():
                    yield number, line
            read(raw.tell() - position)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, number, error) from error
    except PermissionError as error:
        raise BadInputError(path, "no permission to read it") from error
    except OSError as error:
        raise _damaged(path, number, error) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise _damaged(path, number, error) from error


def sha256_of(source: Source) -> str:
    """Return the checksum of a corpus: of its file, or of the list of its shards' checksums."""
    sums = [(_sha256(file), file.name) for file in source.files]
    if len(sums) == 1:
        return sums[0][0]
    listing = "".join(f"{digest}  {name}\n" for digest, name in sums)
    return hashlib.sha256(listing.encode()).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refuse_foreign(path: Path, line: bytes) -> None:
    for magic, what in FOREIGN.items():
        if line.startswith(magic):
            raise BadInputError(path, f"this is {what}; expected JSON lines in UTF-8")
    if b"\0" in line[:4096]:
        raise BadInputError(path, "this is binary data; expected JSON lines in UTF-8")


def _damaged(path: Path, line: int, error: Exception) -> BadInputError:
    what = "cut off" if isinstance(error, EOFError) else "damaged"
    return BadInputError(
        path, f"the file is {what} after line {line} ({error}); fetch it again or repack it"
    )
