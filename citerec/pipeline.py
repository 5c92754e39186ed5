"""The pipeline of recommendation, evaluation and the training of rankers.

A retriever makes a candidate set for each query of a batch. Each stage adds candidates or reorders them:

    retrieve (BM25, vectors, fusion) -> expand -> rerank -> rank -> diversify

A system of `citerec evaluate` is a pipeline with stages left out.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from citerec.config import RerankConfig
from citerec.rank.custom import LtrModel
from citerec.rank.diversity import DEPTH as DIVERSE
from citerec.rank.diversity import SimilarityFunction, diversified
from citerec.rank.expansion import CandidateExpander
from citerec.rank.features import Group
from citerec.rank.ltr import DEPTH as RANKED
from citerec.rank.ltr import LtrStage, expanded
from citerec.rerank.cascade import NAME as RERANK
from citerec.rerank.cascade import Cascade
from citerec.rules.known import Rows, TemporalGraph
from citerec.types import (
    CandidateSet,
    Eligible,
    Hits,
    Progress,
    Query,
    QueryBatch,
    no_progress,
)

BLEND = 0.4  # weight of a reranker whose probabilities are no feature of the ranker


class Finder(Protocol):
    """Makes the candidate set of each query; `citerec.retrieve.hybrid.HybridRetriever` is one."""

    def find(
        self, queries: Sequence[Query], eligible: Sequence[Eligible], k: int
    ) -> list[CandidateSet]:
        """Return the `k` best eligible papers of each query."""
        ...


class Stage(Protocol):
    """Adds candidates to candidate sets or reorders them; the same batch always gives the same result."""

    def run(
        self, batch: QueryBatch, candidates: Sequence[CandidateSet], progress: Progress = ...
    ) -> Sequence[CandidateSet]:
        """Return one candidate set per query, in the order given."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A retriever and the stages after it."""

    retriever: Finder
    stages: tuple[Stage, ...] = ()
    depth: int = 1000  # candidates of the retriever
    together: int = 64  # queries per part; the candidates of one part are in memory

    def run(
        self, batch: QueryBatch, progress: Progress = no_progress
    ) -> Iterator[tuple[QueryBatch, Sequence[CandidateSet]]]:
        """Yield the queries of a batch, part by part, with their candidates in the order of the last stage.

        Args:
            batch: The queries; all are searched at once.
            progress: Receives the number of reranked pairs of query and paper.
        """
        retrieved = self.retriever.find(batch.queries, batch.eligible, self.depth)
        for start in range(0, len(batch), self.together):
            places = range(start, min(start + self.together, len(batch)))
            part = batch.at(places)
            candidates: Sequence[CandidateSet] = [retrieved[i] for i in places]
            for stage in self.stages:
                candidates = stage.run(part, candidates, progress)
            yield part, candidates

    def all(self, batch: QueryBatch, progress: Progress = no_progress) -> list[CandidateSet]:
        """Return the candidates of each query of a batch."""
        return [one for _, candidates in self.run(batch, progress) for one in candidates]


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
            batch.queries, [one.hits for one in candidates], self.k, progress
        )
        return [
            replace(
                before,
                hits=after.hits,
                stages={**before.stages, **after.stages},
                probabilities=self.cascade.probabilities(after) if self.calibrated else None,
            )
            for before, after in zip(candidates, done, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RerankFeature:
    """Scores the best candidates by cross-encoders for a model that reads the probability as a feature."""

    cascade: Cascade
    k: int

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Add the probabilities to expanded candidates; the order stays."""
        done = self.cascade.rerank(
            batch.queries, [one.hits for one in candidates], self.k, progress
        )
        return [
            replace(
                expanded(before),
                stages={**before.stages, **after.stages},
                rerank_probabilities=self._probabilities(after.stages[RERANK]),
            )
            for before, after in zip(candidates, done, strict=True)
        ]

    def _probabilities(self, hits: Hits) -> Hits:
        return Hits(hits.rows, self.cascade.stages[-1].scorer.probability(hits.scores))


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
        return [replace(one, hits=self._chosen(one.hits)) for one in candidates]

    def _chosen(self, hits: Hits) -> Hits:
        top = hits.best(max(self.k, DIVERSE))
        return diversified(top, self.similarity(top.rows), self.diversity, self.k)


def rank_stages(
    graph: TemporalGraph,
    ranker: LtrModel,
    cascade: Cascade | None,
    *,
    k: int,
    expander: CandidateExpander | None = None,
    disabled_features: Collection[Group] = (),
) -> tuple[Stage, ...]:
    """Return the stages of a learning-to-rank model: expansion, reranking where the model reads it, the model.

    Args:
        graph: The citation graph with the known citations.
        ranker: The model.
        cascade: The cross-encoders, as `configure_for_ranker` returns them; None for none. They follow a model that
            does not read their probabilities.
        k: First candidates that must be exact if scoring may stop early.
        expander: The expansion; by default that of the model's training.
        disabled_features: Feature groups to leave out; without the graph there is no expansion.
    """
    expand = expander or CandidateExpander(graph, ranker.expand)
    if Group.GRAPH in disabled_features:
        expand = CandidateExpander(graph, replace(expand.config, extra=0))
    order = LtrStage(graph, ranker, disabled_features)
    if cascade is None:
        return expand, order
    if reads(ranker, cascade):
        return expand, RerankFeature(cascade, k), order
    # Interpolated scores are not calibrated, and the probabilities of the model have another order.
    return expand, order, RerankingStage(cascade, k, calibrated=False)


def configure_for_ranker(
    cascade: Cascade, ranker: LtrModel, requested: RerankConfig | None = None
) -> Cascade:
    """Return cross-encoders configured for a learning-to-rank model.

    For a model that reads their probabilities they score all candidates of their depth. Otherwise they rerank after
    the model, with the requested weight or `BLEND`.

    Args:
        cascade: The cross-encoders.
        ranker: The model.
        requested: The user's settings.
    """
    if reads(ranker, cascade):
        return replace(cascade.with_weight(1), early_stop=False)
    weight = requested.weight if requested else None
    return cascade.with_weight(BLEND if weight is None else weight)


def reads(ranker: LtrModel, cascade: Cascade) -> bool:
    """Return whether a learning-to-rank model reads the probabilities of the last reranker as a feature."""
    return ranker.reads_reranker and cascade.stages[-1].has_probability


def depth_for(k: int, *, cascade: Cascade | None, ranks: bool, diversifies: bool) -> int:
    """Return how many candidates the retriever must find for `k` recommendations.

    Args:
        k: Recommendations.
        cascade: The cross-encoders, if any.
        ranks: Whether a learning-to-rank model orders the candidates.
        diversifies: Whether the list is diversified.
    """
    read = cascade.depth if cascade else 0
    return max(k, read, RANKED if ranks else 0, DIVERSE if diversifies else 0)
