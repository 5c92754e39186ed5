"""The files of a corpus: which files of a folder hold papers, their size and checksum."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from citerec.corpus.readers.files import head_of
from citerec.corpus.readers.formats import file_format, plain_name
from citerec.errors import BadInputError
from citerec.inputs import BOM, reading

OPENING = re.compile(rb'\{[ \t]*"')  # how a record begins
SPREAD = re.compile(rb"\{\s*\n")  # how settings begin: one JSON object over many lines
RECORD_SUFFIXES = {".json", ".jsonl", ".ndjson"}
SIDE_FOLDERS = {"splits", "qrels"}  # folders next to a corpus that hold no papers
# What OpenAlex, Crossref and collections put beside their records.
SIDE_FILES = {"manifest", "manifest.json", "collection.json"}


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
        and not any(
            part.startswith((".", "_")) or part in SIDE_FOLDERS
            for part in file.relative_to(folder).parts
        )
        and indexes.isdisjoint(file.parents)
    ]
    by_name = {plain_name(file): file for file in files if file.parent == folder}
    if by_name.keys() >= {"corpus.jsonl", "queries.jsonl"}:  # BEIR's layout
        shards = [by_name["corpus.jsonl"]]
    else:
        shards = [file for file in files if _holds_records(file)] or _of_one_format(folder, files)
    return shards, [file for file in files if file not in set(shards)]


def _holds_records(file: Path) -> bool:
    """Whether a file of a folder holds JSON records: by its name, else by its first bytes."""
    name = Path(plain_name(file))
    head = head_of(file).removeprefix(BOM).lstrip()
    if name.name in SIDE_FILES:
        return False
    if name.suffix in RECORD_SUFFIXES or (name.suffix == "" and name.name != file.name):
        return file.stat().st_size > 0 and not (name.suffix == ".json" and SPREAD.match(head))
    return OPENING.match(head) is not None


def _of_one_format(folder: Path, files: list[Path]) -> list[Path]:
    """Return the files of a folder that are in a file format; none if there is no such file.

    Raises:
        BadInputError: If they are in several formats.
    """
    formats = {file: name for file in files if (name := file_format(file, head_of(file)))}
    examples = {name: file.name for file, name in reversed(formats.items())}
    if len(examples) > 1:
        listed = " and ".join(f"{name} ({examples[name]})" for name in sorted(examples))
        advice = "name one of them, or join them: citerec corpus merge A B -o papers.jsonl"
        raise BadInputError(
            folder, f"this folder holds files of several formats: {listed}; {advice}"
        )
    return list(formats)


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
    sums: list[tuple[str, str]] = []
    for path in source.files:
        with reading(path), path.open("rb") as stream:
            sums.append((hashlib.file_digest(stream, "sha256").hexdigest(), path.name))
    if len(sums) == 1:
        return sums[0][0]
    listing = "".join(f"{digest}  {name}\n" for digest, name in sums)
    return hashlib.sha256(os.fsencode(listing)).hexdigest()
