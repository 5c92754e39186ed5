"""Chooses papers that differ from each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from citerec.files.arrays import Scores
from citerec.index.folder import IndexFolder
from citerec.rank.features import jaccard, title_words
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.fuse import min_max, reciprocal_ranks
from citerec.types import (
    CandidateSet,
    Hits,
    Progress,
    QueryBatch,
    no_progress,
)

DIVERSE = 200  # least number of papers of the list that diversity chooses from


# from the position of one paper to its similarity with each paper, shape (papers,)
SimilarityFunction = Callable[[int], Scores]


@dataclass(frozen=True, slots=True)
class DiversityStage:
    """Chooses `k` of the best candidates that differ from each other, by their vectors, else by their titles."""

    index: IndexFolder
    dense: DenseRetriever | None
    diversity: float  # in [0, 1]
    k: int

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Choose by maximal marginal relevance."""
        chosen: list[CandidateSet] = []
        for place, before in enumerate(candidates):
            progress("diversifying", place, len(candidates))
            top = before.hits.best(max(self.k, DIVERSE))
            if self.dense:
                similarity = by_vectors(self.dense.directions(top.rows))
            else:
                titles = self.index.papers.texts("title", top.rows).to_pylist()
                similarity = by_words([*map(title_words, titles)])
            hits = diversified(top, similarity, self.diversity, self.k)
            chosen.append(replace(before, hits=hits))
        return chosen


def diversified(
    hits: Hits, similarity: SimilarityFunction, diversity: float, k: int
) -> Hits:
    """Choose `k` papers one by one by the highest (1 - d) * relevance - d * maximum similarity to the chosen papers.

    The relevance is 1 / (`RRF_K0` + rank), min-max scaled to [0, 1]. Scores are not read: those below the depth of a
    reranker are not comparable with those above it. A `diversity` d of 0 keeps the order; a similarity is at most 1,
    and below 0 it counts as 0.

    Source: Carbonell and Goldstein, SIGIR 1998, https://doi.org/10.1145/290941.291025.
    """
    relevance = min_max(reciprocal_ranks(len(hits)).astype(np.float32))
    weighted = ((1 - diversity) * relevance).astype(np.float32)
    max_similarity = np.zeros(len(hits), np.float32)
    chosen: list[int] = []
    scores: list[float] = []
    for _ in range(min(k, len(hits))):
        value = weighted - np.float32(diversity) * max_similarity
        value[chosen] = -np.inf
        position = int(np.argmax(value))  # the first of equal values
        chosen.append(position)
        scores.append(float(value[position]))
        max_similarity = np.maximum(max_similarity, similarity(position))
    return Hits(hits.rows[chosen], np.array(scores, np.float32))


def by_vectors(vectors: Scores) -> SimilarityFunction:
    """Return the cosine of vectors of length 1 as a similarity function."""
    return lambda position: (vectors @ vectors[position]).astype(np.float32)


def by_words(words: Sequence[frozenset[str]]) -> SimilarityFunction:
    """Return the Jaccard similarity of sets of words as a similarity function."""
    return lambda position: jaccard(words[position], words)
