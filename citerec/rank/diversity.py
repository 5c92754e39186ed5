"""Keeps a list from saying the same thing twice: maximal marginal relevance.

Source: Carbonell and Goldstein, SIGIR 1998, https://doi.org/10.1145/290941.291025.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from citerec.fuse import Rank, stretched
from citerec.rank.known import Rows
from citerec.types import Hits

Likeness = npt.NDArray[np.float32]
Alike = Callable[[int], Likeness]  # of one paper of the list, by its place, with each of them

DEPTH = 200  # of a list, at least: what may come up from below


def diversified(hits: Hits, alike: Alike, diversity: float, k: int, id_rank: Rank) -> Hits:
    """Choose `k` papers one by one, each worth (1 - d) * score - d * its greatest likeness to those chosen.

    Args:
        hits: The list; its scores are stretched to [0, 1].
        alike: The likeness of papers, at most 1; below 0 it counts as 0.
        diversity: d, in [0, 1]: 0 leaves the list as it is.
        k: How many.
        id_rank: Of each row's docid among all docids; breaks ties.
    """
    worth = ((1 - diversity) * stretched(hits.scores)).astype(np.float32)
    nearest = np.zeros(len(hits), np.float32)
    chosen: list[int] = []
    scores: list[float] = []
    left = np.ones(len(hits), np.bool_)
    for _ in range(min(k, len(hits))):
        value = np.where(left, worth - np.float32(diversity) * nearest, np.float32(-np.inf))
        best = np.flatnonzero(value == value.max())
        place = int(best[np.argmin(id_rank[hits.rows[best]])])
        chosen.append(place)
        scores.append(float(value[place]))
        left[place] = False
        nearest = np.maximum(nearest, alike(place))
    return Hits(hits.rows[chosen], np.array(scores, np.float32))


def by_vectors(vectors: npt.NDArray[np.float32]) -> Alike:
    """Return the cosine of vectors as likeness."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(length, 1e-9)
    return lambda place: (unit @ unit[place]).astype(np.float32)


def by_words(words: Sequence[frozenset[str]]) -> Alike:
    """Return the Jaccard similarity of sets of words as likeness."""

    def alike(place: int) -> Likeness:
        mine = words[place]
        shared = np.array([len(mine & theirs) for theirs in words])
        either = np.array([len(mine | theirs) for theirs in words])
        return (shared / np.maximum(either, 1)).astype(np.float32)

    return alike


def cut(hits: Hits, k: int) -> Hits:
    """Return the best `k` of a list."""
    rows: Rows = hits.rows[:k]
    return Hits(rows, hits.scores[:k])
