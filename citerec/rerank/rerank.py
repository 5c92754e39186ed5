"""From the scores of a cross-encoder to a list: what it has read stands above what it has not.

A paper's merit is weight * p + (1 - weight) * f: p the calibrated probability that the query cites it, f the score
of the first stages, stretched to [0, 1] over the candidates of the query. With a weight of 1 it is the raw score of the
cross-encoder, in which no two papers meet at a probability of 1.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from citerec.fuse import Points, Rank, min_max
from citerec.types import Hits

Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
Calibrated = Callable[[Scores], Scores]  # scores to probabilities in [0, 1]


def interpolate_scores(
    scores: Scores, probabilities: Scores, first: Points, weight: float
) -> Scores:
    """Return how much each paper is worth, shape and order of `scores`, float32.

    Args:
        scores: The raw ones of the cross-encoder.
        probabilities: Calibrated, in [0, 1].
        first: The scores of the first stages, stretched to [0, 1].
        weight: Of the cross-encoder, in [0, 1].
    """
    if weight == 1:
        return scores.astype(np.float32)
    wide = probabilities.astype(np.float64)
    return (weight * wide + (1 - weight) * first).astype(np.float32)


def reordered(hits: Hits, read: Places, worth: Scores, id_rank: Rank) -> Hits:
    """Put what was read on top, best first, and all else beneath it in the order it came in.

    Scores of two kinds are not compared: beneath the last paper that was read, each scores 1 less than the one above.

    Args:
        hits: The list as it came.
        read: Places in it, from 0.
        worth: The merit of each of these.
        id_rank: Of each row's docid among all docids; breaks ties.
    """
    if not len(read):
        return hits
    top = Hits.ordered(hits.rows[read], worth, id_rank)
    others = np.delete(hits.rows, read)
    below = float(top.scores[-1]) - np.arange(1, len(others) + 1)
    scores = np.concatenate([top.scores, below.astype(np.float32)])
    return Hits(np.concatenate([top.rows, others]), scores)


class RerankState:
    """The candidates of one query while a cross-encoder reads them, those first that the first stages like best."""

    def __init__(self, hits: Hits, first: Scores, weight: float, calibrated: Calibrated) -> None:
        """Begin with none read.

        Args:
            hits: The list; its best `len(first)` are to be read.
            first: What the first stages gave to each of these.
            weight: Of the cross-encoder, in [0, 1].
            calibrated: Turns its scores into probabilities.
        """
        self._hits, self._weight, self._calibrated = hits, weight, calibrated
        liked = min_max(first)
        self._places = np.argsort(-liked, kind="stable")
        self._first = liked[self._places]
        self._scores = np.zeros(0, np.float32)

    def next_rows(self, most: int) -> Rows:
        """Return the rows of the next `most` candidates to be read; fewer at the end."""
        read = len(self._scores)
        return self._hits.rows[self._places[read : read + most]]

    def take(self, scores: Scores) -> None:
        """Note the scores of the rows that were asked for last."""
        self._scores = np.concatenate([self._scores, scores])

    def is_settled(self, k: int) -> bool:
        """Whether no candidate that is left can come among the best `k`: the rest need not be read.

        What is left has a probability of at most 1 and a first score of at most the next one's. With a weight of 1
        nothing is known of it, so that all is read.
        """
        read = len(self._scores)
        if read == len(self._places):
            return True
        if self._weight == 1 or read < k:
            return False
        bound = np.float32(self._weight + (1 - self._weight) * self._first[read])
        return bool(np.partition(self._worth, read - k)[read - k] > bound)

    def reranked(self, id_rank: Rank) -> Hits:
        """Return the whole list: what was read on top, best first."""
        return reordered(self._hits, self._read, self._worth, id_rank)

    def judged(self, id_rank: Rank) -> Hits:
        """Return what was read in the order of the cross-encoder alone, with its raw scores."""
        return Hits.ordered(self._hits.rows[self._read], self._scores, id_rank)

    @property
    def _read(self) -> Places:
        return self._places[: len(self._scores)]

    @property
    def _worth(self) -> Scores:
        first = self._first[: len(self._scores)]
        return interpolate_scores(self._scores, self._calibrated(self._scores), first, self._weight)
