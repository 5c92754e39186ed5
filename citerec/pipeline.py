"""The pipeline of recommendation, evaluation and the training of rankers.

The first stage retrieves a candidate set for each query of a batch. Each later stage adds candidates to it, scores them
or reorders them. The order depends on whether a learning-to-rank model is in use:

    with a model:     retrieve -> fuse -> expand -> rank -> (rerank) -> (diversify)
    without a model:  retrieve -> fuse -> (rerank) -> (diversify)

| stage | class | what it does |
|---|---|---|
| retrieve, fuse | `HybridRetriever` | searches by BM25, vectors and other retrievers; fuses their hits |
| expand | `CandidateExpander` | adds papers that the first candidates cite or are cited together with |
| rank | `LtrStage` | a learning-to-rank model orders all candidates by their features |
| rank | `RerankedLtrStage` | the same twice; in between, a cross-encoder scores the best, and the model reads that |
| rerank | `RerankingStage` | a cross-encoder reorders the best candidates |
| diversify | `DiversityStage` | chooses papers that differ from each other |

Stages in brackets are optional; after `RerankedLtrStage` none reranks. A system of `citerec evaluate` is a pipeline
with stages left out.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from citerec.config import RANKING_DEPTH, RecommendConfig, RerankConfig
from citerec.folder import IndexFolder
from citerec.rank.diversity import DEPTH, SimilarityFunction, diversified
from citerec.rank.diversity import DEPTH as DIVERSE
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import Group
from citerec.rank.ltr import (
    LtrModel,
    LtrStage,
    RankedCandidates,
    reads_probability,
    reranker_notice,
)
from citerec.rerank.choose import choose_reranker, open_reranker
from citerec.rerank.reranker import NAME, OpenReranker, Reranker
from citerec.rules.known import Rows, TemporalGraph
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Log,
    Progress,
    Query,
    QueryBatch,
    no_progress,
)


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
    """Orders the best candidates by a reranker, whose scores are interpolated with the previous ones."""

    cascade: OpenReranker
    calibrated: bool = True  # whether the probabilities of the reranker follow the new order

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Score the pairs of all queries together; papers below the depth keep their order."""
        done = self.cascade.rerank(batch.queries, [one.hits for one in candidates], progress)
        return [
            replace(
                before,
                hits=after.hits,
                hits_by_source={**before.hits_by_source, NAME: after.scored},
                probabilities=self.cascade.probabilities(after) if self.calibrated else None,
            )
            for before, after in zip(candidates, done, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RerankedLtrStage:
    """Orders candidates by a learning-to-rank model that reads the probabilities of a reranker.

    The model first orders all candidates without probabilities. The reranker scores the best of these, and the model
    orders all candidates again.
    """

    ltr: LtrStage
    cascade: OpenReranker

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[RankedCandidates]:
        """Order all candidates of each query; the pairs of all queries are scored together."""
        first = self.ltr.run(batch, candidates)
        done = self.cascade.rerank(batch.queries, [one.hits for one in first], progress)
        return [
            self.ltr.reordered(before, self.cascade.unit_scores(after), {NAME: after.scored})
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


WEIGHT_AFTER_RANKER = 0.4  # weight of a reranker whose probabilities are no feature of the ranker


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The first stage and the stages after it."""

    first_stage: FirstStage
    stages: tuple[Stage, ...] = ()
    depth: int = RANKING_DEPTH  # candidates of the first stage
    queries_per_part: int = 64  # queries per part; the candidates of one part are in memory

    def run(
        self, batch: QueryBatch, progress: Progress = no_progress
    ) -> Iterator[tuple[QueryBatch, Sequence[CandidateSet]]]:
        """Yield the queries of a batch, part by part, with their candidates in the order of the last stage.

        Args:
            batch: The queries; all are searched at once.
            progress: Receives the number of reranked pairs of query and paper.
        """
        retrieved = self.first_stage.candidates(batch.queries, batch.eligible, self.depth)
        for start in range(0, len(batch), self.queries_per_part):
            positions = range(start, min(start + self.queries_per_part, len(batch)))
            part = batch.at(positions)
            candidates: Sequence[CandidateSet] = [retrieved[i] for i in positions]
            for stage in self.stages:
                candidates = stage.run(part, candidates, progress)
            yield part, candidates

    def all(self, batch: QueryBatch, progress: Progress = no_progress) -> list[CandidateSet]:
        """Return the candidates of each query of a batch."""
        parts = self.run(batch, progress)
        return [candidate_set for _, candidates in parts for candidate_set in candidates]


def rank_stages(
    graph: TemporalGraph,
    ranker: LtrModel,
    cascade: OpenReranker | None,
    *,
    expander: CandidateExpander | None = None,
    disabled_features: Collection[Group] = (),
) -> tuple[Stage, ...]:
    """Return the stages of a learning-to-rank model: expansion, reranking where the model reads it, the model.

    Args:
        graph: The citation graph with the known citations.
        ranker: The model.
        cascade: The reranker, as `configure_for_ranker` returns them; None for none. They follow a model that
            does not read their probabilities.
        expander: The expansion; by default that of the model's training.
        disabled_features: Feature groups to leave out; without the graph there is no expansion.
    """
    expand = expander or CandidateExpander(graph, ranker.expand)
    if Group.GRAPH in disabled_features:
        expand = CandidateExpander(graph, expand.config.replace(extra=0))
    order = LtrStage(graph, ranker, disabled_features)
    if cascade is None:
        return expand, order
    if reads_probability(ranker, cascade):
        if Group.RERANKER in disabled_features:
            return expand, order
        return expand, RerankedLtrStage(order, cascade)
    # Interpolated scores are not calibrated, and the probabilities of the model have another order.
    return expand, order, RerankingStage(cascade, calibrated=False)


def open_reranking(
    index: IndexFolder,
    config: RecommendConfig,
    ranker: LtrModel | None,
    reranker: Reranker | None = None,
    log: Log | None = None,
) -> OpenReranker | None:
    """Open the reranker of a recommender, configured for its learning-to-rank model; None for no reranking.

    Args:
        index: The index of the candidates.
        config: The settings of the recommender.
        ranker: The learning-to-rank model; None without one.
        reranker: Scores the best candidates, in place of the reranker that `config` names.
        log: Receives what is fetched from the hub, before the download starts, and other messages for the user.

    Raises:
        ModelError, MissingExtraError, ConfigError: As for `open_reranker`.
    """
    suits = ranker is None or bool(ranker.rerankers)  # as `suits_default_reranker` decides
    if reranker is not None:
        requested = config.reranker if isinstance(config.reranker, RerankConfig) else RerankConfig()
    else:
        requested = choose_reranker(config.reranker, index, default=suits)
    weight = _weight_after_ranker(requested) if ranker else requested and requested.weight
    if reranker is not None:
        cascade = OpenReranker.of(index, reranker, weight)
    elif requested:
        settings = requested.replace(weight=weight)
        cascade = open_reranker(index, settings, log, few_queries=config.few_queries)
    else:
        return None
    return configure_for_ranker(cascade, ranker, requested, log) if ranker else cascade


def configure_for_ranker(
    cascade: OpenReranker,
    ranker: LtrModel,
    requested: RerankConfig | None = None,
    log: Log | None = None,
) -> OpenReranker:
    """Return a reranker configured for a learning-to-rank model.

    After a model that reads its probabilities its scores alone count. Otherwise it reranks after the model,
     with the requested weight, else `WEIGHT_AFTER_RANKER`.

    Args:
        cascade: The reranker.
        ranker: The model.
        requested: The user's settings.
        log: Receives a line if the model was trained with another cross-encoder.
    """
    if log and (notice := reranker_notice(ranker, cascade)):
        log(notice)
    if reads_probability(ranker, cascade):
        return cascade.with_weight(1)
    return cascade.with_weight(_weight_after_ranker(requested))


def _weight_after_ranker(requested: RerankConfig | None) -> float:
    """Return the requested weight of a reranker after a learning-to-rank model, else `WEIGHT_AFTER_RANKER`.

    A tuned weight is not used, because `citerec tune` finds it without a learning-to-rank model.
    """
    weight = requested.weight if requested else None
    return WEIGHT_AFTER_RANKER if weight is None else weight


def depth_for(k: int, *, cascade: OpenReranker | None, ranks: bool, diversifies: bool) -> int:
    """Return how many candidates the first stage must retrieve for `k` recommendations.

    Args:
        k: Recommendations.
        cascade: The reranker, if any.
        ranks: Whether a learning-to-rank model orders the candidates.
        diversifies: Whether the list is diversified.
    """
    scored = cascade.depth if cascade else 0
    return max(k, scored, RANKING_DEPTH if ranks else 0, DIVERSE if diversifies else 0)
