"""Diversifies a ranked list by maximal marginal relevance.

Source: Carbonell and Goldstein, SIGIR 1998, https://doi.org/10.1145/290941.291025.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from citerec.config import RRF_K0
from citerec.retrieve.fuse import min_max
from citerec.types import Hits

Similarities = npt.NDArray[np.float32]
SimilarityFunction = Callable[
    [int], Similarities
]  # from the position of one paper to its similarity with each paper, shape (papers,)

DEPTH = 200  # least number of papers of the list to choose from


def diversified(hits: Hits, similarity: SimilarityFunction, diversity: float, k: int) -> Hits:
    """Choose `k` papers one by one by the highest (1 - d) * relevance - d * maximum similarity to the chosen papers.

    The relevance is 1 / (`RRF_K0` + rank), min-max scaled to [0, 1]. Scores are not read: those below the depth of a
    reranker are not comparable with those above it.

    Args:
        hits: The list, best first.
        similarity: Computes the similarity of papers, at most 1; values below 0 count as 0.
        diversity: d, in [0, 1]; 0 keeps the order of the list.
        k: The number of papers to choose.
    """
    relevance = min_max((1 / (RRF_K0 + np.arange(1, len(hits) + 1))).astype(np.float32))
    weighted_relevance = ((1 - diversity) * relevance).astype(np.float32)
    max_similarity = np.zeros(len(hits), np.float32)
    chosen: list[int] = []
    scores: list[float] = []
    is_left = np.ones(len(hits), np.bool_)
    for _ in range(min(k, len(hits))):
        value = np.where(
            is_left,
            weighted_relevance - np.float32(diversity) * max_similarity,
            np.float32(-np.inf),
        )
        position = int(np.argmax(value))  # the first of equal values
        chosen.append(position)
        scores.append(float(value[position]))
        is_left[position] = False
        max_similarity = np.maximum(max_similarity, similarity(position))
    return Hits(hits.rows[chosen], np.array(scores, np.float32))


def by_vectors(vectors: npt.NDArray[np.float32]) -> SimilarityFunction:
    """Return the cosine of vectors as a similarity function."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(length, 1e-9)
    return lambda position: (unit @ unit[position]).astype(np.float32)


def by_words(words: Sequence[frozenset[str]]) -> SimilarityFunction:
    """Return the Jaccard similarity of sets of words as a similarity function."""

    def similarity(position: int) -> Similarities:
        paper_words = words[position]
        shared = np.array([len(paper_words & other_words) for other_words in words])
        either = np.array([len(paper_words | other_words) for other_words in words])
        return (shared / np.maximum(either, 1)).astype(np.float32)

    return similarity
