"""An open reranker: scores the best candidates of each query and orders them by an interpolated score.

A paper's score is weight * p + (1 - weight) * f: p is the calibrated probability that the query cites it, f the score
in the list before reranking, min-max scaled to [0, 1] over the candidates to be scored. With a weight of 1 it is the
raw score of the cross-encoder, since probabilities may be equal at 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.retrieve.fuse import Rank, min_max
from citerec.rules.known import Rows, Scores
from citerec.types import Hits, Paper, Progress, Query, falling

NAME = "rerank"  # the name of the reranker's hits
DEPTH = 50  # candidates per query of a reranker that a user brings


class Scorer(Protocol):
    """Scores pairs; `CrossEncoder` is one."""

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the score of each candidate of each query, float32, in the order of `rows`."""
        ...

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return each score in [0, 1], same shape; a calibrated scorer returns probabilities."""
        ...


class Reranker(Protocol):
    """A user's reranker; it may have an attribute `depth`, how many candidates it scores (50 by default)."""

    def score(self, query: Query, papers: Sequence[Paper]) -> Sequence[float]:
        """Return one finite score per paper, in the order given; a higher one is better."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """The reranked candidates of one query."""

    hits: Hits  # all candidates; scores are comparable only among those that the reranker scored
    scored: Hits  # those that it scored, ordered by its raw scores


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReranker:
    """An open cross-encoder, or a user's object, with how many candidates of an index it scores."""

    index: IndexFolder
    name: str  # for users
    scorer: Scorer
    depth: int  # candidates per query
    weight: float  # against the previous order, in [0, 1]
    settings: Mapping[str, Any]  # what its scores depend on: weights, tokens, backend, precision
    default_weight: float = 1.0  # what the model's folder states, where none is given or tuned
    calibrated: bool = False  # whether a training calibrated its scores
    has_probability: bool = True  # whether a score means the same for every query

    @classmethod
    def of(cls, index: IndexFolder, reranker: Reranker, weight: float | None) -> Self:
        """Wrap a user's reranker; its scores of one query are scaled to [0, 1] for interpolation.

        Raises:
            ConfigError: If its depth is no whole number of at least 1.
        """
        name, depth = name_of(reranker), getattr(reranker, "depth", DEPTH)
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ConfigError(f"the depth of {name} must be at least 1, got {depth!r}")
        return cls(
            index=index,
            name=name,
            scorer=PaperScorer(reranker),
            depth=depth,
            weight=1.0 if weight is None else weight,
            settings={"device": "cpu", "weights": name},
            has_probability=False,
        )

    def with_weight(self, weight: float) -> Self:
        """Return the same reranker with another weight."""
        return replace(self, weight=weight)

    def __str__(self) -> str:
        """Describe the reranker and its settings in one line."""
        settings = self.settings
        where = "" if settings["device"] == "cpu" else f" on {settings['device']}"
        weight = "" if self.weight == 1 else f", weight {self.weight:g}"
        best = f"reranking the best {self.depth:,} by {self.name}"
        if "backend" not in settings:  # a user's object
            return f"{best}{weight}"
        return (
            f"{best}: {settings['query_tokens']}+{settings['candidate_tokens']} tokens, "
            f"{settings['backend']} {settings['precision']}{where}{weight}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the description for a report."""
        shown = Path(self.name).name if Path(self.name).is_absolute() else self.name
        return {"model": shown, "depth": self.depth, "weight": self.weight, **self.settings}

    def probability(self, score: float) -> float:
        """Return the calibrated probability of a score."""
        return float(self.scorer.to_unit_interval(np.array([score], np.float32))[0])

    def probabilities(self, reranked: Reranked) -> Hits | None:
        """Return the calibrated probabilities of the scored papers.

        None unless a training calibrated the reranker and its scores alone decide the order.
        """
        return self.unit_scores(reranked) if self.calibrated and self.weight == 1 else None

    def unit_scores(self, reranked: Reranked) -> Hits:
        """Return the scored papers with their scores in [0, 1]: probabilities if calibrated."""
        scored = reranked.scored
        return Hits(scored.rows, self.scorer.to_unit_interval(scored.scores))

    def rerank(
        self,
        queries: Sequence[Query],
        candidates: Sequence[Hits],
        progress: Progress | None = None,
    ) -> list[Reranked]:
        """Rerank the best candidates of each query; the pairs of all queries are scored together.

        Returns:
            One per query with all of its candidates: the scored ones, best first, above the others in their order.
        """
        rows = [hits.rows[: self.depth] for hits in candidates]
        scores = self.scorer.score(self.index, queries, rows, progress)
        id_rank = self.index.id_rank
        return [
            Reranked(
                reordered(hits, self._interpolated(of_query, hits), id_rank),
                Hits.ordered(hits.rows[: len(of_query)], of_query, id_rank),
            )
            for hits, of_query in zip(candidates, scores, strict=True)
        ]

    def _interpolated(self, scores: Scores, hits: Hits) -> Scores:
        return interpolated(
            scores,
            self.scorer.to_unit_interval(scores),
            min_max(hits.scores[: len(scores)]),
            self.weight,
        )


def interpolated(
    scores: Scores, probabilities: Scores, previous: np.ndarray[Any, Any], weight: float
) -> Scores:
    """Interpolate scores with those of the list before, scaled to [0, 1]; all of the same shape."""
    if weight == 1:
        return scores.astype(np.float32)
    wide = probabilities.astype(np.float64)
    return (weight * wide + (1 - weight) * previous).astype(np.float32)


def reordered(hits: Hits, scores: Scores, id_rank: Rank) -> Hits:
    """Order the first `len(scores)` hits by new scores, and keep all others below them in their order.

    Scores of the two groups are not comparable: below the last scored paper, each score is 1 less than the one above,
    or the next smaller float32 where 1 is less than their precision.
    """
    if not len(scores):
        return hits
    top = Hits.ordered(hits.rows[: len(scores)], scores, id_rank)
    others = hits.rows[len(scores) :]
    below = falling(float(top.scores[-1]) - np.arange(len(others) + 1))[1:]
    return Hits(np.concatenate([top.rows, others]), np.concatenate([top.scores, below]))


@dataclass(frozen=True, slots=True)
class PaperScorer:
    """Reads the papers of an index for a user's reranker."""

    reranker: Reranker

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the scores of the candidates of each query, float32.

        Raises:
            ConfigError: If the reranker does not return one finite number per paper.
        """
        scores: list[Scores] = []
        for query, of_query in zip(queries, rows, strict=True):
            papers = index.papers.at(of_query.tolist())
            found = self.reranker.score(query, [papers[row] for row in of_query.tolist()])
            values = np.asarray(found, np.float32)
            if values.shape != (len(of_query),) or not np.isfinite(values).all():
                raise ConfigError(
                    f"{name_of(self.reranker)}.score must return {len(of_query)} finite numbers, one per paper, "
                    f"got shape {values.shape}"
                )
            scores.append(values)
        return scores

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return the scores of one query scaled to [0, 1]; they are no calibrated probabilities."""
        return min_max(scores).astype(np.float32)


def name_of(part: object) -> str:
    """Return the name under which messages show an object that a user brings: its `name`, else its type."""
    return str(getattr(part, "name", "") or type(part).__name__)
