"""The files of a corpus: which files of a folder hold papers, their size and checksum."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.readers import registered
from citerec.corpus.readers.files import FILE_FORMATS, sniffed
from citerec.errors import BadInputError
from citerec.inputs import BOM, UNREADABLE, open_unpacked, reading

OPENING = re.compile(rb'\{[ \t]*"')  # how a record begins
# how the list of the files of a snapshot of OpenAlex begins
MANIFEST = re.compile(rb'\{\s*"entries"\s*:')
# how one JSON object over many lines begins: settings, not records
SPREAD = re.compile(rb"\{\s*\n")
RECORD_SUFFIXES = {".json", ".jsonl", ".ndjson"}
ZOTERO = "zotero"
SIDE_FOLDERS = {"splits", "qrels"}  # folders next to a corpus that hold no papers


@dataclass(frozen=True, slots=True)
class Source:
    """The files that hold the papers of one corpus, in reading order."""

    path: Path  # as the user named it
    files: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()  # files of the folder that hold no records

    @property
    def folder(self) -> Path:
        """The folder that may also hold splits and queries of the corpus."""
        return self.path if self.path.is_dir() else self.path.parent


def find_source(path: Path) -> Source:
    """Find the files of the corpus at `path`, a file or a folder of shards.

    Raises:
        BadInputError: If there is nothing to read, or `path` is an index folder.
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
            path,
            "no corpus file in this folder; expected JSONL files, plain or as .gz .zst .bz2, "
            "or an export or library in another format that citerec reads",
        )
    return Source(path, tuple(shards), tuple(ignored))


def _is_index(folder: Path) -> bool:
    return (folder / "manifest.json").is_file() and (folder / "papers.arrow").is_file()


def _shards(folder: Path) -> tuple[list[Path], list[Path]]:
    indexes = {arrow.parent for arrow in folder.rglob("papers.arrow") if _is_index(arrow.parent)}
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not _is_side_file(file.relative_to(folder))
        and indexes.isdisjoint(file.parents)
    ]
    by_stem = {plain_name(file): file for file in files if file.parent == folder}
    if by_stem.keys() >= {"corpus.jsonl", "queries.jsonl"}:  # BEIR's layout
        return [by_stem["corpus.jsonl"]], [f for f in files if f != by_stem["corpus.jsonl"]]
    shards = [file for file in files if _holds_records(file)] or _of_one_format(folder, files)
    return shards, [file for file in files if file not in set(shards)]


def _of_one_format(folder: Path, files: list[Path]) -> list[Path]:
    """Return the files of a folder that are in a file format; none if there is no such file.

    Zotero's database lies in a folder of attachments, which are not read.

    Raises:
        BadInputError: If they are in several formats.
    """
    formats = {file: name for file in files if (name := file_format(file))}
    if ZOTERO in formats.values():
        return [file for file, name in formats.items() if name == ZOTERO]
    examples = {name: file.name for file, name in reversed(formats.items())}
    if len(examples) > 1:
        listed = " and ".join(f"{name} ({examples[name]})" for name in sorted(examples))
        advice = "name one of them, or join them: citerec corpus merge A B -o papers.jsonl"
        raise BadInputError(
            folder, f"this folder holds files of several formats: {listed}; {advice}"
        )
    return list(formats)


def file_format(file: Path) -> str | None:
    """Return the name of the format of a file that is not recognised by the keys of its first JSON line; else None.

    Raises:
        BadInputError: If it cannot be opened.
    """
    name = plain_name(file)
    if registered_name := registered.by_suffix(Path(name).suffix):
        return registered_name
    return sniffed(file, name, registered.sniffers((*FILE_FORMATS, "canonical")))


def _is_side_file(relative: Path) -> bool:
    return any(part.startswith((".", "_")) or part in SIDE_FOLDERS for part in relative.parts)


def plain_name(file: Path) -> str:
    """Return the name of a file without the suffix of its compression."""
    return file.with_suffix("").name if file.suffix in {".gz", ".zst", ".bz2"} else file.name


def _holds_records(file: Path) -> bool:
    """Whether a file of a folder is a shard: by its name, else by its first bytes."""
    name = Path(plain_name(file))
    if registered.by_suffix(name.suffix):
        return True
    try:
        with open_unpacked(file) as (stream, _):
            head = stream.read(64).removeprefix(BOM).lstrip()
    except UNREADABLE:
        return True  # the reader will report what is wrong
    if MANIFEST.match(head):
        return False
    if name.suffix in RECORD_SUFFIXES or (name.suffix == "" and name.name != file.name):
        return file.stat().st_size > 0 and not (name.suffix == ".json" and SPREAD.match(head))
    return OPENING.match(head) is not None


def size_of(source: Source) -> int:
    """Return the size of a corpus in bytes, compressed files as they are.

    Raises:
        BadInputError: If one of its files is missing.
    """
    with reading(source.path):
        return sum(file.stat().st_size for file in source.files)


def sha256_of(source: Source) -> str:
    """Return the sha256 of a corpus: of its file, or of the list of its shards' checksums.

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
