"""The stages of the pipeline: their protocols, and those that rerank or diversify.

`citerec.rank` has the other two: `CandidateExpander` and `LtrStage`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from citerec.rank.diversity import DEPTH, SimilarityFunction, diversified
from citerec.rank.ltr import LtrStage, RankedCandidates
from citerec.rerank.cascade import Cascade
from citerec.rules.known import Rows
from citerec.types import CandidateSet, Eligibility, Hits, Progress, Query, QueryBatch, no_progress


class FirstStage(Protocol):
    """Retrieves the candidate set of each query; `citerec.retrieve.hybrid.HybridRetriever` is one."""

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query."""
        ...


class Stage(Protocol):
    """A stage after the first: adds candidates to candidate sets, scores them or reorders them.

    The same batch always gives the same result.
    """

    def run(
        self, batch: QueryBatch, candidates: Sequence[CandidateSet], progress: Progress = ...
    ) -> Sequence[CandidateSet]:
        """Return one candidate set per query, in the order given."""
        ...


@dataclass(frozen=True, slots=True)
class RerankingStage:
    """Orders the best candidates by cross-encoders, whose scores are interpolated with the previous ones."""

    cascade: Cascade
    k: int  # first candidates that must be exact if scoring may stop early
    calibrated: bool = True  # whether the probabilities of the cross-encoder follow the new order

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Score the pairs of all queries together; papers below the depth keep their order."""
        done = self.cascade.rerank(
            batch.queries, [before.hits for before in candidates], self.k, progress
        )
        return [
            replace(
                before,
                hits=after.hits,
                hits_by_source={**before.hits_by_source, **after.scored},
                probabilities=self.cascade.probabilities(after) if self.calibrated else None,
            )
            for before, after in zip(candidates, done, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RerankedLtrStage:
    """Orders candidates by a learning-to-rank model that reads the probabilities of cross-encoders.

    The model first orders all candidates without probabilities. The cross-encoders score the best of these, and the
    model orders all candidates again.
    """

    ltr: LtrStage
    cascade: Cascade
    k: int  # first candidates that must be exact if scoring may stop early

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[RankedCandidates]:
        """Order all candidates of each query; the pairs of all queries are scored together."""
        first = self.ltr.run(batch, candidates)
        done = self.cascade.rerank(batch.queries, [one.hits for one in first], self.k, progress)
        return [
            self.ltr.reordered(before, self.cascade.unit_scores(after), after.scored)
            for before, after in zip(first, done, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class DiversityStage:
    """Chooses `k` of the best candidates that differ from each other."""

    similarity: Callable[[Rows], SimilarityFunction]  # of the papers at some rows
    diversity: float  # in [0, 1]
    k: int

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Choose by maximal marginal relevance."""
        return [replace(before, hits=self._chosen(before.hits)) for before in candidates]

    @property
    def depth(self) -> int:
        """The number of candidates to choose from."""
        return max(self.k, DEPTH)

    def _chosen(self, hits: Hits) -> Hits:
        top = hits.best(self.depth)
        return diversified(top, self.similarity(top.rows), self.diversity, self.k)
