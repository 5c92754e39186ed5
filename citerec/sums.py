"""Checksums of the files of a folder: small files are checked at each opening, all files by `verify`."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from citerec.entries import entries, entry_faults

# bytes: files up to this size are read at every opening, which takes a millisecond each
SMALL = 2**20
UNEXPECTED = {
    "link": "is a link, which does not belong to it",
    "special": "is a pipe or a device, which does not belong to it",
    "file": "does not belong to it",
    "folder": "does not belong to it",
}


def checksums_of(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return the sha256 of files of a folder, by name."""
    return {name: sha256_of(folder / name) for name in sorted(names)}


def sizes_of(folder: Path, names: Collection[str]) -> dict[str, int]:
    """Return the sizes of files of a folder in bytes, by name."""
    return {name: (folder / name).stat().st_size for name in sorted(names)}


def files_in(folder: Path) -> Iterator[str]:
    """Yield the path within a folder of every file in it."""
    return (name for name, kind in entries(folder) if kind == "file")


def content_faults(
    folder: Path,
    sums: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    whole: bool,
    links_into: Path | None = None,
) -> list[str]:
    """Compare files with their recorded checksums and sizes; return the faults, one line each.

    Args:
        folder: The folder of the files.
        sums: The sha256 of each file, by its path within the folder.
        sizes: The bytes of each file; older records lack some.
        whole: If true, every file is read; otherwise small ones are, and of large ones the size is compared.
        links_into: A folder into which links may lead; None if links are faults.
    """
    wrong = entry_faults(folder, sums, links_into=links_into)
    for name in sums.keys() - wrong.keys():
        if fault := _fault(folder / name, sums[name], sizes.get(name), whole=whole):
            wrong[name] = fault
    return [f"{name} {wrong[name]}" for name in sums if name in wrong]


def unexpected(folder: Path, known: Collection[str], *, but: tuple[str, ...] = ()) -> list[str]:
    """Return the entries of a folder that do not belong to it, one line each.

    Args:
        folder: The folder.
        known: The files that belong to it.
        but: Folders of it that are not examined.
    """
    skipped = tuple(f"{name}/" for name in but)
    parents = {str(parent) for name in known for parent in PurePosixPath(name).parents}
    # a folder whose files are missing is not an additional fault
    belongs = {*known, *but, *parents}
    try:
        found = sorted(entries(folder))
    except FileNotFoundError:  # removed since it was listed, by a rebuild, perhaps
        return []
    return [
        f"{name} {UNEXPECTED[kind]}"
        for name, kind in found
        if (name not in belongs or (name in parents and kind != "folder"))
        and not name.startswith(skipped)
    ]


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    if path.stat().st_size <= SMALL:  # in one call: four times as fast as in pieces
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def seal_of(content: Mapping[str, Any]) -> str:
    """Return the sha256 of a record in its serialised form."""
    return hashlib.sha256(serialised(content)).hexdigest()


def serialised(content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON; the same content gives the same bytes."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _fault(file: Path, expected: str, size: int | None, *, whole: bool) -> str | None:
    try:
        size_found = file.stat().st_size
        if size is not None and size_found != size:
            return "is not what was written"
        if whole or size_found <= SMALL:
            return None if sha256_of(file) == expected else "is not what was written"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None
