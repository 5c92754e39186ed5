"""Fuses rankings of one query into one: pure functions on hits."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from citerec.config import FuseConfig, FuseMethod
from citerec.types import Hits

Points = npt.NDArray[np.float64]
Rank = npt.NDArray[np.int32]

_LEAST_SPREAD = 1e-9  # of scores, as in ranx: what is closer than that is all the same


def fuse(
    found: Mapping[str, Hits], id_rank: Rank, config: FuseConfig, *, k: int | None = None
) -> Hits:
    """Fuse what the stages found, as `config` says.

    Args:
        found: By the name of the stage, a name of `config.weights`.
        id_rank: Of each row's docid among all docids; breaks ties.
        config: The method and what it needs.
        k: At most this many; None for all.
    """
    read = {
        name: Hits(h.rows[: config.depth], h.scores[: config.depth]) for name, h in found.items()
    }
    if config.method is FuseMethod.RRF:
        return rrf([*read.values()], id_rank, k0=config.k0, k=k)
    return weighted_sum([*read.values()], [config.weights[n] for n in read], id_rank, k=k)


def rrf(
    found: Sequence[Hits],
    id_rank: Rank,
    *,
    k0: int = 60,
    weights: Sequence[float] | None = None,
    k: int | None = None,
) -> Hits:
    """Fuse by reciprocal rank: a paper scores the sum of weight / (k0 + rank), rank from 1.

    Only ranks are read, so BM25 scores and inner products may be mixed.

    Args:
        found: One per stage; a paper missing from one gets nothing from it.
        id_rank: Of each row's docid among all docids; breaks ties.
        k0: Damping; 60 in the source.
        weights: One per stage; all 1 in the source, and by default.
        k: At most this many; None for all.

    Returns:
        Every paper that any stage found; scores lie in (0, sum of weights / (k0 + 1)].

    Raises:
        ValueError: If `k0` is negative, or there is not one weight per stage.

    Source: Cormack et al., SIGIR 2009, https://doi.org/10.1145/1571941.1572114.
    """
    if k0 < 0:
        raise ValueError(f"k0 must not be negative, got {k0}")
    points = [1 / (k0 + np.arange(1, len(hits) + 1)) for hits in found]
    return _summed(found, points, weights or [1.0] * len(found), id_rank, k)


def weighted_sum(
    found: Sequence[Hits], weights: Sequence[float], id_rank: Rank, *, k: int | None = None
) -> Hits:
    """Fuse by scores: a paper scores the weighted sum of its scores, each stage's stretched to [0, 1].

    A stage's last hit gets 0 from it, as do all of them where all have the same score (as in ranx): such a
    stage says nothing of who is better.

    Args:
        found: One per stage; a paper missing from one gets nothing from it.
        weights: One per stage.
        id_rank: Of each row's docid among all docids; breaks ties.
        k: At most this many; None for all.

    Returns:
        Every paper that any stage found; scores lie in [0, sum of weights].

    Raises:
        ValueError: If there is not one weight per stage.
    """
    return _summed(found, [min_max(hits.scores) for hits in found], weights, id_rank, k)


def stage_hits(
    hits: Hits, rows: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return where one stage put some papers: rank from 1 and score, both in the shape of `rows`.

    A paper that the stage did not find has rank 0 and score NaN.
    """
    ranks = np.zeros(len(rows), np.int32)
    scores = np.full(len(rows), np.nan, np.float32)
    if len(hits):
        order = np.argsort(hits.rows)
        place = order[np.searchsorted(hits.rows, rows, sorter=order).clip(max=len(hits) - 1)]
        there = hits.rows[place] == rows
        ranks[there] = place[there] + 1
        scores[there] = hits.scores[place[there]]
    return ranks, scores


def min_max(scores: npt.NDArray[np.float32]) -> Points:
    """Stretch the scores of one list to [0, 1]; all 0 where all are the same."""
    if not len(scores):
        return np.zeros(0)
    wide = scores.astype(np.float64)
    return (wide - wide.min()) / max(np.ptp(wide), _LEAST_SPREAD)


def _summed(
    found: Sequence[Hits],
    points: Sequence[Points],
    weights: Sequence[float],
    id_rank: Rank,
    k: int | None,
) -> Hits:
    """Sum the points of each paper; ordered by the scores as they come back, in float32."""
    if len(weights) != len(found):
        raise ValueError(f"{len(weights)} weights for {len(found)} rankings")
    if not found:
        return Hits(np.zeros(0, np.int32), np.zeros(0, np.float32))
    rows, place = np.unique(np.concatenate([hits.rows for hits in found]), return_inverse=True)
    weighted = np.concatenate([w * p for w, p in zip(weights, points, strict=True)])
    scores = np.bincount(place, weighted, len(rows)).astype(np.float32)
    return Hits.ordered(rows, scores, id_rank, k)
