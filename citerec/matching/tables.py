"""Makes the tables of `citerec.corpus.lookup`: for a new index, and for one that changes."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.bibliography.doi import doi_of
from citerec.bibliography.keys import id_key
from citerec.bibliography.names import name_key
from citerec.corpus.lookup import (
    AUTHORS,
    DOIS,
    IDS,
    TITLES,
    Lookup,
    Table,
    code_of,
    is_stored,
    open_lookup,
    write_table,
)
from citerec.corpus.papers import BATCH, Papers
from citerec.matching.same import title_codes

Rows = npt.NDArray[np.int32]


def _id_keys(docid: str) -> Iterable[str]:
    return (docid,)


def _doi_keys(*texts: str) -> Iterable[str]:
    return {id_key(text) for text in texts if doi_of(text)}


def _author_keys(authors: Sequence[str] | None) -> Iterable[str]:
    return {_name_key(name) for name in authors or ()}


@lru_cache(maxsize=2**16)
def _name_key(name: str) -> str:
    return name_key(name)


# the columns of each table, and the keys of a paper with these values; older files lack some columns
_KEYS: dict[str, tuple[tuple[str, ...], Callable[..., Iterable[str]]]] = {
    IDS: (("id",), _id_keys),
    DOIS: (("id", "doi"), _doi_keys),
    TITLES: (("title",), title_codes),
    AUTHORS: (("authors",), _author_keys),
}


def write_tables(
    folder: Path,
    papers: Papers,
    old: Lookup | None = None,
    new_row: Rows | None = None,
    first_added: int = 0,
) -> None:
    """Write the tables of an index.

    Args:
        folder: The folder of the index.
        papers: Its papers.
        old: The tables before a change of the index, which are read instead of the papers that stay; None for none.
        new_row: With `old`: the new row of each old paper that stays as it is, -1 for the others.
        first_added: With `old`: the first row whose paper is new.
    """
    for name in _KEYS:
        codes, rows = _entries(papers, name, first_added)
        if old is not None and new_row is not None:
            before: Table = getattr(old, name)
            moved = new_row[before.rows]
            codes = np.concatenate([before.codes[moved >= 0], codes])
            rows = np.concatenate([moved[moved >= 0], rows])
        write_table(folder, name, Table.of(codes, rows))


def update_tables(
    folder: Path, names: Iterable[str], papers: Papers, *, kept: Any, first_added: int, index: Path
) -> None:
    """Write the tables of an index that changes.

    Args:
        folder: The folder of the new index.
        names: The files of the old index.
        papers: The new papers: those that stay, in their order, then those that are added.
        kept: Which old papers stay, shape (old papers,).
        first_added: The first row of an added paper.
        index: The folder of the old index.
    """
    if not is_stored(names):
        write_tables(folder, papers)
        return
    new_row = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    write_tables(folder, papers, open_lookup(index), new_row, first_added)


def _entries(papers: Papers, name: str, start: int) -> tuple[npt.NDArray[np.uint64], Rows]:
    """Return the codes of the keys of each paper from row `start` on, and the rows."""
    codes, rows = array("Q"), array("i")  # grow in place
    for code, row in _codes(papers, name, start):
        codes.append(code)
        rows.append(row)
    return np.frombuffer(codes, np.uint64), np.frombuffer(rows, np.int32)


def _codes(papers: Papers, name: str, start: int) -> Iterator[tuple[int, int]]:
    columns, keys = _KEYS[name]
    for number, batch in enumerate(papers.batches()):
        first = number * BATCH
        if first + len(batch) <= start:
            continue
        skipped = max(start - first, 0)
        part = batch.slice(skipped)
        values = [part[c].to_pylist() for c in columns if c in batch.schema.names]
        for row, texts in enumerate(zip(*values, strict=True), first + skipped):
            for key in keys(*texts):
                yield code_of(key), row
