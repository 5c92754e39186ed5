"""Searches an approximate index: faiss compares a part of the vectors, which are compressed.

Scores are those of the compressed vectors. A query has the same scores in any batch; but with 20 or more queries ivf
selects its lists by matrix products, so lists at equal distance may be selected differently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import DenseKind
from citerec.encode.spec import Similarity
from citerec.index.dense.exact import RowsAndScores
from citerec.index.dense.library import Vectors, load, on_threads
from citerec.rules.eligible import mask
from citerec.types import Eligibility

Scores = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]

FEW_EXCLUDED = 100  # exclusions of a query for which more hits are fetched; a query with more is searched separately
_KEPT = 8  # year limits whose eligible rows are kept: a bit per paper each
_CELLS = 2**22  # hits kept in memory for the queries of one batch
# eligible papers whose scan costs as much as one candidate of a filtered graph search
_SCAN_WORTH = 16


@dataclass(frozen=True, slots=True)
class Search:
    """The search parameters of an index."""

    kind: DenseKind
    effort: int  # efSearch of hnsw, nprobe of ivf


@dataclass(frozen=True, slots=True, eq=False)
class _EligibleRows:
    """The rows that are eligible by one rule."""

    count: int
    bits: Bits | None  # as `find` takes them

    @classmethod
    def of(cls, keep: npt.NDArray[np.bool_]) -> Self:
        """Make them from a mask, shape (papers,)."""
        count = int(np.count_nonzero(keep))
        return cls(count, None if count == len(keep) else np.packbits(keep, bitorder="little"))


class ApproximateIndex:
    """Searches an HNSW or an IVF index."""

    def __init__(
        self, index: Any, search: Search, similarity: Similarity, years: npt.NDArray[np.int32]
    ) -> None:
        self._index = index
        self._search = search
        self._similarity = similarity
        self._years = years
        self._kept: dict[Eligibility, _EligibleRows] = {}
        if search.kind is DenseKind.IVF:
            index.make_direct_map()  # `vectors` needs it; here, because threads share this object

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of the nearest eligible papers of each query, at least `k` if so many exist."""
        results: list[RowsAndScores] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * len(
            vectors
        )
        for rule, group in _groups(eligible).items():
            for i, hits in self._nearest(vectors, eligible, group, k, self._rows_of(rule)):
                results[i] = hits
        return results

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some rows, shape (len(rows), dim), decompressed."""
        if not len(rows):
            return np.zeros((0, self._index.d), np.float32)
        with on_threads(1):
            return self._index.reconstruct_batch(rows.astype(np.int64))

    def summed_directions(self, ends: npt.NDArray[np.integer], rows: npt.NDArray[np.int32]) -> None:
        """Return None: the vectors have to be decompressed."""

    def _rows_of(self, rule: Eligibility) -> _EligibleRows:
        """Return the eligible rows of a rule; those of the last years are kept, since all papers are read for them."""
        if (rows := self._kept.get(rule)) is None:
            rows = _EligibleRows.of(mask(rule, self._years))
            if not rule.excluded:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()  # at once: threads share it
                self._kept[rule] = rows
        return rows

    def _nearest(
        self,
        vectors: Vectors,
        eligible: Sequence[Eligibility],
        group: list[int],
        k: int,
        keep: _EligibleRows,
    ) -> Iterator[tuple[int, RowsAndScores]]:
        """Search for the queries of a group; queries with too few hits are searched again over all vectors."""
        count = keep.count
        fetch = min(k + 1 + max(_few_exclusions(eligible[i]) for i in group), count)
        exhaustive = self._scans(count, fetch)
        pending = group if count else []
        while pending:
            unfinished: list[int] = []
            for batch in _batches(pending, max(_CELLS // fetch, 1)):
                scores, rows = self._search_batch(vectors[batch], fetch, keep, exhaustive)
                is_complete = exhaustive and fetch == count
                for i, query_scores, query_rows in zip(batch, scores, rows, strict=True):
                    hits = _eligible_hits(
                        eligible[i], query_scores, query_rows, k, is_complete=is_complete
                    )
                    if hits is None:
                        unfinished.append(i)
                    else:
                        yield i, hits
            # A filtered search missed some hits, or further hits tie with the last one.
            pending, exhaustive, fetch = unfinished, True, min(4 * fetch, count)

    def _search_batch(
        self, vectors: Vectors, fetch: int, keep: _EligibleRows, exhaustive: bool
    ) -> tuple[Scores, Numbers]:
        index, share = self._index, keep.count / len(self._years)
        effort = len(self._years) if exhaustive else ceil(self._search.effort / share)
        if exhaustive and self._search.kind is DenseKind.HNSW:
            index, effort = load().downcast_index(index.storage), None
        scores, rows = find(index, self._search.kind, vectors, fetch, effort, keep=keep.bits)
        return (0 - np.sqrt(np.maximum(scores, 0)), rows) if self._is_l2 else (scores, rows)

    @property
    def _is_l2(self) -> bool:
        return self._similarity is Similarity.L2

    def _scans(self, count: int, fetch: int) -> bool:
        """Whether to scan all eligible vectors at once.

        Either all of them are wanted, or they are so few that a search of the graph costs more: the fewer papers are
        eligible, the more nodes it visits to find its candidates. A search of all lists is a scan, too.
        """
        if fetch == count:
            return True
        if self._search.kind is DenseKind.IVF:
            return self._search.effort * len(self._years) >= self._index.nlist * count
        candidates = max(self._search.effort, fetch) * len(self._years)
        return count**2 <= _SCAN_WORTH * candidates


def find(
    index: Any,
    kind: DenseKind,
    vectors: Vectors,
    fetch: int,
    effort: int | None,
    *,
    keep: Bits | None = None,
) -> tuple[Scores, Numbers]:
    """Search with faiss; return its scores and the rows, both of shape (len(vectors), fetch).

    Args:
        index: A faiss index.
        kind: The kind of `index`.
        vectors: The queries, shape (queries, dim).
        fetch: Hits per query; missing ones have row -1.
        effort: efSearch or nprobe; None for an exhaustive search of a flat index.
        keep: Which rows are eligible, a bit each, the lowest of a byte first, shape (bytes,); None for all.
    """
    faiss = load()
    options: dict[str, Any] = {}
    if keep is not None:
        options["sel"] = faiss.IDSelectorBitmap(keep)
    if effort is None:
        params = faiss.SearchParameters(**options)
    elif kind is DenseKind.HNSW:
        params = faiss.SearchParametersHNSW(efSearch=max(effort, fetch), **options)
    else:
        params = faiss.SearchParametersIVF(nprobe=min(effort, index.nlist), **options)
    return index.search(np.ascontiguousarray(vectors, np.float32), fetch, params=params)


def _groups(eligible: Sequence[Eligibility]) -> dict[Eligibility, list[int]]:
    """Group the queries that one selector can serve: those of one year limit with few exclusions."""
    groups: dict[Eligibility, list[int]] = {}
    for i, rule in enumerate(eligible):
        shared = rule if len(rule.excluded) > FEW_EXCLUDED else Eligibility(rule.year_max)
        groups.setdefault(shared, []).append(i)
    return groups


def _few_exclusions(eligible: Eligibility) -> int:
    return len(eligible.excluded) if len(eligible.excluded) <= FEW_EXCLUDED else 0


def _eligible_hits(
    eligible: Eligibility, scores: Scores, rows: Numbers, k: int, *, is_complete: bool
) -> RowsAndScores | None:
    """Remove excluded rows; None if fewer than `k` remain, or a hit that was not fetched may tie with the last one."""
    is_hit = rows >= 0
    keep = is_hit & ~np.isin(rows, np.fromiter(eligible.excluded, np.int64, len(eligible.excluded)))
    kept = scores[keep]
    enough = is_hit.all() and len(kept) >= k and kept[k - 1] > scores[-1]
    return (rows[keep].astype(np.int32), kept) if is_complete or enough else None


def _batches(queries: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(queries), size):
        yield queries[start : start + size]
