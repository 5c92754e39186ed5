"""The citation graph of an index in CSR form over row numbers."""

from array import array
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.arrays import check_ends, check_range, gathered, open_array
from citerec.corpus.columns import record_batch
from citerec.corpus.outside import (
    REPEATED,
    SELF,
    UNKNOWN,
    OutsideWriter,
    classify,
    write_outside,
)

if TYPE_CHECKING:
    from citerec.corpus.citedby import CitedBy

INDPTR, INDICES = "indptr.npy", "indices.npy"
_SPILL = pa.schema([("row", pa.int32()), ("references", pa.list_(pa.string()))])


@dataclass(frozen=True, slots=True)
class Graph:
    """The citation graph in CSR form: row `r` cites `indices[indptr[r]:indptr[r + 1]]`, rising and distinct."""

    indptr: npt.NDArray[np.int64]  # shape (papers + 1,)
    indices: npt.NDArray[np.int32]  # shape (citations,)
    # the citing papers of each paper; None where they are not stored, as in indexes of earlier versions
    transpose: "CitedBy | None" = None

    def references(self, row: int) -> npt.NDArray[np.int32]:
        """Return the rows of the papers that the paper at `row` cites, rising."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def lists(
        self, rows: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the references of some papers one after the other, and how many each has."""
        return gathered(self.indptr, self.indices, rows)

    def degrees(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return how many papers of the index each paper cites, shape of `rows`."""
        return self.indptr[rows + 1] - self.indptr[rows]

    def cited_by(self, row: int) -> npt.NDArray[np.int32]:
        """Return the rows of the papers that cite the paper at `row`, rising. Without `transpose` all are read."""
        if self.transpose is not None:
            return self.transpose.citers(row)
        places = np.flatnonzero(self.indices == row)
        return (np.searchsorted(self.indptr, places, side="right") - 1).astype(np.int32)

    def citation_counts(self) -> npt.NDArray[np.int64]:
        """Return how many papers of the index cite each paper, shape (papers,)."""
        if self.transpose is not None:
            return np.diff(self.transpose.indptr)
        return np.bincount(self.indices, minlength=len(self.indptr) - 1)

    @property
    def citing(self) -> npt.NDArray[np.int32]:
        """The citing row of each entry of `indices`, same shape."""
        rows = np.arange(len(self.indptr) - 1, dtype=np.int32)
        return np.repeat(rows, np.diff(self.indptr))


def open_graph(folder: Path, papers: int) -> Graph:
    """Map the graph in a folder into memory.

    All of it is checked, which takes a few milliseconds per million citations: SciPy uses the offsets unchecked.

    Args:
        folder: A folder that `write_graph` wrote.
        papers: The number of papers of the index.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If it is not a graph of so many papers.
    """
    indptr = open_array(folder / INDPTR, np.int64, length=papers + 1)
    indices = open_array(folder / INDICES, np.int32)
    check_ends(INDPTR, indptr, len(indices))
    check_range(INDICES, indices, papers)
    rises = np.ones(len(indices) + 1, np.bool_)
    np.greater(indices[1:], indices[:-1], out=rises[1:-1])
    rises[indptr] = True  # where the references of another paper begin
    if not rises.all():
        raise ValueError(f"{INDICES} repeats a reference of a paper, or has them out of order")
    return Graph(indptr, indices)


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """How many of the stated references became citations of the graph, and how many did not."""

    citations: int  # in the graph
    self_citations: int
    repeated_references: int
    unknown_references: int  # references to papers outside the corpus


class ReferenceSpill:
    """Stores references on disk until every docid is known, so that memory use stays constant."""

    BATCH = 4096

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_stream(self._sink, _SPILL)
        self._rows: list[int] = []
        self._references: list[tuple[str, ...]] = []

    def add(self, row: int, references: tuple[str, ...]) -> None:
        """Add the references of the paper at `row`; calls must have rising rows."""
        if references:
            self._rows.append(row)
            self._references.append(references)
            if len(self._rows) == self.BATCH:
                self._flush()

    def close(self) -> None:
        """Finish the file."""
        if not self._sink.closed:
            self._flush()
            self._writer.close()
            self._sink.close()

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        with pa.memory_map(str(self._path)) as source:
            for batch in pa.ipc.open_stream(source):
                yield from zip(
                    batch["row"].to_pylist(), batch["references"].to_pylist(), strict=True
                )

    def _flush(self) -> None:
        batch = record_batch(_SPILL, [self._rows, self._references])
        self._writer.write_batch(batch)
        self._rows, self._references = [], []


@contextmanager
def spill_references(path: Path) -> Generator[ReferenceSpill]:
    """Open a spill; its file is removed when the block ends."""
    spill = ReferenceSpill(path)
    try:
        yield spill
    finally:
        spill.close()
        path.unlink(missing_ok=True)


def write_graph(folder: Path, spill: ReferenceSpill, rows: dict[str, int]) -> GraphCounts:
    """Map the spilled references to rows, and write the graph.

    Args:
        folder: Receives `indptr.npy`, `indices.npy` and `outside.arrow`.
        spill: The references of each paper, as docids.
        rows: The row of each docid of the corpus.
    """
    degrees = np.zeros(len(rows) + 1, np.int64)
    # grows in place: a million small arrays would need several times the memory
    indices = array("i")
    docids = list(rows)
    with write_outside(folder) as outside:
        for row, references in spill:
            cited, others = classify(docids[row], references, rows)
            degrees[row + 1] = len(cited)
            indices.extend(sorted(rows[docid] for docid in cited))
            for docid, kind in others:
                outside.add(row, docid, kind)
    save_graph(folder, np.cumsum(degrees), np.frombuffer(indices, np.int32))
    return counts_of(len(indices), outside)


def save_graph(folder: Path, indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]) -> None:
    """Write the arrays of a graph into a folder."""
    np.save(folder / INDPTR, indptr)
    np.save(folder / INDICES, indices)


def counts_of(citations: int, outside: OutsideWriter) -> GraphCounts:
    """Return the counts of a graph with so many citations."""
    by_kind = outside.counts
    return GraphCounts(citations, by_kind[SELF], by_kind[REPEATED], by_kind[UNKNOWN])
