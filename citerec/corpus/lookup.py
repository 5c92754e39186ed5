"""`lookup/`: sorted tables from ids, DOIs, titles and authors to rows, mapped, so that no query reads all papers.

A table holds a 64-bit code of each key and the row of a paper that has it, ordered by code, then by row. Two keys may
share a code: whoever reads a table compares the texts. Only names of authors are not compared: among 100
million names, the chance that any two share a code is 1 in 3,700.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.arrays import open_array

FOLDER = "lookup"
IDS, DOIS, TITLES, AUTHORS = "ids", "dois", "titles", "authors"
NAMES = (IDS, DOIS, TITLES, AUTHORS)

Codes = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]


def code_of(key: str) -> int:
    """Return the code of a key, in [0, 2^64)."""
    return int.from_bytes(_digest(key), "little")


def codes_of(keys: Iterable[str]) -> Codes:
    """Return the codes of keys, shape (keys,)."""
    digests = b"".join([_digest(key) for key in keys])
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


def _digest(key: str) -> bytes:
    return blake2b(key.encode(errors="surrogatepass"), digest_size=8).digest()


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of each code; both arrays have shape (entries,)."""

    codes: Codes  # rising
    rows: Rows  # rising among equal codes

    @classmethod
    def of(cls, codes: Codes, rows: Rows) -> Self:
        """Return the table of some entries in any order."""
        order = np.lexsort((rows, codes))
        return cls(codes[order], rows[order])

    def where(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return the table of the entries that a mask selects, shape (entries,)."""
        return replace(self, codes=self.codes[keep], rows=self.rows[keep])

    def rows_of(self, keys: Iterable[str]) -> list[Rows]:
        """Return the rows that may have each key, rising: all that have it, and those of an equal code."""
        wanted = codes_of(keys)
        first = np.searchsorted(self.codes, wanted, "left").tolist()
        last = np.searchsorted(self.codes, wanted, "right").tolist()
        return [np.array(self.rows[a:b]) for a, b in zip(first, last, strict=True)]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The tables of an index."""

    ids: Table  # by id
    dois: Table  # by the `id_key` of ids and DOIs that are DOIs
    titles: Table  # by `title_codes`
    authors: Table  # by the `name_key` of each author


def write_table(folder: Path, name: str, table: Table) -> None:
    """Write a table into the folder of an index."""
    folder = folder / FOLDER
    folder.mkdir(exist_ok=True)
    for file, array in zip(_files(name), (table.codes, table.rows), strict=True):
        np.save(folder / file, array)


def is_stored(names: Iterable[str]) -> bool:
    """Return whether an index has these tables, by the names of its files: one of an earlier version has none."""
    files = set(names)
    return all(f"{FOLDER}/{file}" in files for name in NAMES for file in _files(name))


def open_lookup(folder: Path) -> Lookup:
    """Map the tables of an index into memory; their content is not read.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If it is not a table.
    """
    return Lookup(**{name: _open(folder / FOLDER, name) for name in NAMES})


def _open(folder: Path, name: str) -> Table:
    codes_file, rows_file = _files(name)
    codes: npt.NDArray[Any] = open_array(folder / codes_file, np.uint64)
    return Table(codes, open_array(folder / rows_file, np.int32, length=len(codes)))


def _files(name: str) -> tuple[str, str]:
    return f"{name}_codes.npy", f"{name}_rows.npy"
