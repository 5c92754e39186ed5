"""Ranking: some 30 candidates of a query ranked by vector distance (SPECTER, sections 3.2 and 3.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.errors import ModelError
from citerec.files.arrays import Vectors

Rows = npt.NDArray[np.int32]
Take = Callable[[Rows], Vectors]
"""Returns the vectors at some rows, shape (len(rows), dim); one that is not finite, as for row -1, means no vector."""

DECIMALS = 5
"""The published suite rounds distances to so many decimals before it ranks."""


@dataclass(frozen=True, slots=True, eq=False)
class RankedQuery:
    """A query and its candidates; create it with `ranked_query`."""

    query: int  # row; -1 for a paper that has no vector
    candidates: Rows  # likewise; by falling docid, which breaks ties
    gains: npt.NDArray[np.int64]  # of each candidate; 0 for an irrelevant one


@dataclass(frozen=True, slots=True)
class RankingScore:
    """The score of a ranking task."""

    map: float  # mean average precision, in [0, 1]
    ndcg: float  # mean normalised discounted cumulative gain, in [0, 1]
    queries: int  # evaluated queries
    skipped: int  # queries without a vector, not evaluated
    without_vector: int  # candidates without a vector, not ranked


def ranked_query(
    query: int, docids: Sequence[str], rows: Sequence[int], gains: Sequence[int]
) -> RankedQuery:
    """Create a query from its candidates in any order; at least one must be relevant."""
    if not any(gain > 0 for gain in gains):
        raise ValueError("no candidate is relevant")
    order = sorted(range(len(docids)), key=lambda i: docids[i], reverse=True)
    candidates = np.array([rows[i] for i in order], np.int32)
    return RankedQuery(query, candidates, np.array([gains[i] for i in order], np.int64))


def score_ranking(
    queries: Sequence[RankedQuery], take: Take, *, decimals: int | None = None
) -> RankingScore:
    """Rank the candidates of each query by L2 distance, nearest first, and average the metrics over queries.

    As in the published suite and trec_eval, distances are compared as float32; ties are broken by falling docid;
    queries without a vector are skipped; candidates without a vector are not ranked, which lowers the score if they are
    relevant.

    Args:
        queries: The queries with their candidates.
        take: Returns vectors.
        decimals: Distances are rounded to so many decimals; the published suite uses `DECIMALS`.

    Raises:
        ModelError: If no query has a vector.
    """
    measured: list[tuple[float, float]] = []
    without_vector = 0
    for query in queries:
        matrix = take(np.append(query.candidates, np.int32(query.query)))
        has = has_vector(matrix)
        if not has[-1]:
            continue
        without_vector += int((~has).sum())
        order = _nearest_first(matrix[-1], matrix[:-1][has[:-1]], decimals)
        gains = query.gains[has[:-1]][order]
        measured.append(
            (average_precision(gains, query.gains), ndcg(gains, query.gains))
        )
    if not measured:
        raise ModelError(
            f"none of {len(queries)} queries has a vector; expected one for each"
        )
    means = np.mean(measured, axis=0)
    skipped = len(queries) - len(measured)
    return RankingScore(
        float(means[0]), float(means[1]), len(measured), skipped, without_vector
    )


def has_vector(matrix: Vectors) -> npt.NDArray[np.bool_]:
    """Return which rows are vectors, shape (n,): those that are finite."""
    return np.asarray(np.isfinite(matrix).all(axis=1))


def average_precision(
    ranked: npt.NDArray[np.int64], gains: npt.NDArray[np.int64]
) -> float:
    """Return the mean over all relevant papers of the precision at their rank; 0 for papers that are not ranked.

    Args:
        ranked: The gains of the ranked papers, best first.
        gains: All gains of the query.
    """
    hits = ranked > 0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / (gains > 0).sum())


def ndcg(ranked: npt.NDArray[np.int64], gains: npt.NDArray[np.int64]) -> float:
    """Return nDCG without cut-off: the sum of gain / log2(1 + rank), divided by that of the best ranking.

    Args:
        ranked: The gains of the ranked papers, best first.
        gains: All gains of the query.

    Source: Järvelin and Kekäläinen 2002, https://doi.org/10.1145/582415.582418, as in trec_eval.
    """
    best = np.sort(gains)[::-1]
    return float(_discounted(ranked) / _discounted(best))


def _discounted(gains: npt.NDArray[np.int64]) -> float:
    return float((np.maximum(gains, 0) / np.log2(np.arange(2, len(gains) + 2))).sum())


def _nearest_first(
    query: Vectors, candidates: Vectors, decimals: int | None
) -> npt.NDArray[np.int64]:
    differences = candidates.astype(np.float64) - query.astype(np.float64)
    distances = np.sqrt((differences**2).sum(axis=1))
    if decimals is not None:
        distances = np.round(distances, decimals)
    return np.argsort(distances.astype(np.float32), kind="stable")
