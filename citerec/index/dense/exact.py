"""An exact index, opened: every vector is looked at, straight from the mapped file.

Each thread scans rows of its own, with one thread of faiss: faiss's own wait for each other at every block, by
spinning, which on a busy machine takes several times as long as the work.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import numpy.typing as npt

from citerec.eligibility import within
from citerec.encode.spec import Similarity
from citerec.index.dense.library import Vectors, load, on_threads
from citerec.index.dense.scan import (
    BLOCK,
    Closeness,
    Forbid,
    best_left_behind,
    merged,
    pairwise,
    scan,
)
from citerec.types import Eligible

Found = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]  # rows and scores, in any order

_CELLS = 2**21  # candidates and exclusions of the queries that are searched at once, per thread
_AT_ONCE = 1024  # queries


class ExactIndex:
    """Searches the vectors of a flat file."""

    def __init__(
        self, raw: npt.NDArray[np.uint8], similarity: Similarity, years: npt.NDArray[np.int32]
    ) -> None:
        self._raw = raw
        self._similarity = similarity
        self._years = years

    def nearest(self, vectors: Vectors, eligible: Sequence[Eligible], k: int) -> list[Found]:
        """Return the `k` nearest eligible rows of each query, and all that tie with the last of them."""
        found: list[Found] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * len(vectors)
        threads = load().omp_get_max_threads()
        # By year, so that one mask serves many; the rest of the order only has to be the same always.
        pending = sorted(range(len(vectors)), key=lambda i: _year(eligible[i]))
        fetch, pending = k + k // 8 + 32, pending if len(self._raw) else []
        with on_threads(1), ThreadPoolExecutor(threads, initializer=_alone) as pool:
            while pending:
                left: list[int] = []
                fetch = min(fetch, len(self._raw))
                for batch in _batches(pending, eligible, fetch):
                    forbid = _forbid([eligible[i] for i in batch], self._years)
                    closeness, rows = self._scan(pool, threads, vectors[batch], fetch, forbid)
                    for i, near, candidates in zip(batch, closeness, rows, strict=True):
                        hits = self._settle(vectors[i], near, candidates, k)
                        if hits is None:
                            left.append(i)
                        else:
                            found[i] = hits
                pending, fetch = left, 4 * fetch
        return found

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors at some rows."""
        return self._raw[rows].view(np.float32)

    def _scan(
        self, pool: ThreadPoolExecutor, threads: int, queries: Vectors, k: int, forbid: Forbid
    ) -> tuple[Closeness, npt.NDArray[np.int64]]:
        """Scan all rows, a range of whole blocks in each thread."""
        blocks = -(-len(self._raw) // BLOCK)
        cuts = np.linspace(0, blocks, min(threads, blocks) + 1).astype(int) * BLOCK

        def part(i: int) -> tuple[Closeness, npt.NDArray[np.int64]]:
            mine = self._blocks(int(cuts[i]), int(cuts[i + 1]))
            return scan(queries, mine, k, self._similarity, forbid)

        return merged(list(pool.map(part, range(len(cuts) - 1))))

    def _settle(
        self, query: Vectors, near: Closeness, candidates: npt.NDArray[np.int64], k: int
    ) -> Found | None:
        """Score the candidates; None if one that was left behind could be among the best `k`."""
        rows = candidates[candidates >= 0].astype(np.int32)
        scores = pairwise(query, self._raw[rows].view(np.float32), self._similarity)
        if len(rows) == len(candidates) < len(self._raw):
            kth = float(-np.partition(-scores, k - 1)[k - 1])
            if kth <= best_left_behind(query, float(near[-1]), kth, self._similarity):
                return None
        return rows, scores

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, Vectors]]:
        for first in range(start, min(stop, len(self._raw)), BLOCK):
            aligned = np.array(self._raw[first : first + BLOCK])
            yield first, aligned.view(np.float32)


def _alone() -> None:
    load().omp_set_num_threads(1)  # of the calling thread: each has a number of its own


def _year(eligible: Eligible) -> float:
    return float("inf") if eligible.year_max is None else eligible.year_max


def _batches(
    queries: Sequence[int], eligible: Sequence[Eligible], fetch: int
) -> Iterator[list[int]]:
    """Cut the queries so that what is kept for a batch stays within memory."""
    batch, cells = list[int](), 0
    for i in queries:
        mine = fetch + len(eligible[i].excluded)
        if batch and (cells + mine > _CELLS or len(batch) == _AT_ONCE):
            yield batch
            batch, cells = [], 0
        batch.append(i)
        cells += mine
    if batch:
        yield batch


def _forbid(eligible: Sequence[Eligible], years: npt.NDArray[np.int32]) -> Forbid:
    """Return what takes the papers out of a block that a query may not be given.

    Args:
        eligible: One per query, those of one year beside each other.
        years: The year of each row.
    """
    rules = [e.year_max for e in eligible]
    ends = np.cumsum([sum(1 for _ in same) for _, same in groupby(rules)])
    groups = [slice(end - n, end) for end, n in zip(ends, np.diff(ends, prepend=0), strict=True)]
    sizes = [len(e.excluded) for e in eligible]
    out = np.fromiter((row for e in eligible for row in e.excluded), np.int64, sum(sizes))
    order = np.argsort(out, kind="stable")
    out, who = out[order], np.repeat(np.arange(len(eligible)), sizes)[order]

    def forbid(closeness: Closeness, first: int) -> None:
        last = first + closeness.shape[1]
        rows = np.arange(first, last, dtype=np.int32)
        for group in groups:
            keep = within(Eligible(rules[group.start]), years, rows)
            if not keep.all():
                closeness[group, ~keep] = -np.inf
        mine = slice(*np.searchsorted(out, [first, last]))
        closeness[who[mine], out[mine] - first] = -np.inf

    return forbid
