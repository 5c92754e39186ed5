"""The pipeline of recommendation, evaluation and the training of rankers.

The first stage retrieves a candidate set for each query of a batch. Each later stage adds candidates to it, scores them
or reorders them. The order depends on whether a learning-to-rank model is in use:

    with a model:     retrieve -> fuse -> expand -> rank -> (rerank) -> (diversify)
    without a model:  retrieve -> fuse -> (rerank) -> (diversify)

| stage | class | what it does |
|---|---|---|
| retrieve, fuse | `HybridRetriever` | searches by BM25, vectors and other retrievers; fuses their hits |
| expand | `CandidateExpander` | adds papers that the first candidates cite or are cited together with |
| rank | `LtrStage` | a learning-to-rank model orders all candidates by features, which may be those of a reranker |
| rerank | `OpenReranker` | a cross-encoder reorders the best candidates |
| diversify | `DiversityStage` | chooses papers that differ from each other |

Stages in brackets are optional. A system of `citerec evaluate` is a pipeline with stages left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citerec.config import RANKING_DEPTH, RecommendConfig, RerankConfig
from citerec.files.arrays import batched
from citerec.graph.temporal import TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.rank.contexts import ContextRetriever
from citerec.rank.expand import CandidateExpander
from citerec.rank.ltr import (
    LtrModel,
    LtrStage,
    reads_probability,
    reranker_notice,
)
from citerec.rerank.pair import read_reranker_spec
from citerec.rerank.reranker import OpenReranker, choose_reranker, open_reranker
from citerec.retrieve.hybrid import HybridRetriever
from citerec.stages import FirstStage, Reranker, Stage
from citerec.types import (
    CandidateSet,
    Log,
    Progress,
    QueryBatch,
    no_log,
    no_progress,
)

UNUSED = "{} does not improve the list of the ranker on dev queries, so it is not used; give it a weight to use it"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The first stage and the stages after it."""

    first_stage: FirstStage
    stages: tuple[Stage, ...] = ()
    depth: int = RANKING_DEPTH  # candidates of the first stage
    # queries per part; the candidates of one part are in memory
    queries_per_part: int = 64

    def run(
        self, batch: QueryBatch, progress: Progress = no_progress
    ) -> Iterator[tuple[QueryBatch, Sequence[CandidateSet]]]:
        """Yield the queries of a batch, part by part, with their candidates in the order of the last stage.

        All queries are searched at once; `progress` receives the number of reranked pairs of query and paper.
        """
        retrieved = self.first_stage.candidates(
            batch.queries, batch.eligible, self.depth
        )
        for positions in batched(range(len(batch)), self.queries_per_part):
            part = batch.at(positions)
            candidates: Sequence[CandidateSet] = [retrieved[i] for i in positions]
            for stage in self.stages:
                candidates = stage.run(part, candidates, progress)
            yield part, candidates

    def all(
        self, batch: QueryBatch, progress: Progress = no_progress
    ) -> list[CandidateSet]:
        """Return the candidates of each query of a batch."""
        return [
            found for _, candidates in self.run(batch, progress) for found in candidates
        ]


def rank_stages(
    graph: TemporalGraph,
    ranker: LtrModel,
    reranker: OpenReranker | None,
    contexts: ContextRetriever | None = None,
) -> tuple[Stage, ...]:
    """Return the stages of a learning-to-rank model: contexts, expansion, the model, the reranker in it or after it.

    `contexts` searches those of the index, see `contexts_of`.

    The expansion is that of the model's training. The reranker, as `configure_for_ranker`
    returns it, follows a model that does not read its probabilities.
    """
    stages: list[Stage] = [contexts] if contexts else []
    stages.append(CandidateExpander(graph, ranker.neighbours))
    if reranker and reads_probability(ranker, reranker):
        return *stages, LtrStage(graph, ranker, reranker)
    stages.append(LtrStage(graph, ranker))
    if reranker and reranker.weight:
        stages.append(reranker)
    return tuple(stages)


def contexts_of(
    graph: TemporalGraph, first_stage: FirstStage
) -> ContextRetriever | None:
    """Return what searches the contexts of an index as `first_stage` searches its papers; None without contexts."""
    contexts = graph.index.contexts
    if contexts is None or not isinstance(first_stage, HybridRetriever):
        return None
    if not (first_stage.bm25 or first_stage.dense):
        return None
    return ContextRetriever(graph, contexts, first_stage)


def reranker_of(
    index: IndexFolder,
    config: RecommendConfig,
    ranker: LtrModel | None,
    reranker: Reranker | None = None,
    log: Log = no_log,
) -> OpenReranker | None:
    """Open the reranker of a recommender, configured for its learning-to-rank model; None for no reranking.

    `reranker` scores the best candidates in place of the one that `config` names. ModelError, MissingExtraError,
    ConfigError as for `open_reranker`.
    """
    if reranker is not None:
        requested = config.rerank
        opened = OpenReranker.of(index, reranker, requested.weight)
    else:
        requested = choose_reranker(config.rerank, index)
        if requested is None:
            return None
        if ranker and requested.weight is None and not ranker.reads_reranker:
            spec = read_reranker_spec(Path(requested.model))
            if spec.weight_after_ranker == 0:
                log(UNUSED.format(requested.model))
                return None
        opened = open_reranker(index, requested, log, few_queries=config.few_queries)
    if ranker is None:
        return opened
    configured = configure_for_ranker(opened, ranker, requested, log)
    return configured if configured.weight else None


def configure_for_ranker(
    reranker: OpenReranker,
    ranker: LtrModel,
    requested: RerankConfig | None,
    log: Log,
) -> OpenReranker:
    """Return a reranker configured for a learning-to-rank model.

    In a model that reads its probabilities its scores alone count. Otherwise it reranks after the model, with the
    requested weight, else that of its training. `log` receives a line if the model was trained with another one, or if
    that weight is 0, and the reranker is not used.
    """
    if notice := reranker_notice(ranker, reranker):
        log(notice)
    if reads_probability(ranker, reranker):
        weight = 1
    elif requested and requested.weight is not None:
        weight = requested.weight
    else:
        weight = reranker.weight_after_ranker
        if not weight:
            log(UNUSED.format(reranker.name))
    return replace(reranker, weight=weight)
