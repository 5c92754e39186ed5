"""Keeps a list from saying the same thing twice: maximal marginal relevance.

Source: Carbonell and Goldstein, SIGIR 1998, https://doi.org/10.1145/290941.291025.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from citerec.fuse import min_max
from citerec.types import Hits

Likeness = npt.NDArray[np.float32]
Alike = Callable[[int], Likeness]  # of one paper of the list, by its place, with each of them

_K0 = 60  # of the ranks
DEPTH = 200  # of a list, at least: what may come up from below


def diversified(hits: Hits, alike: Alike, diversity: float, k: int) -> Hits:
    """Choose `k` papers one by one, each worth (1 - d) * merit - d * its greatest likeness to those chosen.

    The merit is 1 / (60 + rank), stretched to [0, 1]: scores beneath a reranker's depth are of another kind.

    Args:
        hits: The list, best first.
        alike: The likeness of papers, at most 1; below 0 it counts as 0.
        diversity: d, in [0, 1]: 0 leaves the list as it is.
        k: How many.
    """
    merit = min_max((1 / (_K0 + np.arange(1, len(hits) + 1))).astype(np.float32))
    worth = ((1 - diversity) * merit).astype(np.float32)
    nearest = np.zeros(len(hits), np.float32)
    chosen: list[int] = []
    scores: list[float] = []
    left = np.ones(len(hits), np.bool_)
    for _ in range(min(k, len(hits))):
        value = np.where(left, worth - np.float32(diversity) * nearest, np.float32(-np.inf))
        place = int(np.argmax(value))  # of equal ones the first
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
