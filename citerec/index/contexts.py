"""`contexts/`: the sentences in which papers of an index cite, with the papers that each cites; memory-mapped.

`contexts.arrow` holds all of them as the corpus states them, so that an index that grows is built anew from it. Those
that cite a paper of the index are numbered from 0, in the order of their papers; they are searched as papers are, by
`bm25/` with `postings/`, and by `dense/` in an index with vectors from `LEAST_EMBEDDED` of them on.
"""

from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from citerec.files.arrays import (
    Counts,
    Rows,
    check_ends,
    check_rows,
    open_array,
    save_array,
)
from citerec.index.graph import INDICES, INDPTR, gathered
from citerec.index.papers import open_table, texts_at, write_rows
from citerec.types import Context

CONTEXTS = "contexts"  # the folder in an index
TABLE = "contexts.arrow"
LEAST_EMBEDDED = 1000  # contexts; fewer have no vectors
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32(), nullable=False),  # of the citing paper
        pa.field("text", pa.string(), nullable=False),
        pa.field("cites", pa.list_(pa.string()), nullable=False),  # ids
    ]
)
PLACES = "places.npy"
CITING = "citing.npy"


class Contexts:
    """The contexts of an index that cite one of its papers."""

    def __init__(self, folder: Path, years: Rows, tokens: int = 0) -> None:
        """Map the contexts in a folder into memory; OSError or ValueError if they are not those of an index.

        `years` holds the year of each paper, shape (papers,).
        """
        self.path = folder
        self.tokens = tokens  # of all of them, for BM25
        self.table = open_table(folder / TABLE, SCHEMA)
        # rows of `table`, rising, shape (contexts,)
        self.places: Rows = open_array(folder / PLACES, np.int32)
        count = len(self.places)
        # rows of the citing papers, rising, shape (contexts,)
        self.citing: Rows = open_array(folder / CITING, np.int32, length=count)
        self.indptr: Counts = open_array(folder / INDPTR, np.int64, length=count + 1)
        # rows of the papers that each cites, one context after the other
        self.indices: Rows = open_array(folder / INDICES, np.int32)
        check_rows(PLACES, self.places, self.table.num_rows)
        check_rows(CITING, self.citing, len(years))
        check_ends(INDPTR, self.indptr, len(self.indices))
        check_rows(INDICES, self.indices, len(years))
        if (np.diff(self.places) <= 0).any() or (np.diff(self.citing) < 0).any():
            raise ValueError("its contexts are not in the order of their papers")
        self.years = years[self.citing]  # of the citing papers, shape (contexts,)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def bm25(self) -> Path:
        """The folder of their Lucene index."""
        return self.path / "bm25"

    @property
    def dense(self) -> Path:
        """The folder of their vectors."""
        return self.path / "dense"

    @cached_property
    def id_rank(self) -> Rows:
        """The rank of each by its number, which breaks ties; shape (contexts,)."""
        return np.arange(len(self), dtype=np.int32)

    def texts(self, numbers: Rows) -> list[str]:
        """Return the sentences of some contexts, `[CITE]` at each group of citations."""
        return texts_at(self.table, "text", self.places[numbers]).to_pylist()

    def cited(self, numbers: Rows) -> tuple[Rows, Counts]:
        """Return the papers that some contexts cite, one context after the other, and how many each cites."""
        return gathered(self.indptr, self.indices, numbers)

    def of_paper(self, row: int) -> range:
        """Return the numbers of the contexts of the paper at `row`."""
        first, last = np.searchsorted(self.citing, [row, row + 1]).tolist()
        return range(first, last)

    def about(self, row: int) -> Rows:
        """Return the numbers of the contexts that cite the paper at `row`, rising."""
        cited, numbers = self._by_cited
        first, last = np.searchsorted(cited, [row, row + 1]).tolist()
        return numbers[first:last]

    @cached_property
    def _by_cited(self) -> tuple[Rows, Rows]:
        """The cited papers of all contexts, rising, and the number of the context of each."""
        numbers = np.repeat(self.id_rank, np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        return self.indices[order], numbers[order]


@contextmanager
def write_contexts(folder: Path) -> Generator[Callable[[int, Sequence[Context]], None]]:
    """Yield a function that adds the contexts of a row to the table in a folder, which appears only if there are any.

    Calls must have rising rows.
    """
    folder.mkdir()
    count = 0
    with write_rows(folder / TABLE, SCHEMA) as add_row:

        def add(row: int, contexts: Sequence[Context]) -> None:
            nonlocal count
            for context in contexts:
                add_row(row, context.text, context.cites)
            count += len(contexts)

        yield add
    if not count:
        (folder / TABLE).unlink()
        folder.rmdir()


def link_contexts(folder: Path, rows: Mapping[str, int]) -> None:
    """Write which contexts of a table cite which papers; `rows` are those of all docids of the corpus."""
    places = array("i")
    citing = array("i")
    degrees = array("q", [0])
    indices = array("i")
    batches = open_table(folder / TABLE, SCHEMA).to_batches()
    stated = (record for batch in batches for record in batch.to_pylist())
    for place, record in enumerate(stated):
        row = record["row"]
        cited = {rows[docid] for docid in record["cites"] if docid in rows} - {row}
        if cited:
            places.append(place)
            citing.append(row)
            degrees.append(len(cited))
            indices.extend(sorted(cited))
    for name, content in zip(
        (PLACES, CITING, INDPTR, INDICES),
        (places, citing, np.cumsum(degrees), indices),
        strict=True,
    ):
        save_array(folder / name, np.asarray(content))
