"""Makes the tables of `citerec.corpus.lookup`: for a new index, and for one that changes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from citerec.bibliography.doi import doi_of
from citerec.bibliography.names import name_key
from citerec.corpus.lookup import (
    AUTHORS,
    DOIS,
    IDS,
    TITLES,
    Codes,
    Lookup,
    Rows,
    Table,
    code_of,
    codes_of,
    is_stored,
    open_lookup,
    write_table,
)
from citerec.corpus.papers import BATCH, Papers
from citerec.matching.same import title_codes


def _id_keys(docid: str) -> Collection[str]:
    return (docid,)


def _doi_keys(*texts: str) -> Collection[str]:
    """Return the `id_key` of each text that is a DOI."""
    return {doi.lower() for text in texts if text and (doi := doi_of(text))}


def _author_codes(authors: Sequence[str] | None) -> Collection[int]:
    return {_name_code(name) for name in authors or ()}


@lru_cache(maxsize=2**16)
def _name_code(name: str) -> int:
    return code_of(name_key(name))


def _as_codes(codes: Iterable[int]) -> Codes:
    return np.fromiter(codes, np.uint64)


# The columns of each table, the keys or codes of a paper with these values, and what makes codes of all of these. Older
# files lack some columns.
_KEYS: dict[str, tuple[tuple[str, ...], Callable[..., Collection[Any]], Callable[..., Codes]]] = {
    IDS: (("id",), _id_keys, codes_of),
    DOIS: (("id", "doi"), _doi_keys, codes_of),
    TITLES: (("title",), title_codes, codes_of),
    AUTHORS: (("authors",), _author_codes, _as_codes),
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


def _entries(papers: Papers, name: str, start: int) -> tuple[Codes, Rows]:
    """Return the codes of the keys of each paper from row `start` on, and the rows."""
    columns, keys, coded = _KEYS[name]
    codes, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.int32)]
    for first, part in _parts(papers, start):
        values = [part[c].to_pylist() for c in columns if c in part.schema.names]
        of_papers = [*map(keys, *values)]
        counts = [*map(len, of_papers)]
        codes.append(coded(chain.from_iterable(of_papers)))
        rows.append(np.repeat(np.arange(first, first + len(part), dtype=np.int32), counts))
    return np.concatenate(codes), np.concatenate(rows)


def _parts(papers: Papers, start: int) -> Iterator[tuple[int, Any]]:
    """Yield the papers from row `start` on as Arrow batches, each with its first row."""
    for number, batch in enumerate(papers.batches()):
        first = number * BATCH
        if first + len(batch) > start:
            skipped = max(start - first, 0)
            yield first + skipped, batch.slice(skipped)
