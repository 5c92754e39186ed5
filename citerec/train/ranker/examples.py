"""What the ranker learns from: for each query the features of some papers, and which of them it cites."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from citerec.rank.features import FEATURES, Group, Matrix, without
from citerec.train.selection import f1_and_reciprocal_rank

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

# How often a source is missing in a copy of a query. Words never are: every index has BM25. What the graph tells and
# how often papers are cited are missing together, as they are where an index has no citations.
MISSING = (
    ((Group.SEMANTIC,), 0.3),
    ((Group.RERANKER,), 0.5),
    ((Group.GRAPH, Group.POPULARITY), 0.25),
    ((Group.AUTHORS,), 0.3),
    ((Group.VENUE,), 0.3),
)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Papers of several queries, those of one query one after the other, in the order they were found in."""

    matrix: Matrix  # shape (papers, features), columns as `FEATURES`
    cited: Flags  # shape (papers,)
    sizes: Counts  # papers of each query, shape (queries,)
    gold: Counts  # papers that each query cites, found or not, shape (queries,)
    weights: Weights  # of each paper, shape (papers,)

    @classmethod
    def one(cls, matrix: Matrix, cited: Flags, gold: int, weights: Weights | None = None) -> Self:
        """Make those of one query; unless told otherwise each paper weighs 1."""
        each = np.ones(len(cited), np.float32) if weights is None else weights
        return cls(matrix, cited, np.array([len(cited)]), np.array([gold]), each)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put the queries of several parts one after the other."""
        return cls(
            np.concatenate([np.zeros((0, len(FEATURES)), np.float32), *(p.matrix for p in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(p.cited for p in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(p.sizes for p in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(p.gold for p in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(p.weights for p in parts)]),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def owners(self) -> Counts:
        """The query of each paper, shape (papers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def of(self, chosen: Flags) -> Self:
        """Return some of the queries, flagged, shape (queries,)."""
        rows = chosen[self.owners]
        return type(self)(
            self.matrix[rows],
            self.cited[rows],
            self.sizes[chosen],
            self.gold[chosen],
            self.weights[rows],
        )

    def learnable(self) -> Self:
        """Return the queries that teach an order: with papers that they cite and others."""
        hits = np.bincount(self.owners, self.cited, len(self))
        return self.of((hits > 0) & (hits < self.sizes))

    def measures(self, scores: npt.NDArray[np.floating]) -> dict[str, float]:
        """Return the means of F1 at 20 and of 1 / rank of the first cited paper; 0 where none is found.

        Of equal scores the paper that stood before comes first.
        """
        if not len(self):
            return {"f1@20": 0.0, "mrr": 0.0}
        ends = np.cumsum(self.sizes)
        measured = [
            f1_and_reciprocal_rank(scores[start:end], self.cited[start:end], gold)
            for start, end, gold in zip(
                (ends - self.sizes).tolist(), ends.tolist(), self.gold.tolist(), strict=True
            )
        ]
        f1, reciprocal_ranks = zip(*measured, strict=True)
        return {"f1@20": float(np.mean(f1)), "mrr": float(np.mean(reciprocal_ranks))}


def spared(groups: Sequence[Group]) -> frozenset[str]:
    """Return the features of some sources that are there in any case: an age needs no graph."""
    return frozenset({"age"}) if Group.GRAPH in groups else frozenset()


def sampled(
    matrix: Matrix, cited: Flags, gold: int, negatives: int, rng: np.random.Generator
) -> Examples:
    """Make the examples of one query: all that it cites, and of the rest some.

    Half of those are the best of the pool, where the order is decided; the others are drawn from all of it, and each
    of them weighs more, as it stands for all that might have been drawn in its place. Unweighted, the ranker would
    learn that the middle of a pool is nearly empty, and lift what is of no use from there; by the whole weight it would
    learn less of the top than by the square root.

    Args:
        matrix: The features of its pool, best first.
        cited: Which of these papers it cites.
        gold: How many it cites, found or not.
        negatives: How many others, at most.
        rng: Draws them.
    """
    others = np.flatnonzero(~cited)
    best, rest = others[: negatives // 2], others[negatives // 2 :]
    drawn = rng.choice(rest, min(len(rest), negatives - len(best)), replace=False)
    weights = np.ones(len(cited), np.float32)
    weights[drawn] = np.sqrt(len(rest) / max(len(drawn), 1))
    rows = np.sort(np.concatenate([np.flatnonzero(cited), best, drawn]))
    return Examples.one(matrix[rows], cited[rows], gold, weights[rows])


def with_copies(examples: Examples, copies: int, rng: np.random.Generator) -> Examples:
    """Return the queries, and each again `copies` times with sources missing, so that the ranker can do without.

    Args:
        examples: As all sources were there.
        copies: How often each query is shown again.
        rng: Draws which sources are missing, for each query by itself.
    """
    parts = [examples]
    for _ in range(copies):
        matrix = examples.matrix
        for groups, share in MISSING:
            disabled_features = rng.random(len(examples)) < share
            matrix = without(
                matrix, groups, disabled_features[examples.owners], spare=spared(groups)
            )
        parts.append(replace(examples, matrix=matrix))
    return Examples.joined(parts)
