"""Fuses the rankings of one query into one ranking."""

from collections.abc import Mapping, Sequence

import numpy as np

from citerec.config import RRF_K0, FuseConfig, FuseMethod
from citerec.files.arrays import Floats, Numbers, Rows, Scores, concatenated
from citerec.types import Hits

# least range of scores, as in ranx; a smaller range counts as this one
_LEAST_SPREAD = 1e-9


def fuse(
    rankings: Mapping[str, Hits],
    id_rank: Rows,
    config: FuseConfig,
    *,
    k: int | None = None,
) -> Hits:
    """Fuse the hits of retrievers as configured; a weighted sum needs a weight for each name of `rankings`."""
    hits = [*rankings.values()]
    if config.method is FuseMethod.RRF:
        return rrf(hits, id_rank, k0=config.k0, k=k)
    return weighted_sum(hits, [config.weights[name] for name in rankings], id_rank, k=k)


def rrf(
    rankings: Sequence[Hits],
    id_rank: Rows,
    *,
    k0: int = RRF_K0,
    weights: Sequence[float] | None = None,
    k: int | None = None,
) -> Hits:
    """Fuse by reciprocal rank: a paper scores the sum of weight / (k0 + rank), rank from 1; weights are 1 by default.

    Only ranks are read, so BM25 scores and inner products may be mixed. A paper gets nothing from a ranking without it;
    scores lie in (0, sum of weights / (k0 + 1)].

    Source: Cormack et al., SIGIR 2009, https://doi.org/10.1145/1571941.1572114.
    """
    points = [reciprocal_ranks(len(hits), k0) for hits in rankings]
    return summed(rankings, points, weights or [1.0] * len(rankings), id_rank, k)


def reciprocal_ranks(count: int, k0: int = RRF_K0) -> Floats:
    """Return 1 / (k0 + rank) of the ranks from 1 on, shape (count,)."""
    return 1 / (k0 + np.arange(1, count + 1))


def weighted_sum(
    rankings: Sequence[Hits],
    weights: Sequence[float],
    id_rank: Rows,
    *,
    k: int | None = None,
) -> Hits:
    """Fuse by scores: a paper scores the weighted sum of its scores, min-max scaled to [0, 1] in each ranking.

    The last hit of a ranking gets 0 from it, as does a paper that is missing from it. If all hits have the same score,
    all get 0, as in ranx. Scores lie in [0, sum of weights].
    """
    return summed(
        rankings, [min_max(hits.scores) for hits in rankings], weights, id_rank, k
    )


def ranks_and_scores(hits: Hits, rows: Rows) -> tuple[Rows, Scores]:
    """Return the rank, from 1, and the score of papers in the hits of one stage, both in the shape of `rows`.

    A paper that the stage did not find has rank 0 and score NaN.
    """
    ranks = np.zeros(len(rows), np.int32)
    scores = np.full(len(rows), np.nan, np.float32)
    if len(hits):
        order = np.argsort(hits.rows)
        position = order[
            np.searchsorted(hits.rows, rows, sorter=order).clip(max=len(hits) - 1)
        ]
        is_hit = hits.rows[position] == rows
        ranks[is_hit] = position[is_hit] + 1
        scores[is_hit] = hits.scores[position[is_hit]]
    return ranks, scores


def standardised(scores: Numbers) -> Floats:
    """Scale the scores of one list to mean 0 and standard deviation 1; all 0 if all scores are equal."""
    if not len(scores):
        return np.zeros(0)
    wide = scores.astype(np.float64)
    return (wide - wide.mean()) / max(wide.std(), _LEAST_SPREAD)


def interpolated(scores: Numbers, before: Numbers, weight: float) -> Floats:
    """Return weight * new score + (1 - weight) * score before, each standardised over the list."""
    return weight * standardised(scores) + (1 - weight) * standardised(before)


def min_max(scores: Scores) -> Floats:
    """Scale the scores of one list linearly to [0, 1]; all 0 if all scores are equal."""
    if not len(scores):
        return np.zeros(0)
    wide = scores.astype(np.float64)
    return (wide - wide.min()) / max(np.ptp(wide), _LEAST_SPREAD)


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-logit)) of each number, in [0, 1], same shape; no logit overflows."""
    return 0.5 * (1 + np.tanh(logits / 2))


def summed(
    rankings: Sequence[Hits],
    points: Sequence[Floats],
    weights: Sequence[float],
    id_rank: Rows,
    k: int | None = None,
) -> Hits:
    """Sum the points of each paper, an array per ranking in its order, with the weight of the ranking.

    The order is that of the returned scores, in float32; `k` is the maximum number of papers.
    """
    every = concatenated((hits.rows for hits in rankings), np.int32)
    rows, position = np.unique(every, return_inverse=True)
    pairs = zip(weights, points, strict=True)
    weighted = concatenated((w * p for w, p in pairs), np.float64)
    scores = np.bincount(position, weighted, len(rows)).astype(np.float32)
    return Hits.ordered(rows, scores, id_rank, k)
