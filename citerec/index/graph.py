"""`citations/`: the citation graph of an index and its transpose, in CSR form over row numbers, memory-mapped.

`references.arrow` holds the references of each paper as its corpus states them; the graph of an index that grows is
built anew from it, so that a reference to a paper that is added later becomes a citation.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from citerec.files.arrays import (
    Array,
    Counts,
    Flags,
    Integers,
    Rows,
    Years,
    check_ends,
    check_rows,
    concatenated,
    offsets,
    open_array,
    save_array,
)
from citerec.index.papers import NO_YEAR, open_table, write_rows

REFERENCES = "references.arrow"
INDPTR = "indptr.npy"
INDICES = "indices.npy"
CITED_BY = ("cited_by_indptr.npy", "cited_by_indices.npy", "cited_by_years.npy")
MAX_CITING = 1000  # citing papers of one paper that a query reads
UNDATED = np.iinfo(np.int16).max  # in place of an unknown year: not before any year
STATED = pa.schema([("row", pa.int32()), ("references", pa.list_(pa.string()))])


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of rows by number: list `i` is `indices[indptr[i]:indptr[i + 1]]` (CSR form)."""

    indptr: Counts  # shape (lists + 1,)
    indices: Rows  # shape (entries,)

    @classmethod
    def each(cls, lists: Sequence[Rows]) -> Self:
        """Build them from an array each."""
        return cls(offsets(list(map(len, lists))), concatenated(lists, np.int32))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, i: int) -> Rows:
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    @property
    def lengths(self) -> Counts:
        """The number of rows of each list, shape (lists,)."""
        return np.diff(self.indptr)

    @property
    def segment_ids(self) -> Rows:
        """The list number of each entry, shape (entries,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)

    def where(self, keep: Flags) -> "Lists":
        """Return the lists with only the flagged entries; `keep` has shape (entries,)."""
        lengths = np.bincount(self.segment_ids[keep], minlength=len(self))
        return Lists(offsets(lengths), self.indices[keep])

    def lists(self, chosen: Integers) -> tuple[Rows, Counts]:
        """Return some of the lists one after the other, by number, and the length of each."""
        return gathered(self.indptr, self.indices, chosen)

    def at(self, chosen: Integers) -> "Lists":
        """Return some of the lists, by number."""
        indices, lengths = self.lists(chosen)
        return Lists(offsets(lengths), indices)

    def drawn(self, count: int, rng: np.random.Generator, *, repeat: bool) -> Rows:
        """Draw `count` distinct rows of each list, shape (lists, count).

        The rows of a shorter list repeat with `repeat`; otherwise, and for an empty list, -1 fills the places.
        """
        drawn = np.full((len(self), count), -1, np.int32)
        if not len(self.indices) or not count:
            return drawn
        order = np.lexsort((rng.random(len(self.indices)), self.segment_ids))
        lengths = self.lengths[:, None]
        columns = np.arange(count)[None, :]
        filled = (lengths > 0) & (repeat | (columns < lengths))
        at = self.indptr[:-1, None] + columns % np.maximum(lengths, 1)
        drawn[filled] = self.indices[order][at[filled]]
        return drawn


@dataclass(frozen=True, slots=True)
class CitedBy(Lists):
    """The papers that cite each paper, rising, with the years of these.

    The known citations of a paper at some time are counted by bisection in its sorted years, so that no query counts
    those of all papers.
    """

    # the years of the citing papers of each paper, rising, `UNDATED` last; shape (citations,)
    years: npt.NDArray[np.int16]

    def sampled(self, rows: Rows) -> tuple[Rows, Counts]:
        """Return the citing papers of some papers one after the other, and the number of those of each.

        Of a paper with over `MAX_CITING` citing papers an even sample is returned, for speed.
        """
        return gathered(self.indptr, self.indices, rows, MAX_CITING)

    def counts(self, rows: Rows, year: int | None) -> Rows:
        """Return how many papers of an earlier year cite each paper, shape of `rows`; of all years for None."""
        low = self.indptr[rows]
        high = self.indptr[rows + 1]
        if year is None:
            return (high - low).astype(np.int32)
        bound = np.int16(min(max(year, 0), UNDATED))
        start = low.copy()
        active = np.flatnonzero(low < high)
        while len(active):
            middle = (low[active] + high[active]) // 2
            is_before = self.years[middle] < bound
            low[active] = np.where(is_before, middle + 1, low[active])
            high[active] = np.where(is_before, high[active], middle)
            active = active[low[active] < high[active]]
        return (low - start).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Graph(Lists):
    """The citation graph: the papers that each paper cites, rising and distinct."""

    transpose: CitedBy | None = None  # of an index, where it is stored

    def references(self, row: int) -> Rows:
        """Return the rows of the papers that the paper at `row` cites, rising."""
        return self[row]

    def degrees(self, rows: Rows) -> Counts:
        """Return how many papers of the index each paper cites, shape of `rows`."""
        return self.indptr[rows + 1] - self.indptr[rows]

    def cited_by(self, row: int) -> Rows:
        """Return the rows of the papers that cite the paper at `row`, rising; the graph must have its transpose."""
        assert self.transpose
        return self.transpose[row]

    def citation_counts(self) -> Counts:
        """Return how many papers of the index cite each paper, shape (papers,)."""
        return np.bincount(self.indices, minlength=len(self))

    @property
    def citing(self) -> Rows:
        """The citing row of each entry of `indices`, same shape."""
        return self.segment_ids

    def transposed(self, years: Years) -> CitedBy:
        """Return the transpose, stored or computed; `years` holds the year of each paper, `NO_YEAR` where unknown."""
        if self.transpose:
            return self.transpose
        from scipy.sparse import csr_array

        papers = len(self)
        ones: Any = np.ones(len(self.indices), np.int8)
        graph = csr_array((ones, self.indices, self.indptr), shape=(papers, papers))
        columns = graph.tocsc()
        dated = np.where(years == NO_YEAR, UNDATED, np.minimum(years, UNDATED - 1))
        # a matrix of cited papers and years, whose columns are sorted within each row
        by_year = csr_array(
            (ones, dated[columns.indices], columns.indptr), shape=(papers, UNDATED + 1)
        )
        by_year.sort_indices()
        return CitedBy(
            columns.indptr.astype(np.int64),
            columns.indices.astype(np.int32),
            by_year.indices.astype(np.int16),
        )


def gathered(
    indptr: Array,
    indices: Array,
    rows: Array,
    most: int | None = None,
) -> tuple[Array, Counts]:
    """Return some lists of a CSR structure one after the other, and the length of each, shape of `rows`.

    Of a list of over `most` entries an even sample of so many is returned.
    """
    starts = indptr[rows].astype(np.int64)
    whole = indptr[rows + 1] - starts
    lengths = whole if most is None else np.minimum(whole, most)
    ends = np.cumsum(lengths)
    places = np.arange(int(ends[-1]) if len(ends) else 0)
    if most is None:
        places += np.repeat(starts - (ends - lengths), lengths)
    else:
        places -= np.repeat(ends - lengths, lengths)  # from 0 in each list
        places = places * np.repeat(whole, lengths) // np.repeat(lengths, lengths)
        places += np.repeat(starts, lengths)
    return indices[places], lengths


def open_graph(folder: Path, papers: int) -> Graph:
    """Map the graph in a folder into memory; OSError or ValueError if it is not one of so many papers.

    The graph is checked, which takes a few milliseconds per million citations: SciPy uses the offsets unchecked. The
    content of its transpose is not read; see `check_content`.
    """
    indptr = open_array(folder / INDPTR, np.int64, length=papers + 1)
    indices = open_array(folder / INDICES, np.int32)
    check_ends(INDPTR, indptr, len(indices))
    check_rows(INDICES, indices, papers)
    rises = np.ones(len(indices) + 1, np.bool_)
    np.greater(indices[1:], indices[:-1], out=rises[1:-1])
    rises[indptr] = True  # where the references of another paper begin
    if not rises.all():
        raise ValueError(
            f"{INDICES} repeats a reference of a paper, or has them out of order"
        )
    ends, citing, years = (folder / name for name in CITED_BY)
    transpose = CitedBy(
        open_array(ends, np.int64, length=papers + 1),
        open_array(citing, np.int32, length=len(indices)),
        open_array(years, np.int16, length=len(indices)),
    )
    return Graph(indptr, indices, transpose)


@contextmanager
def write_references(folder: Path) -> Generator[Callable[[int, Sequence[str]], None]]:
    """Yield a function that adds the references of a row to `references.arrow` in a folder, which is created.

    Calls must have rising rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with write_rows(folder / REFERENCES, STATED) as add:
        yield lambda row, references: add(row, references) if references else None


