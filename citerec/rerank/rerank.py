"""Makes a ranked list of a cross-encoder's scores: papers that it scored are placed above those that it did not score.

A paper's score is weight * p + (1 - weight) * f: p is the calibrated probability that the query cites it, f the score
in the list before reranking, min-max scaled to [0, 1] over the candidates to be scored. With a weight of 1 it is the
raw score of the cross-encoder, since probabilities may be equal at 1.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from citerec.retrieve.fuse import Points, Rank, min_max
from citerec.rules.known import Rows, Scores
from citerec.types import Hits, falling

Positions = npt.NDArray[np.int64]
ToUnitInterval = Callable[[Scores], Scores]  # scores to values in [0, 1]


def interpolate_scores(
    scores: Scores, probabilities: Scores, previous_scores: Points, weight: float
) -> Scores:
    """Return the interpolated score of each paper, in the shape and order of `scores`, float32.

    Args:
        scores: The raw scores of the cross-encoder.
        probabilities: The calibrated ones, in [0, 1], same shape.
        previous_scores: Those of the list before reranking, scaled to [0, 1], same shape.
        weight: The weight of the cross-encoder, in [0, 1].
    """
    if weight == 1:
        return scores.astype(np.float32)
    wide = probabilities.astype(np.float64)
    return (weight * wide + (1 - weight) * previous_scores).astype(np.float32)


def reordered(hits: Hits, scored: Positions, interpolated: Scores, id_rank: Rank) -> Hits:
    """Put the scored papers on top, best first, and all others below them in their original order.

    Scores of the two groups are not comparable: below the last scored paper, each score is 1 less than the one above,
    or the next smaller float32 where 1 is less than their precision.

    Args:
        hits: The original list.
        scored: Positions in it of the scored papers, from 0.
        interpolated: The interpolated score of each of these.
        id_rank: The rank of each row's docid among all docids; breaks ties.
    """
    if not len(scored):
        return hits
    top = Hits.ordered(hits.rows[scored], interpolated, id_rank)
    others = np.delete(hits.rows, scored)
    below = falling(float(top.scores[-1]) - np.arange(len(others) + 1))[1:]
    scores = np.concatenate([top.scores, below])
    return Hits(np.concatenate([top.rows, others]), scores)


class RerankState:
    """The candidates of one query while a cross-encoder scores them, in the order of their previous scores."""

    def __init__(
        self, hits: Hits, previous_scores: Scores, weight: float, to_unit_interval: ToUnitInterval
    ) -> None:
        """Begin with no scored candidate.

        Args:
            hits: The list; its best `len(previous_scores)` are to be scored.
            previous_scores: Their scores in the list before reranking.
            weight: The weight of the cross-encoder, in [0, 1].
            to_unit_interval: Maps scores of the cross-encoder to [0, 1].
        """
        self._hits, self._weight, self._to_unit_interval = hits, weight, to_unit_interval
        scaled = min_max(previous_scores)
        self._positions = np.argsort(-scaled, kind="stable")
        self._previous_scores = scaled[self._positions]
        self._scores = np.zeros(0, np.float32)

    def next_rows(self, most: int) -> Rows:
        """Return the rows of the next `most` candidates to be scored; fewer at the end."""
        scored = len(self._scores)
        return self._hits.rows[self._positions[scored : scored + most]]

    def add_scores(self, scores: Scores) -> None:
        """Add the scores of the rows that `next_rows` returned last."""
        self._scores = np.concatenate([self._scores, scores])

    def is_settled(self, k: int) -> bool:
        """Whether no remaining candidate can be among the best `k`, so that the rest need not be scored.

        A remaining candidate has a probability of at most 1, and a previous score of at most the next one's. With a
        weight of 1 its score has no bound, so all are scored.
        """
        scored = len(self._scores)
        if scored == len(self._positions):
            return True
        if self._weight == 1 or scored < k:
            return False
        bound = np.float32(self._weight + (1 - self._weight) * self._previous_scores[scored])
        return bool(np.partition(self._interpolated, scored - k)[scored - k] > bound)

    def reranked(self, id_rank: Rank) -> Hits:
        """Return the complete list: scored papers on top, best first."""
        return reordered(self._hits, self._scored_positions, self._interpolated, id_rank)

    def by_reranker(self, id_rank: Rank) -> Hits:
        """Return the scored papers in the order of the cross-encoder alone, with its raw scores."""
        return Hits.ordered(self._hits.rows[self._scored_positions], self._scores, id_rank)

    @property
    def _scored_positions(self) -> Positions:
        return self._positions[: len(self._scores)]

    @property
    def _interpolated(self) -> Scores:
        previous = self._previous_scores[: len(self._scores)]
        unit_scores = self._to_unit_interval(self._scores)
        return interpolate_scores(self._scores, unit_scores, previous, self._weight)
