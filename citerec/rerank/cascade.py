"""Several rerankers in sequence: each scores the best papers of the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from citerec.folder import IndexFolder
from citerec.rerank.rerank import RerankState
from citerec.retrieve.fuse import ranks_and_scores
from citerec.rules.known import Rows, Scores
from citerec.types import Hits, Progress, Query

NAME = "rerank"  # the name of the last reranker's hits; those of earlier ones are rerank-1, rerank-2, ...
CHUNK = 16  # candidates per step when scoring may stop early


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeReranker:
    """One reranker of a cascade: an open cross-encoder, or a user's object, and how many candidates it scores."""

    name: str  # of its hits
    shown: str  # the model's name for users
    scorer: Scorer
    depth: int  # candidates per query
    weight: float  # against the previous order, in [0, 1]
    settings: Mapping[str, Any]  # what its scores depend on: weights, tokens, backend, precision
    default_weight: float = 1.0  # what the model's folder states, where none is given or tuned
    calibrated: bool = False  # whether a training calibrated its scores
    has_probability: bool = True  # whether a score means the same for every query

    def __str__(self) -> str:
        """Describe the reranker in a few words."""
        settings = self.settings
        where = "" if settings["device"] == "cpu" else f" on {settings['device']}"
        weight = "" if self.weight == 1 else f", weight {self.weight:g}"
        best = f"the best {self.depth:,} by {self.shown}"
        if "backend" not in settings:  # no cross-encoder
            return f"{best}{weight}"
        return (
            f"{best}: {settings['query_tokens']}+{settings['candidate_tokens']} tokens, "
            f"{settings['backend']} {settings['precision']}{where}{weight}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the description for a report."""
        shown = Path(self.shown).name if Path(self.shown).is_absolute() else self.shown
        return {"model": shown, "depth": self.depth, "weight": self.weight, **self.settings}


@dataclass(frozen=True, slots=True)
class Reranked:
    """The reranked candidates of one query."""

    hits: Hits  # all candidates; scores are comparable only among those that one reranker scored
    # by name, the candidates that each cross-encoder scored, ordered by its raw scores
    scored: Mapping[str, Hits]


@dataclass(frozen=True, slots=True)
class Cascade:
    """The rerankers of an index, cheapest first."""

    index: IndexFolder
    rerankers: tuple[CascadeReranker, ...]
    early_stop: bool = False

    def with_weight(self, weight: float) -> Self:
        """Return the cascade with another weight of the last reranker."""
        *earlier, last = self.rerankers
        return replace(self, rerankers=(*earlier, replace(last, weight=weight)))

    @property
    def depth(self) -> int:
        """The number of candidates that are scored at all."""
        return self.rerankers[0].depth

    @property
    def name(self) -> str:
        """The models, in their order."""
        return " → ".join(reranker.shown for reranker in self.rerankers)

    def __str__(self) -> str:
        """Describe all rerankers, in one line."""
        return "reranking " + ", then ".join(map(str, self.rerankers))

    def probability(self, score: float) -> float:
        """Return the calibrated probability of a score of the last reranker."""
        return float(self.rerankers[-1].scorer.to_unit_interval(np.array([score], np.float32))[0])

    def probabilities(self, reranked: "Reranked") -> Hits | None:
        """Return the calibrated probabilities of the papers that the last reranker scored, or None.

        They are None unless a training calibrated the last reranker and its scores alone decide the order.
        """
        last = self.rerankers[-1]
        if not last.calibrated or last.weight < 1:
            return None
        return self.unit_scores(reranked)

    def unit_scores(self, reranked: "Reranked") -> Hits:
        """Return the papers that the last reranker scored, with its scores in [0, 1]: probabilities if calibrated."""
        last = self.rerankers[-1]
        hits = reranked.scored[last.name]
        return Hits(hits.rows, last.scorer.to_unit_interval(hits.scores))

    def rerank(
        self,
        queries: Sequence[Query],
        candidates: Sequence[Hits],
        k: int,
        progress: Progress | None = None,
    ) -> list[Reranked]:
        """Rerank the candidates of each query; the pairs of all queries are scored together.

        Args:
            queries: The queries.
            candidates: One per query, in the order before reranking.
            k: How many of the best must be correct, if scoring may stop early.
            progress: Receives how many pairs are scored.

        Returns:
            One per query, in the order given, with all of its candidates: first those that the last reranker scored,
            then those that the one before scored, and finally the others in their original order.
        """
        reranked = [Reranked(hits, {}) for hits in candidates]
        required = [*(max(reranker.depth, k) for reranker in self.rerankers[1:]), k]
        for reranker, count in zip(self.rerankers, required, strict=True):
            pairs = zip(reranked, candidates, strict=True)
            states = [_state(reranker, after.hits, before) for after, before in pairs]
            self._score(reranker, queries, states, count, progress)
            reranked = [
                self._after(reranker, before, state)
                for before, state in zip(reranked, states, strict=True)
            ]
        return reranked

    def _after(self, reranker: CascadeReranker, previous: Reranked, state: RerankState) -> Reranked:
        id_rank = self.index.id_rank
        by_reranker = {reranker.name: state.by_reranker(id_rank)}
        return Reranked(state.reranked(id_rank), {**previous.scored, **by_reranker})

    def _score(
        self,
        reranker: CascadeReranker,
        queries: Sequence[Query],
        states: Sequence[RerankState],
        count: int,
        progress: Progress | None,
    ) -> None:
        """Score all candidates; to stop early, score some at a time, only for queries that are not settled."""
        # with a weight of 1 the last candidate may be the best
        early = self.early_stop and reranker.weight < 1
        most = max(count, CHUNK) if early else reranker.depth
        open_ = [(q, r) for q, r in zip(queries, states, strict=True) if len(r.next_rows(1))]
        while open_:
            rows = [state.next_rows(most) for _, state in open_]
            scores = reranker.scorer.score(
                self.index, [query for query, _ in open_], rows, progress
            )
            for (_, state), query_scores in zip(open_, scores, strict=True):
                state.add_scores(query_scores)
            most = CHUNK if early else most
            open_ = [(query, state) for query, state in open_ if not state.is_settled(count)]


def _state(reranker: CascadeReranker, hits: Hits, previous: Hits) -> RerankState:
    """Return the state of a reranker for one query; `previous` is the list before the cascade."""
    previous_scores = ranks_and_scores(previous, hits.rows[: reranker.depth])[1]
    return RerankState(hits, previous_scores, reranker.weight, reranker.scorer.to_unit_interval)