def write_graph(
    folder: Path, rows: Mapping[str, int], years: Years | Sequence[int]
) -> dict[str, int]:
    """Write the graph of the references in a folder that `write_references` filled; return the counts of references.

    `rows` holds the row of each docid of the corpus, rising, `years` those of the rows, `NO_YEAR` where unknown.
    """
    from scipy.sparse import coo_array

    batches = open_table(folder / REFERENCES, STATED).to_batches()
    lists = [batch["references"].flatten() for batch in batches]
    stated = pa.chunked_array(lists, pa.string())
    docids = pa.array([*rows], pa.string())
    found = pc.index_in(stated, value_set=docids)  # pyright: ignore[reportAttributeAccessIssue]
    cited_rows: Rows = found.fill_null(-1).to_numpy()
    papers = len(rows)
    degrees = np.zeros(papers + 1, np.int64)
    indices = np.empty(len(stated), np.int32)
    counts = Counter(self_citations=0, unknown_references=0, citations=0)
    start = 0
    for batch, texts in zip(batches, lists, strict=True):
        of_batch = cited_rows[start : start + len(texts)]
        start += len(texts)
        # those that are unknown get numbers of their own, behind the rows
        others = papers + texts.dictionary_encode().indices.to_numpy()
        columns = np.where(of_batch < 0, others, of_batch)
        lengths = batch["references"].value_lengths().to_numpy()
        places = np.repeat(np.arange(len(batch)), lengths)
        ones = np.ones(len(texts), np.bool_)
        shape = (len(batch), papers + len(texts))
        # each once, rising
        matrix: Any = coo_array((ones, (places, columns)), shape).tocsr()
        citing = np.repeat(batch["row"].to_numpy(), np.diff(matrix.indptr))
        is_known = matrix.indices < papers
        is_self = matrix.indices == citing
        is_citation = is_known & ~is_self
        counts["unknown_references"] += int(np.count_nonzero(~is_known))
        counts["self_citations"] += int(np.count_nonzero(is_self))
        end = counts["citations"] + int(np.count_nonzero(is_citation))
        indices[counts["citations"] : end] = matrix.indices[is_citation]
        counts["citations"] = end
        np.add.at(degrees, citing[is_citation] + 1, 1)
    counts["repeated_references"] = len(stated) - counts.total()
    graph = Graph(np.cumsum(degrees), indices[: counts["citations"]])
    transpose = graph.transposed(np.asarray(years, np.int32))
    arrays = (
        graph.indptr,
        graph.indices,
        transpose.indptr,
        transpose.indices,
        transpose.years,
    )
    for name, content in zip((INDPTR, INDICES, *CITED_BY), arrays, strict=True):
        save_array(folder / name, content)
    return dict(counts)
