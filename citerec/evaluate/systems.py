"""The systems that an evaluation compares: pipelines with stages left out, baselines, a ceiling.

The systems share the results of retrievers and rerankers: each search and each pair is computed once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter

from citerec.config import ExpandConfig
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder
from citerec.encode.opening import reopen
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.evaluate.audit import Audit, audit
from citerec.evaluate.baselines import most_cited_lists, oracle_run, random_lists
from citerec.evaluate.cached import CachedRetriever, CachedScorer
from citerec.evaluate.catalogue import (
    BASELINES,
    CEILINGS,
    DEPTH,
    EXPANDED,
    FORMS,
    FUSED,
    FUSIONS,
    RANKED,
    RERANKED,
    bm25_of,
    fuse_of,
    needs_vectors,
    plugged,
    read_by,
    systems,
)
from citerec.evaluate.protocol import EvalConfig, EvalSet, as_run
from citerec.folder import IndexFolder
from citerec.pipeline import Pipeline, RerankingStage, Stage, configure_for_ranker, rank_stages
from citerec.rank.expand import CandidateExpander
from citerec.rank.ltr import Ranker, find_ranker, open_ranker, reranker_notice
from citerec.rerank.choose import open_reranker
from citerec.rerank.reranker import OpenReranker, Reranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import HybridRetriever, open_registered
from citerec.retrieve.retriever import Retriever
from citerec.rules.known import TemporalGraph
from citerec.run import Run
from citerec.types import CandidateSet, Hits, Log, Progress, QueryBatch, no_progress


class Systems:
    """The systems on one evaluation set."""

    def __init__(
        self,
        index: IndexFolder,
        eval_set: EvalSet,
        config: EvalConfig,
        log: Log | None = None,
        progress: Progress = no_progress,
        *,
        retrievers: Sequence[Retriever] = (),
        reranker: Reranker | None = None,
    ) -> None:
        """Prepare to run systems.

        Args:
            index: The index that is searched.
            eval_set: The queries.
            config: The settings of the systems.
            log: Receives a message before a download from the hub.
            progress: Receives the number of reranked pairs.
            retrievers: A user's retrievers; each is a system by its name.
            reranker: A user's reranker, in place of the one of `config`.
        """
        self._log, self._progress = log, progress
        self._own_retrievers = {one.name: one for one in retrievers}
        self._own_reranker = reranker
        self._index, self._eval_set, self._config = index, eval_set, config
        self._results: dict[str, tuple[list[Hits], float]] = {}
        self._retrievers: dict[str, CachedRetriever] = {}

    def run(self, name: str) -> tuple[Run, float | None]:
        """Run one system on the evaluation set.

        Args:
            name: One of `catalogue.systems`.

        Returns:
            The run and its seconds, with those of cached results (None for the oracle, which does not search).

        Raises:
            ConfigError: If there is no such system, or it needs missing vectors or a missing reranker.
            ModelError: If the encoder of the index is missing, or the reranker is invalid.
        """
        if name not in self._own_retrievers and name not in systems():
            raise ConfigError(f"no system {name!r}; there are: {', '.join(systems())}")
        if name in CEILINGS:
            return oracle_run(self._eval_set.qrels, name), None
        hits, seconds = self._hits(name)
        return self.as_run(name, hits), seconds

    def retrieved(self) -> list[Mapping[str, Hits]]:
        """Return, for each query, the hits of the retrievers `FUSED`.

        Raises:
            ConfigError: If the index has no vectors.
        """
        self._need_vectors(FUSED[-1])
        batch = self._batch
        candidates = self._hybrid("rrf").candidates(
            batch.queries, batch.eligible, self._config.depth
        )
        return [candidate_set.hits_by_source for candidate_set in candidates]

    def hits(self, name: str) -> list[Hits]:
        """Return the hits of a system, except a ceiling, for each query; raises as `run` does."""
        return self._hits(name)[0]

    def cascade_of(self, name: str) -> OpenReranker:
        """Return the cascade of a system; a weight that was tuned on the fused list is not used for another list.

        Args:
            name: One of `RERANKED` or `RANKED`.

        Raises:
            ConfigError, ModelError: As for `cascade` and `run`.
        """
        requested = self._config.rerank
        if name in RANKED:
            return configure_for_ranker(self.cascade, self._need_ranker(name), requested)
        alone = name == "rerank-alone" or (
            RERANKED[name] and requested and requested.weight is None
        )
        return self.cascade.with_weight(1) if alone else self.cascade

    def reranked(self, hits: list[Hits], cascade: OpenReranker) -> list[Hits]:
        """Rerank lists of the queries; a pair that was scored before is not scored again.

        Args:
            hits: One list per query.
            cascade: `cascade`, or the same models with other weights.
        """
        done = cascade.rerank(self._eval_set.queries, hits, self._progress)
        return [reranked.hits for reranked in done]

    @cached_property
    def cascade(self) -> OpenReranker:
        """The reranker with cached scores.

        Raises:
            ConfigError: If there is no reranker.
            ModelError: If a reranker is invalid.
        """
        if self._own_reranker is not None:
            weight = self._config.rerank.weight if self._config.rerank else None
            opened = OpenReranker.of(self._index, self._own_reranker, weight)
        elif self._config.rerank is None:
            path = self._index.path
            raise ConfigError(
                f"reranking needs a reranker, and {path} has none; train one: citerec train-reranker --index {path}, "
                "or name a model: --reranker MODEL"
            )
        else:
            opened = open_reranker(self._index, self._config.rerank, self._log, depth=DEPTH)
        return replace(opened, scorer=CachedScorer(opened.scorer))

    @property
    def reranks(self) -> bool:
        """Whether there is a reranker."""
        return self._config.rerank is not None or self._own_reranker is not None

    def as_run(self, name: str, hits: list[Hits]) -> Run:
        """Return the hits of each query as a run."""
        return as_run(name, self._index, self._eval_set, hits)

    def _need_vectors(self, name: str) -> None:
        if not self._index.is_embedded:
            raise ConfigError(
                f"{name} needs vectors, and {self._index.path} has none; embed its papers: "
                f"citerec encode --index {self._index.path} --encoder MODEL"
            )

    def _need_ranker(self, name: str) -> Ranker:
        """Open the ranker of a system; `ConfigError` if there is none, `ModelError` if it is invalid."""
        folder = find_ranker(self._config.ranker, self._index)
        if folder is None:
            raise ConfigError(
                f"{name} needs a ranker; train one: citerec train-ranker --index {self._index.path}"
            )
        return open_ranker(folder, RANKED[name])

    def _hits(self, name: str) -> tuple[list[Hits], float]:
        if needs_vectors(name):
            self._need_vectors(name)
        if name in RERANKED:
            _ = self.cascade  # fails before the search if there is none
        if name in RANKED:
            self._need_ranker(name)
        if name not in self._results:
            search = self._searcher(name)  # opened outside the timed block
            start, saved = perf_counter(), self._saved()
            hits = search()
            self._results[name] = hits, perf_counter() - start + self._saved() - saved
        return self._results[name]

    def _saved(self) -> float:
        """Return the seconds that the caches have saved so far."""
        cascade: OpenReranker | None = self.__dict__.get("cascade")
        saved = sum(retriever.saved for retriever in self._retrievers.values())
        if cascade and isinstance(cascade.scorer, CachedScorer):
            saved += cascade.scorer.saved
        return saved

    def _searcher(self, name: str) -> Callable[[], list[Hits]]:
        if name in BASELINES:
            lists = {"most-cited": most_cited_lists, "random": random_lists}[name]
            return lambda: lists(self._index, self._eval_set, self._config)
        if system := plugged(name):
            encoder = self._encoder if system.needs_vectors else None
            return lambda: system.search(self._index, self._eval_set, self._config, encoder)
        pipeline = self._pipeline(name)
        return lambda: [
            one.hits.best(self._config.depth) for one in pipeline.all(self._batch, self._progress)
        ]

    def _pipeline(self, name: str) -> Pipeline:
        """Return a system as a pipeline: the pipeline of `recommend` with stages left out."""
        config = self._config
        retriever, depth = self._hybrid(name), config.depth
        stages: tuple[Stage, ...]
        if name in RERANKED:
            stages = (RerankingStage(self.cascade_of(name)),)
            return Pipeline(retriever, stages, depth, queries_per_part=len(self._eval_set.queries))
        if name not in RANKED:
            stages = (CandidateExpander(self._graph),) if name == EXPANDED else ()
            return Pipeline(retriever, stages, depth)
        cascade = self.cascade_of(name) if self.reranks else None
        ranker, disabled = self._need_ranker(name), config.disabled_features
        if cascade and self._log and (notice := reranker_notice(ranker, cascade)):
            self._log(notice)
        stages = rank_stages(self._graph, ranker, cascade, disabled_features=disabled)
        return Pipeline(retriever, stages, depth)

    def _hybrid(self, name: str) -> HybridRetriever:
        """Return the retrievers of a system; all systems share their cached hits."""
        first = read_by(name, self._index, self._config)
        names = FUSED if first in FUSIONS else (first,)
        retrievers = [self._retriever(part) for part in names]
        searched = [cached.retriever for cached in retrievers]
        bm25 = next((one for one in searched if isinstance(one, Bm25Retriever)), None)
        dense = next((one for one in searched if isinstance(one, DenseRetriever)), None)
        fusion = fuse_of(first, self._config)
        return HybridRetriever(self._index, retrievers, fusion, bm25=bm25, dense=dense)

    def _retriever(self, name: str) -> CachedRetriever:
        if name not in self._retrievers:
            if name in self._own_retrievers:
                opened: Retriever = self._own_retrievers[name]
            elif name == "dense":
                opened = DenseRetriever(self._index, self._encoder, self._config.dense)
            elif name in FORMS:
                opened = Bm25Retriever(self._index, bm25_of(name, self._config))
            else:
                opened = open_registered(name, self._index)
            self._retrievers[name] = CachedRetriever(opened)
        return self._retrievers[name]

    @cached_property
    def _batch(self) -> QueryBatch:
        return QueryBatch(self._eval_set.queries, self._eval_set.eligible)

    @cached_property
    def _graph(self) -> TemporalGraph:
        return TemporalGraph(self._index, self._config.known_graph)

    def candidates(self) -> list[CandidateSet]:
        """Return the first-stage candidates of each query, fused as in `recommend` or as configured.

        Raises:
            ConfigError, ModelError: As for `run`.
        """
        name = read_by(EXPANDED, self._index, self._config)
        if needs_vectors(name):
            self._need_vectors(name)
        batch = self._batch
        return self._hybrid(name).candidates(batch.queries, batch.eligible, self._config.depth)

    def audit(self, names: Sequence[str], progress: Progress = no_progress) -> Audit:
        """Check that the hits of some systems depend on no citation that is unknown for a query; see `audit`."""
        lists = [self.hits(name) for name in names]
        rankers = [self._need_ranker(name) for name in names if name in RANKED]
        expand = rankers[0].expand if rankers else ExpandConfig()
        candidates = self.candidates()
        return audit(self._index, self._eval_set, self._config, candidates, lists, expand, progress)

    def check(self, names: Sequence[str]) -> None:
        """Open the models of some systems except the reranker, before any search; raises as `run` does."""
        for name in names:
            if name in RANKED:
                self._need_ranker(name)
            if needs_vectors(name) or needs_vectors(read_by(name, self._index, self._config)):
                self._need_vectors(name)
                _ = self._encoder

    @cached_property
    def _encoder(self) -> Encoder:
        recorded = Fingerprint.from_json(self._index.manifest.settings["encoder"])
        how = EncodeConfig(threads=self._config.dense.threads)
        return reopen(recorded, self._index.path, how, log=self._log)
