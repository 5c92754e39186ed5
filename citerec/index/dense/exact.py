"""Searches an exact index: compares every vector, read from the mapped file.

Where there are rounded vectors, the search of a few queries reads these, and the exact ones of the best papers only.

Each thread scans its own rows with one faiss thread: faiss's own threads wait for each other after each block by
spinning, which takes several times as long as the work when the machine is busy.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.compiled import Loops
from citerec.encode.spec import Similarity
from citerec.index.dense.flat import FlatFile, unmap_pages
from citerec.index.dense.library import Vectors, load, on_threads
from citerec.index.dense.rounded import Rounded
from citerec.index.dense.scan import (
    BLOCK,
    FEW,
    Closeness,
    MaskOut,
    dropped_bound,
    merged,
    pairwise,
    scan,
)
from citerec.rules.eligible import within
from citerec.types import Eligibility

# rows and scores, in any order
RowsAndScores = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]

_CELLS = 2**21  # candidates and exclusions of the queries of one batch, per thread
_MAX_QUERIES = 1024  # queries of one batch
# rounded vectors: comparing so many by compiled loops saves the time that the import of numba takes
WORTH_COMPILING = 10_000_000


class ExactIndex:
    """Searches the vectors of a flat file."""

    def __init__(
        self,
        raw: npt.NDArray[np.uint8],
        similarity: Similarity,
        years: npt.NDArray[np.int32],
        rounded: Rounded | None = None,
        file: FlatFile | None = None,
    ) -> None:
        """Prepare.

        Args:
            raw: The vectors as bytes, shape (papers, 4 * dim).
            similarity: How two vectors are compared.
            years: The year of each row, shape (papers,).
            rounded: The rounded vectors.
            file: Reads the vectors of a few papers; by default they are read from `raw`.
        """
        self._raw, self._file = raw, file
        self._similarity = similarity
        self._years = years
        self._rounded = rounded
        self._loops = Loops("citerec.index.dense.kernel", WORTH_COMPILING)

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of each query's `k` nearest eligible papers, and of all that tie with the last one."""
        results: list[RowsAndScores] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * len(
            vectors
        )
        threads = load().omp_get_max_threads()
        # Sorted by year, so that one mask serves many queries; the sort only has to be deterministic.
        pending = sorted(range(len(vectors)), key=lambda i: _year(eligible[i]))
        kernel = self._kernel_for(len(vectors))
        # more by rounded vectors, whose order is less certain
        fetch = (2 * k if kernel else k + k // 8) + 32
        pending = pending if len(self._raw) else []
        is_mapped = False  # whether all exact vectors were read
        with on_threads(1), ThreadPoolExecutor(threads, initializer=_use_one_thread) as pool:
            while pending:
                unfinished: list[int] = []
                fetch = min(fetch, len(self._raw))
                for batch in _batches(pending, eligible, fetch):
                    mask_out = _masking([eligible[i] for i in batch], self._years)
                    closeness, rows = self._scan(
                        pool, threads, vectors[batch], fetch, mask_out, kernel
                    )
                    for i, near, candidates in zip(batch, closeness, rows, strict=True):
                        hits = self._exact_scores(vectors[i], near, candidates, k)
                        if hits is None:
                            unfinished.append(i)
                        else:
                            results[i] = hits
                is_mapped |= kernel is None
                pending, fetch, kernel = unfinished, 4 * fetch, None
        if is_mapped and self._file is not None:
            unmap_pages(self._raw)
        return results

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some rows, shape (len(rows), dim)."""
        if self._file is not None:
            return self._file.vectors(rows)
        return np.take(self._raw, rows, axis=0).view(np.float32)  # faster than self._raw[rows]

    def summed_directions(
        self, ends: npt.NDArray[np.integer], rows: npt.NDArray[np.int32]
    ) -> Vectors | None:
        """Return the sum of the directions of each list of papers by rounded vectors; None if there are none.

        See `Rounded.summed_directions`.
        """
        if self._rounded is None:
            return None
        return self._rounded.summed_directions(self._loops.after(len(rows)), ends, rows)

    def _kernel_for(self, queries: int) -> Any:
        """Return the loops that compare rounded vectors; None if they are of no use for so many queries."""
        if self._rounded is None or queries > FEW:
            return None
        return self._loops.after(queries * len(self._raw))

    def _scan(
        self,
        pool: ThreadPoolExecutor,
        threads: int,
        queries: Vectors,
        k: int,
        mask_out: MaskOut,
        kernel: Any,
    ) -> tuple[Closeness, npt.NDArray[np.int64]]:
        """Scan all rows, a range of whole blocks per thread; closeness may be an upper bound of it."""
        blocks = -(-len(self._raw) // BLOCK)
        cuts = np.linspace(0, blocks, min(threads, blocks) + 1).astype(int) * BLOCK

        def part(i: int) -> tuple[Closeness, npt.NDArray[np.int64]]:
            start, stop = int(cuts[i]), min(int(cuts[i + 1]), len(self._raw))
            if kernel and self._rounded:
                return self._rounded.scan(kernel, queries, k, mask_out, start, stop)
            return scan(queries, self._blocks(start, stop), k, self._similarity, mask_out)

        return merged(list(pool.map(part, range(len(cuts) - 1))))

    def _exact_scores(
        self, query: Vectors, near: Closeness, candidates: npt.NDArray[np.int64], k: int
    ) -> RowsAndScores | None:
        """Score the candidates; None if a vector that is not among them could be one of the best `k`."""
        rows = candidates[candidates >= 0].astype(np.int32)
        scores = pairwise(query, self.vectors(rows), self._similarity)
        if len(rows) == len(candidates) < len(self._raw):
            kth = float(-np.partition(-scores, k - 1)[k - 1])
            if kth <= dropped_bound(query, float(near[-1]), kth, self._similarity):
                return None
        return rows, scores

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, Vectors]]:
        """Yield the vectors of some rows block by block; a block is overwritten by the next one."""
        aligned = np.empty((min(BLOCK, len(self._raw)), self._raw.shape[1]), np.uint8)
        for first in range(start, stop, BLOCK):
            part = self._raw[first : min(first + BLOCK, stop)]
            np.copyto(aligned[: len(part)], part)
            yield first, aligned[: len(part)].view(np.float32)


def _use_one_thread() -> None:
    load().omp_set_num_threads(1)  # for the calling thread: each thread has its own setting


def _year(eligible: Eligibility) -> float:
    return float("inf") if eligible.year_max is None else eligible.year_max


def _batches(
    queries: Sequence[int], eligible: Sequence[Eligibility], fetch: int
) -> Iterator[list[int]]:
    """Split the queries so that candidates and exclusions of a batch stay within the memory limit."""
    batch, cells = list[int](), 0
    for i in queries:
        size = fetch + len(eligible[i].excluded)
        if batch and (cells + size > _CELLS or len(batch) == _MAX_QUERIES):
            yield batch
            batch, cells = [], 0
        batch.append(i)
        cells += size
    if batch:
        yield batch


def _masking(eligible: Sequence[Eligibility], years: npt.NDArray[np.int32]) -> MaskOut:
    """Return a function that sets the closeness of the papers of a block that are not eligible to -inf.

    Args:
        eligible: One per query; queries of one year limit are adjacent.
        years: The year of each row, shape (papers,).
    """
    rules = [e.year_max for e in eligible]
    ends = np.cumsum([sum(1 for _ in same) for _, same in groupby(rules)])
    groups = [slice(end - n, end) for end, n in zip(ends, np.diff(ends, prepend=0), strict=True)]
    sizes = [len(e.excluded) for e in eligible]
    excluded = np.fromiter((row for e in eligible for row in e.excluded), np.int64, sum(sizes))
    order = np.argsort(excluded, kind="stable")
    excluded, owners = excluded[order], np.repeat(np.arange(len(eligible)), sizes)[order]

    def mask_out(closeness: Closeness, first: int) -> None:
        last = first + closeness.shape[1]
        rows = np.arange(first, last, dtype=np.int32)
        for group in groups:
            keep = within(Eligibility(rules[group.start]), years, rows)
            if not keep.all():
                closeness[group, ~keep] = -np.inf
        size = slice(*np.searchsorted(excluded, [first, last]))
        closeness[owners[size], excluded[size] - first] = -np.inf

    return mask_out
