"""The papers that cite each paper, with the years of these: the transpose of the citation graph, memory-mapped.

The known citations of a paper at some time are counted by bisection in its sorted years, so that no query counts those
of all papers.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.arrays import gathered, open_array
from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR

INDPTR, INDICES, YEARS = "cited_by_indptr.npy", "cited_by_indices.npy", "cited_by_years.npy"
FILES = (INDPTR, INDICES, YEARS)
MOST = 1000  # citing papers of one paper that a query reads
UNDATED = np.iinfo(np.int16).max  # in place of an unknown year: not before any year

Rows = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CitedBy:
    """The transpose of a citation graph in CSR form, and the years of the citing papers."""

    indptr: npt.NDArray[np.int64]  # shape (papers + 1,)
    indices: Rows  # the citing rows of each paper, rising; shape (citations,)
    # the years of the citing papers of each paper, rising, `UNDATED` last; shape (citations,)
    years: npt.NDArray[np.int16]

    def citers(self, row: int) -> Rows:
        """Return the rows of the papers that cite the paper at `row`, rising."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]

    def lists(self, rows: Rows) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return the citing papers of some papers one after the other, and the number of those of each.

        Of a paper with over `MOST` citing papers an even sample is returned, so that no query reads all citations of a
        popular paper.
        """
        return gathered(self.indptr, self.indices, rows, MOST)

    def counts(self, rows: Rows, year: int | None) -> Counts:
        """Return how many papers of an earlier year cite each paper, shape of `rows`; of all years for None."""
        low, high = self.indptr[rows], self.indptr[rows + 1]
        if year is None:
            return (high - low).astype(np.int32)
        bound, start = np.int16(min(max(year, 0), UNDATED)), low.copy()
        active = np.flatnonzero(low < high)
        is_whole = self.years[high[active] - 1] < bound  # all citations of most papers count
        low[active[is_whole]] = high[active[is_whole]]
        active = active[~is_whole]
        while len(active):
            middle = (low[active] + high[active]) // 2
            is_before = self.years[middle] < bound
            low[active] = np.where(is_before, middle + 1, low[active])
            high[active] = np.where(is_before, high[active], middle)
            active = active[low[active] < high[active]]
        return (low - start).astype(np.int32)


def transpose_of(graph: Graph, years: npt.NDArray[np.int32]) -> CitedBy:
    """Return the stored transpose of a graph; one is made where none is stored. See `transposed` for `years`."""
    return transposed(graph, years) if graph.transpose is None else graph.transpose


def transposed(graph: Graph, years: npt.NDArray[np.int32]) -> CitedBy:
    """Return the transpose of a graph; `years` holds the year of each paper, `NO_YEAR` where unknown."""
    dated = np.where(years == NO_YEAR, UNDATED, np.minimum(years, UNDATED - 1)).astype(np.int16)
    indptr, indices = _transposed(graph.indptr, graph.indices)
    order = np.argsort(dated, kind="stable")  # the papers by year: then the years of lists rise
    by_year, _ = gathered(graph.indptr, graph.indices, order)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(graph.indptr)[order])])
    _, places = _transposed(ends, by_year)
    return CitedBy(indptr, indices, dated[order][places])


def _transposed(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], Rows]:
    from scipy.sparse import csr_array

    papers = len(indptr) - 1
    ones: Any = np.ones(len(indices), np.int8)
    columns = csr_array((ones, indices, indptr), shape=(papers, papers)).tocsc()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int32)


def write_cited_by(folder: Path, cited_by: CitedBy) -> None:
    """Write a transposed graph into the folder of the graph."""
    np.save(folder / INDPTR, cited_by.indptr)
    np.save(folder / INDICES, cited_by.indices)
    np.save(folder / YEARS, cited_by.years)


def open_cited_by(folder: Path, papers: int, citations: int) -> CitedBy:
    """Map a transposed graph into memory; its content is not read.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If it is not the transpose of a graph of so many papers and citations.
    """
    indptr = open_array(folder / INDPTR, np.int64, length=papers + 1)
    indices = open_array(folder / INDICES, np.int32, length=citations)
    years = open_array(folder / YEARS, np.int16, length=citations)
    if indptr[0] != 0 or indptr[-1] != citations:
        raise ValueError(f"{INDPTR} does not rise from 0 to {citations:,}")
    return CitedBy(indptr, indices, years)
