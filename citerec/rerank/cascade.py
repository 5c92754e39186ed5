"""One cross-encoder behind the other: each reads the best papers that the one before left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from citerec.folder import IndexFolder
from citerec.fuse import stage_hits
from citerec.rerank.rerank import RerankState, Rows, Scores
from citerec.types import Hits, Progress, Query

NAME = (
    "rerank"  # what the hits of the last stage go by; the earlier ones are rerank-1, rerank-2, ...
)
CHUNK = 16  # candidates read at once where it may end early


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

    def probability(self, scores: Scores) -> Scores:
        """Return the calibrated probability of each score."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cross-encoder that is open, and how much it reads."""

    name: str  # what its hits go by
    shown: str  # the model, as it is told
    scorer: Scorer
    depth: int  # candidates per query
    weight: float  # against the first stages, in [0, 1]
    how: Mapping[str, Any]  # what made its scores: weights, tokens, backend, precision
    calibrated: bool = False  # whether a training fitted what a score is worth

    def __str__(self) -> str:
        """Say what it does, in a few words."""
        how = self.how
        where = "" if how["device"] == "cpu" else f" on {how['device']}"
        weight = "" if self.weight == 1 else f", weight {self.weight:g}"
        best = f"the best {self.depth:,} by {self.shown}"
        if "backend" not in how:  # no cross-encoder
            return f"{best}{weight}"
        return (
            f"{best}: {how['query_tokens']}+{how['candidate_tokens']} tokens, "
            f"{how['backend']} {how['precision']}{where}{weight}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return what a report tells of it."""
        shown = Path(self.shown).name if Path(self.shown).is_absolute() else self.shown
        return {"model": shown, "depth": self.depth, "weight": self.weight, **self.how}


@dataclass(frozen=True, slots=True)
class Reranked:
    """What came of one query's candidates."""

    hits: Hits  # all of them; scores are comparable only among those that one stage put there
    stages: Mapping[str, Hits]  # what each cross-encoder read, by its raw scores alone


@dataclass(frozen=True, slots=True)
class Cascade:
    """The rerankers of an index, cheapest first."""

    index: IndexFolder
    stages: tuple[Stage, ...]
    early_stop: bool = False

    def with_weight(self, weight: float) -> Self:
        """Return the same with another weight of the last stage."""
        *earlier, last = self.stages
        return replace(self, stages=(*earlier, replace(last, weight=weight)))

    @property
    def depth(self) -> int:
        """How many candidates are read by anyone."""
        return self.stages[0].depth

    @property
    def name(self) -> str:
        """The models, in the order that they read in."""
        return " → ".join(stage.shown for stage in self.stages)

    def __str__(self) -> str:
        """Say what is done, in one line."""
        return "reranking " + ", then ".join(map(str, self.stages))

    def probability(self, score: float) -> float:
        """Return the calibrated probability of a score of the last stage."""
        return float(self.stages[-1].scorer.probability(np.array([score], np.float32))[0])

    def likely(self, reranked: "Reranked") -> Hits | None:
        """Return the calibrated probabilities of what the last stage read; None where they would not follow the order.

        They do where its scores alone decide, and they mean something where a training calibrated it.
        """
        last = self.stages[-1]
        if not last.calibrated or last.weight < 1:
            return None
        hits = reranked.stages[last.name]
        return Hits(hits.rows, last.scorer.probability(hits.scores))

    def rerank(
        self,
        queries: Sequence[Query],
        found: Sequence[Hits],
        k: int,
        progress: Progress | None = None,
    ) -> list[Reranked]:
        """Rerank what was found for each query; the pairs of all of them are scored together.

        Args:
            queries: They and their candidates are read together.
            found: One per query, the order of the first stages.
            k: How many of the best must be right, if reading may stop early.
            progress: Receives how many pairs are scored.

        Returns:
            One per query, in the order given, all of its candidates: on top what the last stage read, beneath it what
            the one before read, at last what none did, as it stood.
        """
        done = [Reranked(hits, {}) for hits in found]
        handed_on = [*(max(stage.depth, k) for stage in self.stages[1:]), k]
        for stage, needed in zip(self.stages, handed_on, strict=True):
            pairs = zip(done, found, strict=True)
            readings = [_reading(stage, one.hits, first) for one, first in pairs]
            self._read(stage, queries, readings, needed, progress)
            done = [
                self._after(stage, one, reading)
                for one, reading in zip(done, readings, strict=True)
            ]
        return done

    def _after(self, stage: Stage, before: Reranked, reading: RerankState) -> Reranked:
        id_rank = self.index.id_rank
        judged = {stage.name: reading.judged(id_rank)}
        return Reranked(reading.reranked(id_rank), {**before.stages, **judged})

    def _read(
        self,
        stage: Stage,
        queries: Sequence[Query],
        readings: Sequence[RerankState],
        needed: int,
        progress: Progress | None,
    ) -> None:
        """Read all candidates, or, to stop early, those of the queries that are not settled, a few at a time."""
        early = self.early_stop and stage.weight < 1  # alone, it may find the best in the last
        most = max(needed, CHUNK) if early else stage.depth
        open_ = [(q, r) for q, r in zip(queries, readings, strict=True) if len(r.next_rows(1))]
        while open_:
            rows = [reading.next_rows(most) for _, reading in open_]
            scores = stage.scorer.score(self.index, [query for query, _ in open_], rows, progress)
            for (_, reading), mine in zip(open_, scores, strict=True):
                reading.take(mine)
            most = CHUNK if early else most
            open_ = [(query, reading) for query, reading in open_ if not reading.is_settled(needed)]


def _reading(stage: Stage, hits: Hits, first: Hits) -> RerankState:
    """Open the best of a list for a stage; `first` is the list as the first stages made it."""
    liked = stage_hits(first, hits.rows[: stage.depth])[1]
    return RerankState(hits, liked, stage.weight, stage.scorer.probability)
