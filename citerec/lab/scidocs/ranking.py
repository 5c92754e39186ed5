"""Ranking: which of some 30 papers go with a query, told by the distance of vectors alone (SPECTER §3.2, §3.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.errors import ModelError
from citerec.index.dense.library import Vectors

Rows = npt.NDArray[np.int32]
Take = Callable[[Rows], Vectors]
"""Gives the vectors at some rows, shape (len(rows), dim); a row that is not finite stands for no vector."""

DECIMALS = 5
"""The published suite writes distances with so many decimals, and ranks what it wrote."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedQuery:
    """A query, and the papers that are to be ranked for it; make it with `ranked_query`."""

    query: int  # row; -1 for a paper that has no vector
    candidates: Rows  # likewise; by falling docid, which is how ties are broken
    gains: npt.NDArray[np.int64]  # of each candidate; 0 for one that does not go with the query


@dataclass(frozen=True, slots=True)
class RankingScore:
    """How well queries' papers are ranked."""

    map: float  # mean average precision, in [0, 1]
    ndcg: float  # mean normalised discounted cumulative gain, in [0, 1]
    queries: int  # that were judged
    skipped: int  # queries without a vector: not judged
    disabled_features: int  # candidates without a vector, of the queries judged: not found


def ranked_query(
    query: int, docids: Sequence[str], rows: Sequence[int], gains: Sequence[int]
) -> RankedQuery:
    """Make a query of its candidates in any order; at least one must have a gain."""
    if not any(gain > 0 for gain in gains):
        raise ValueError("no candidate goes with the query")
    order = sorted(range(len(docids)), key=lambda i: docids[i], reverse=True)
    candidates = np.array([rows[i] for i in order], np.int32)
    return RankedQuery(query, candidates, np.array([gains[i] for i in order], np.int64))


def score_ranking(
    queries: Sequence[RankedQuery], take: Take, *, decimals: int | None = None
) -> RankingScore:
    """Rank each query's candidates by the L2 distance of vectors, nearest first, and average over queries.

    As the published suite and trec_eval have it: distances are compared as float32; of candidates equally far, the
    one of the later docid stands first; a query without a vector is left out; a candidate without a vector is not
    found, and if it goes with the query the query loses by it.

    Args:
        queries: What is ranked.
        take: Gives vectors.
        decimals: Distances are rounded to so many before they are compared; the published suite has `DECIMALS`.

    Raises:
        ModelError: If no query has a vector.
    """
    rows = np.unique(np.concatenate([[q.query, *q.candidates] for q in queries])).astype(np.int32)
    known = rows[rows >= 0]
    matrix = take(known)
    has = has_vector(matrix)
    measured: list[tuple[float, float]] = []
    disabled_features = 0
    for query in queries:
        place = _place(query.query, known, has)
        if place < 0:
            continue
        places = np.array([_place(row, known, has) for row in query.candidates.tolist()])
        there = places >= 0
        disabled_features += int((~there).sum())
        near = _nearest_first(matrix[place], matrix[places[there]], decimals)
        gains = query.gains[there][near]
        measured.append((average_precision(gains, query.gains), ndcg(gains, query.gains)))
    if not measured:
        raise ModelError(f"none of {len(queries)} queries has a vector; expected one for each")
    means = np.mean(measured, axis=0)
    skipped = len(queries) - len(measured)
    return RankingScore(float(means[0]), float(means[1]), len(measured), skipped, disabled_features)


def has_vector(matrix: Vectors) -> npt.NDArray[np.bool_]:
    """Return which rows are vectors, shape (n,): those that are finite."""
    return np.asarray(np.isfinite(matrix).all(axis=1))


def average_precision(found: npt.NDArray[np.int64], judged: npt.NDArray[np.int64]) -> float:
    """Return the mean, over all that goes with a query, of the precision at its rank; 0 for what is not found.

    Args:
        found: The gain of each paper found, best first.
        judged: All gains of the query.
    """
    hits = found > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / (judged > 0).sum())


def ndcg(found: npt.NDArray[np.int64], judged: npt.NDArray[np.int64]) -> float:
    """Return the discounted gain of a ranking by that of the best one: gain / log2(1 + rank), without a cut-off.

    Args:
        found: The gain of each paper found, best first.
        judged: All gains of the query.

    Source: Järvelin and Kekäläinen 2002, https://doi.org/10.1145/582415.582418, as trec_eval has it.
    """
    best = np.sort(judged)[::-1]
    return float(_discounted(found) / _discounted(best))


def _discounted(gains: npt.NDArray[np.int64]) -> float:
    return float((np.maximum(gains, 0) / np.log2(np.arange(2, len(gains) + 2))).sum())


def _nearest_first(
    query: Vectors, candidates: Vectors, decimals: int | None
) -> npt.NDArray[np.int64]:
    apart = candidates.astype(np.float64) - query.astype(np.float64)
    distances = np.sqrt((apart**2).sum(axis=1))
    if decimals is not None:
        distances = np.round(distances, decimals)
    return np.argsort(distances.astype(np.float32), kind="stable")


def _place(row: int, known: Rows, has: npt.NDArray[np.bool_]) -> int:
    """Return where a row stands among the known ones, or -1 if it has no vector."""
    if row < 0:
        return -1
    place = int(np.searchsorted(known, row))
    return place if has[place] else -1
