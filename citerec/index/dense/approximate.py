"""An approximate index, opened: faiss looks at a part of the vectors, which it keeps compressed.

Its scores are those of the compressed vectors. Alone or in a batch a query is scored alike; but ivf
chooses the lists to look at by matrices from 20 queries on, so lists equally far may change places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseKind
from citerec.eligibility import mask
from citerec.encode.spec import Similarity
from citerec.index.dense.exact import Found
from citerec.index.dense.library import Vectors, load
from citerec.types import Eligible

Scores = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

FEW = 100  # exclusions of a query that are met by fetching more; with more it is searched for alone
_CELLS = 2**22  # hits that are kept for the queries searched at once
_SCAN_WORTH = 16  # eligible papers whose scan costs no more than one candidate of a filtered graph


@dataclass(frozen=True, slots=True)
class Search:
    """How thoroughly an index is searched."""

    kind: DenseKind
    effort: int  # candidates of hnsw, lists of ivf: efSearch, nprobe


class ApproximateIndex:
    """Searches an HNSW or an IVF index."""

    def __init__(
        self, index: Any, search: Search, similarity: Similarity, years: npt.NDArray[np.int32]
    ) -> None:
        self._index = index
        self._search = search
        self._similarity = similarity
        self._years = years

    def nearest(self, vectors: Vectors, eligible: Sequence[Eligible], k: int) -> list[Found]:
        """Return the nearest eligible rows of each query that are found, at least `k` if there are."""
        found: list[Found] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * len(vectors)
        for rule, group in _groups(eligible).items():
            keep = mask(rule, self._years)
            for i, hits in self._nearest(vectors, eligible, group, k, keep):
                found[i] = hits
        return found

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors at some rows, as far as compression left them."""
        if not len(rows):
            return np.zeros((0, self._index.d), np.float32)
        if self._search.kind is DenseKind.IVF and self._index.direct_map.no():
            self._index.make_direct_map()
        return np.stack([self._index.reconstruct(int(row)) for row in rows])

    def _nearest(
        self, vectors: Vectors, eligible: Sequence[Eligible], group: list[int], k: int, keep: Mask
    ) -> Iterator[tuple[int, Found]]:
        """Search for the queries of a group until each has enough, then by looking at everything."""
        count = int(np.count_nonzero(keep))
        fetch = min(k + 1 + max(_few(eligible[i]) for i in group), count)
        everything = self._scans(count, fetch)
        pending = group if count else []
        while pending:
            left: list[int] = []
            for batch in _batches(pending, max(_CELLS // fetch, 1)):
                scores, rows = self._found(vectors[batch], fetch, keep, everything)
                whole = everything and fetch == count
                for i, mine, at in zip(batch, scores, rows, strict=True):
                    hits = _settle(eligible[i], mine, at, k, whole=whole)
                    if hits is None:
                        left.append(i)
                    else:
                        yield i, hits
            # What a filtered search misses is there, or enough was found and more of it ties.
            pending, everything, fetch = left, True, min(4 * fetch, count)

    def _found(
        self, vectors: Vectors, fetch: int, keep: Mask, everything: bool
    ) -> tuple[Scores, Numbers]:
        index, share = self._index, np.count_nonzero(keep) / len(keep)
        effort = len(keep) if everything else ceil(self._search.effort / share)
        if everything and self._search.kind is DenseKind.HNSW:
            index, effort = load().downcast_index(index.storage), None
        none_out = None if share == 1 else keep
        scores, rows = find(index, self._search.kind, vectors, fetch, effort, keep=none_out)
        return (0 - np.sqrt(np.maximum(scores, 0)), rows) if self._is_l2 else (scores, rows)

    @property
    def _is_l2(self) -> bool:
        return self._similarity is Similarity.L2

    def _scans(self, count: int, fetch: int) -> bool:
        """Whether to look at every eligible vector, because few are: the graph would be left by then.

        To meet its candidates, a search of the graph passes so many more as fewer are eligible.
        """
        candidates = max(self._search.effort, fetch) * len(self._years)
        return self._search.kind is DenseKind.HNSW and count**2 <= _SCAN_WORTH * candidates


def find(
    index: Any,
    kind: DenseKind,
    vectors: Vectors,
    fetch: int,
    effort: int | None,
    *,
    keep: Mask | None = None,
) -> tuple[Scores, Numbers]:
    """Search with faiss; returns its measures and the rows, both of shape (len(vectors), fetch).

    Args:
        index: A faiss index.
        kind: Of the index.
        vectors: The queries.
        fetch: Hits per query; a row is -1 where fewer are found.
        effort: efSearch or nprobe; None to look at every vector of an index without structure.
        keep: Which rows are eligible, shape (n,); None for all.
    """
    faiss = load()
    options: dict[str, Any] = {}
    if keep is not None:
        options["sel"] = faiss.IDSelectorBitmap(np.packbits(keep, bitorder="little"))
    if effort is None:
        params = faiss.SearchParameters(**options)
    elif kind is DenseKind.HNSW:
        params = faiss.SearchParametersHNSW(efSearch=max(effort, fetch), **options)
    else:
        params = faiss.SearchParametersIVF(nprobe=min(effort, index.nlist), **options)
    return index.search(np.ascontiguousarray(vectors, np.float32), fetch, params=params)


def _groups(eligible: Sequence[Eligible]) -> dict[Eligible, list[int]]:
    """Group the queries that one selector can serve."""
    groups: dict[Eligible, list[int]] = {}
    for i, rule in enumerate(eligible):
        shared = rule if len(rule.excluded) > FEW else Eligible(rule.year_max)
        groups.setdefault(shared, []).append(i)
    return groups


def _few(eligible: Eligible) -> int:
    return len(eligible.excluded) if len(eligible.excluded) <= FEW else 0


def _settle(
    eligible: Eligible, scores: Scores, rows: Numbers, k: int, *, whole: bool
) -> Found | None:
    """Take out what is excluded; None if `k` are not left, or what was not fetched may tie with the last."""
    here = rows >= 0
    keep = here & ~np.isin(rows, np.fromiter(eligible.excluded, np.int64, len(eligible.excluded)))
    kept = scores[keep]
    enough = here.all() and len(kept) >= k and kept[k - 1] > scores[-1]
    return (rows[keep].astype(np.int32), kept) if whole or enough else None


def _batches(queries: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(queries), size):
        yield queries[start : start + size]
