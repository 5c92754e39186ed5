"""Checksums of the files of a folder: written once, compared at each opening and, whole, by `verify`."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from citerec.entries import entries, entry_faults

SMALL = 2**20  # bytes: files of at most so many are read at every opening, a millisecond each
OTHERS = {
    "link": "is a link, which does not belong to it",
    "special": "is a pipe or a device, which does not belong to it",
    "file": "does not belong to it",
    "folder": "does not belong to it",
}


def checksums_of(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return the sha256 of files of a folder, by name."""
    return {name: sha256_of(folder / name) for name in sorted(names)}


def sizes_of(folder: Path, names: Collection[str]) -> dict[str, int]:
    """Return the bytes of files of a folder, by name."""
    return {name: (folder / name).stat().st_size for name in sorted(names)}


def files_in(folder: Path) -> Iterator[str]:
    """Yield the path within a folder of every file that is in it."""
    return (name for name, kind in entries(folder) if kind == "file")


def content_faults(
    folder: Path,
    sums: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    whole: bool,
    links_into: Path | None = None,
) -> list[str]:
    """Compare files with what was written; return what is wrong, a line each.

    Args:
        folder: Where they lie.
        sums: The sha256 of each, by its path within the folder.
        sizes: The bytes of each, as far as they are known.
        whole: Whether every file is read; otherwise small ones are, and large ones have to have their size.
        links_into: A folder into which a link may lead; no link is right if there is none.
    """
    wrong = entry_faults(folder, sums, links_into=links_into)
    for name in sums.keys() - wrong.keys():
        if fault := _fault(folder / name, sums[name], sizes.get(name), whole=whole):
            wrong[name] = fault
    return [f"{name} {wrong[name]}" for name in sums if name in wrong]


def unexpected(folder: Path, known: Collection[str], *, but: tuple[str, ...] = ()) -> list[str]:
    """Return what is in a folder and does not belong there, a line each.

    Args:
        folder: The folder.
        known: The files that belong to it.
        but: Folders of it that are left out.
    """
    beyond = tuple(f"{name}/" for name in but)
    theirs = {str(parent) for name in known for parent in PurePosixPath(name).parents}
    belongs = {*known, *but, *theirs}  # a folder that lost its files is no further fault
    return [
        f"{name} {OTHERS[kind]}"
        for name, kind in sorted(entries(folder))
        if (name not in belongs or (name in theirs and kind != "folder"))
        and not name.startswith(beyond)
    ]


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    if path.stat().st_size <= SMALL:  # at once: four times as fast as in pieces
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the sha256 of a record as it is written."""
    return hashlib.sha256(serialised(content)).hexdigest()


def serialised(content: Mapping[str, Any]) -> bytes:
    """Return a record as it is written: JSON, the same bytes for the same content."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _fault(file: Path, expected: str, size: int | None, *, whole: bool) -> str | None:
    try:
        found = file.stat().st_size
        if size is not None and found != size:
            return "is not what was written"
        if whole or found <= SMALL:
            return None if sha256_of(file) == expected else "is not what was written"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None
