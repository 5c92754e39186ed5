"""The training examples of the learning-to-rank model: the features and labels of some candidates of each query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from citerec.rank.features import FEATURES, NAMES, Group, Matrix, without_groups
from citerec.rerank.reranker import NAME as RERANK
from citerec.train.measures import f1_and_reciprocal_rank

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

# The probability that a feature group is disabled in a copy of a query. Lexical features are always enabled, since
# every index has BM25. Graph and popularity are disabled together, as in an index without citations.
MISSING = (
    ((Group.SEMANTIC,), 0.3),
    ((Group.RERANKER,), 0.5),
    ((Group.GRAPH, Group.POPULARITY), 0.25),
    ((Group.AUTHORS,), 0.3),
    ((Group.VENUE,), 0.3),
)


@dataclass(frozen=True, slots=True, eq=False)
class RankerExamples:
    """The candidates of several queries, query by query, in first-stage order."""

    matrix: Matrix  # shape (papers, features), columns as `FEATURES`
    cited: Flags  # shape (papers,)
    sizes: Counts  # papers of each query, shape (queries,)
    gold: Counts  # cited papers of each query, retrieved or not, shape (queries,)
    weights: Weights  # of each paper, shape (papers,)

    @classmethod
    def one(cls, matrix: Matrix, cited: Flags, gold: int, weights: Weights | None = None) -> Self:
        """Make the examples of one query; weights are 1 by default."""
        each = np.ones(len(cited), np.float32) if weights is None else weights
        return cls(matrix, cited, np.array([len(cited)]), np.array([gold]), each)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the queries of several parts."""
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
    def segment_ids(self) -> Counts:
        """The number of the query of each paper, shape (papers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def of(self, chosen: Flags) -> Self:
        """Return the flagged queries; `chosen` has shape (queries,)."""
        rows = chosen[self.segment_ids]
        return type(self)(
            self.matrix[rows],
            self.cited[rows],
            self.sizes[chosen],
            self.gold[chosen],
            self.weights[rows],
        )

    def learnable(self) -> Self:
        """Return the queries with both cited and other papers."""
        hits = np.bincount(self.segment_ids, self.cited, len(self))
        return self.of((hits > 0) & (hits < self.sizes))

    def measures(self, scores: npt.NDArray[np.floating]) -> dict[str, float]:
        """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper (0 if there is none).

        Equal scores keep the first-stage order.
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


def is_reranked(examples: RankerExamples) -> bool:
    """Return whether a reranker scored a candidate of any query."""
    return bool(np.isfinite(examples.matrix[:, NAMES.index(RERANK)]).any())


def always_present(groups: Sequence[Group]) -> frozenset[str]:
    """Return the features of disabled groups that stay enabled: the age of a paper needs no citation graph."""
    return frozenset({"age"}) if Group.GRAPH in groups else frozenset()


def sampled(
    matrix: Matrix, cited: Flags, gold: int, negatives: int, rng: np.random.Generator
) -> RankerExamples:
    """Sample the examples of one query: all cited papers, and some others.

    Half of the others are the top candidates, where the ranking is decided; the rest is drawn from all candidates. Each
    of these is weighted by the square root of the number of papers that it represents. Without weights the model would
    learn that middle ranks are nearly empty and would raise useless papers from there; the full weight would cost
    accuracy at the top.

    Args:
        matrix: The features of the candidates, best first.
        cited: Which candidates the query cites.
        gold: The number of cited papers, retrieved or not.
        negatives: The number of others, at most.
        rng: Draws them.
    """
    others = np.flatnonzero(~cited)
    best, rest = others[: negatives // 2], others[negatives // 2 :]
    drawn = rng.choice(rest, min(len(rest), negatives - len(best)), replace=False)
    weights = np.ones(len(cited), np.float32)
    weights[drawn] = np.sqrt(len(rest) / max(len(drawn), 1))
    rows = np.sort(np.concatenate([np.flatnonzero(cited), best, drawn]))
    return RankerExamples.one(matrix[rows], cited[rows], gold, weights[rows])


def with_copies(examples: RankerExamples, copies: int, rng: np.random.Generator) -> RankerExamples:
    """Return the queries and `copies` copies of each with disabled feature groups; this trains ranking without them.

    Args:
        examples: The examples with all groups.
        copies: The number of copies.
        rng: Draws the disabled groups of each query.
    """
    parts = [examples]
    for _ in range(copies):
        matrix = examples.matrix
        for groups, share in MISSING:
            disabled_features = rng.random(len(examples)) < share
            matrix = without_groups(
                matrix,
                groups,
                disabled_features[examples.segment_ids],
                keep=always_present(groups),
            )
        parts.append(replace(examples, matrix=matrix))
    return RankerExamples.joined(parts)
