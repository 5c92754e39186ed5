"""The systems that an evaluation compares: pipelines with stages left out, baselines, a ceiling.

Each retriever searches once and a reranker scores a pair once, however many systems use them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter

from citerec.config import ExpandConfig
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder, reopen
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
    FUSED,
    FUSIONS,
    RANKED,
    RERANKED,
    bm25_of,
    fuse_of,
    needs_vectors,
    plugged,
    read_by,
)
from citerec.evaluate.docids import as_run
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.pipeline import Pipeline, RerankingStage, Stage, configure_for_ranker, rank_stages
from citerec.rank.expansion import CandidateExpander
from citerec.rank.known import TemporalGraph
from citerec.rank.ranker import Ranker, find_ranker, open_ranker
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import open_cascade
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import HybridRetriever
from citerec.run import Run
from citerec.types import CandidateSet, Hits, Log, Progress, QueryBatch, no_progress


def run_system(
    name: str, index: IndexFolder, task: EvalSet, setting: EvalConfig
) -> tuple[Run, float | None]:
    """Run one system over the queries of a task; for several, `Systems` is quicker."""
    return Systems(index, task, setting).run(name)


class Systems:
    """The systems over one task."""

    def __init__(
        self,
        index: IndexFolder,
        task: EvalSet,
        setting: EvalConfig,
        log: Log | None = None,
        progress: Progress = no_progress,
    ) -> None:
        """Prepare to run systems.

        Args:
            index: What is searched.
            task: The queries.
            setting: How the systems search.
            log: Receives what is fetched from the hub, before.
            progress: Receives how many pairs are reranked.
        """
        self._log, self._progress = log, progress
        self._index, self._task, self._setting = index, task, setting
        self._results: dict[str, tuple[list[Hits], float]] = {}
        self._retrievers: dict[str, CachedRetriever] = {}

    def run(self, name: str) -> tuple[Run, float | None]:
        """Run one system over the queries of the task.

        Args:
            name: One of `catalogue.systems`.

        Returns:
            The run, and the seconds that it took, those of the stages that it reads included (None for the
            oracle, which does not search).

        Raises:
            ConfigError: If there is no such system, or it needs vectors or a reranker that are not there.
            ModelError: If the encoder of the index is not there any more, or the reranker is none.
        """
        plugged(name)  # which refuses an unknown name
        if name in CEILINGS:
            return oracle_run(self._task.qrels, name), None
        hits, seconds = self._hits(name)
        return as_run(name, self._index, self._task, hits), seconds

    def stages(self) -> list[Mapping[str, Hits]]:
        """Return, for each query, what each of the retrievers `FUSED` finds.

        Raises:
            ConfigError: If the index has no vectors.
        """
        self._need_vectors(FUSED[-1])
        batch = self._batch
        candidates = self._hybrid("rrf").find(batch.queries, batch.eligible, self._setting.depth)
        return [one.stages for one in candidates]

    def hits(self, name: str) -> list[Hits]:
        """Return the hits of a system, but no ceiling, for each query.

        Raises:
            ConfigError, ModelError: As for `run`.
        """
        return self._hits(name)[0]

    def cascade_of(self, name: str) -> Cascade:
        """Return how a system reranks: a weight that was tuned for the fused list is no word on another.

        Args:
            name: One of `RERANKED` or `RANKED`.

        Raises:
            ConfigError, ModelError: As for `cascade`, and as for `run`.
        """
        asked = self._setting.rerank
        if name in RANKED:
            return configure_for_ranker(self.cascade, self._need_ranker(name), asked)
        alone = name == "rerank-alone" or (RERANKED[name] and asked and asked.weight is None)
        return self.cascade.with_weight(1) if alone else self.cascade

    def reranked(self, hits: list[Hits], cascade: Cascade) -> list[Hits]:
        """Rerank lists of the task's queries; a pair that was scored before is not scored again.

        Args:
            hits: One list per query.
            cascade: `cascade`, or another that weighs the same models otherwise.
        """
        done = cascade.rerank(self._task.queries, hits, self._setting.depth, self._progress)
        return [one.hits for one in done]

    @cached_property
    def cascade(self) -> Cascade:
        """The rerankers, which score a pair once.

        Raises:
            ConfigError: If there is none.
            ModelError: If it is none.
        """
        if self._setting.rerank is None:
            path = self._index.path
            raise ConfigError(
                f"reranking needs a reranker, and {path} has none; train one: citerec train-reranker --index {path}, "
                "or name a model: --reranker MODEL"
            )
        opened = open_cascade(self._index, self._setting.rerank, self._log, depth=DEPTH)
        stages = (replace(one, scorer=CachedScorer(one.scorer)) for one in opened.stages)
        return replace(opened, stages=tuple(stages))

    @property
    def reranks(self) -> bool:
        """Whether there is a reranker."""
        return self._setting.rerank is not None

    def as_run(self, name: str, hits: list[Hits]) -> Run:
        """Name what was found for each query of the task, as a run."""
        return as_run(name, self._index, self._task, hits)

    def _need_vectors(self, name: str) -> None:
        if not self._index.is_embedded:
            raise ConfigError(
                f"{name} needs vectors, and {self._index.path} has none; embed its papers: "
                f"citerec encode --index {self._index.path} --encoder MODEL"
            )

    def _need_ranker(self, name: str) -> Ranker:
        """Open the ranker of a system.

        Raises:
            ConfigError: If there is none.
            ModelError: If it cannot be made out, or has not that variant.
        """
        folder = find_ranker(self._setting.ranker, self._index)
        if folder is None:
            path = self._index.path
            raise ConfigError(
                f"{name} needs a ranker; train one: citerec train-ranker --index {path}"
            )
        return open_ranker(folder, RANKED[name])

    def _hits(self, name: str) -> tuple[list[Hits], float]:
        if needs_vectors(name):
            self._need_vectors(name)
        if name in RERANKED:
            _ = self.cascade  # opened before anything is searched: it may be none
        if name in RANKED:
            self._need_ranker(name)
        if name not in self._results:
            search = self._searcher(name)  # opened outside of what is timed
            start, saved = perf_counter(), self._saved()
            hits = search()
            took = perf_counter() - start + self._saved() - saved
            self._results[name] = hits, took
        return self._results[name]

    def _saved(self) -> float:
        """Return the seconds that cached results have saved so far."""
        cascade: Cascade | None = self.__dict__.get("cascade")
        scorers = [stage.scorer for stage in cascade.stages] if cascade else []
        cached = [*self._retrievers.values(), *scorers]
        return sum(one.saved for one in cached if isinstance(one, CachedRetriever | CachedScorer))

    def _searcher(self, name: str) -> Callable[[], list[Hits]]:
        if name in BASELINES:
            baseline = {"most-cited": most_cited_lists, "random": random_lists}[name]
            return lambda: baseline(self._index, self._task, self._setting)
        if system := plugged(name):
            encoder = self._encoder if system.needs_vectors else None
            return lambda: system.search(self._index, self._task, self._setting, encoder)
        pipeline = self._pipeline(name)
        return lambda: [
            one.hits.best(self._setting.depth) for one in pipeline.all(self._batch, self._progress)
        ]

    def _pipeline(self, name: str) -> Pipeline:
        """Return a system as a pipeline: that of `recommend` with stages left out."""
        setting = self._setting
        retriever, depth = self._hybrid(name), setting.depth
        if name in RERANKED:
            stages: tuple[Stage, ...] = (RerankingStage(self.cascade_of(name), depth),)
            return Pipeline(retriever, stages, depth, together=len(self._task.queries))
        if name == EXPANDED:
            return Pipeline(retriever, (CandidateExpander(self._graph),), depth)
        if name not in RANKED:
            return Pipeline(retriever, (), depth)
        cascade = self.cascade_of(name) if setting.rerank else None
        disabled = setting.disabled_features
        stages = rank_stages(
            self._graph, self._need_ranker(name), cascade, k=depth, disabled_features=disabled
        )
        return Pipeline(retriever, stages, depth)

    def _hybrid(self, name: str) -> HybridRetriever:
        """Return the retrievers of a system, which search the same queries once for all systems."""
        first = read_by(name, self._index, self._setting)
        names = FUSED if first in FUSIONS else (first,)
        retrievers = [self._retriever(one) for one in names]
        return HybridRetriever(self._index, retrievers, fuse_of(first, self._setting))

    def _retriever(self, name: str) -> CachedRetriever:
        if name not in self._retrievers:
            self._retrievers[name] = CachedRetriever(
                DenseRetriever(self._index, self._encoder, self._setting.dense)
                if name == "dense"
                else Bm25Retriever(self._index, bm25_of(name, self._setting))
            )
        return self._retrievers[name]

    @cached_property
    def _batch(self) -> QueryBatch:
        return QueryBatch(self._task.queries, self._task.eligible)

    @cached_property
    def _graph(self) -> TemporalGraph:
        return TemporalGraph(self._index, self._setting.known_graph)

    def candidates(self) -> list[CandidateSet]:
        """Return what the retrievers find for each query, fused as `recommend` does or the configuration says.

        Raises:
            ConfigError, ModelError: As for `run`.
        """
        name = read_by(EXPANDED, self._index, self._setting)
        if needs_vectors(name):
            self._need_vectors(name)
        batch = self._batch
        return self._hybrid(name).find(batch.queries, batch.eligible, self._setting.depth)

    def audit(self, names: Sequence[str], progress: Progress = no_progress) -> Audit:
        """Prove that what some systems gave hangs on nothing that a query may not know, as `audit` does."""
        lists = [self.hits(name) for name in names]
        rankers = [self._need_ranker(name) for name in names if name in RANKED]
        expand = rankers[0].expand if rankers else ExpandConfig()
        found = self.candidates()
        return audit(self._index, self._task, self._setting, found, lists, expand, progress)

    def check(self, names: Sequence[str]) -> None:
        """Open the models of some systems, but the reranker, before anything is searched; raises as `run` does."""
        for name in names:
            if name in RANKED:
                self._need_ranker(name)
            if needs_vectors(name) or needs_vectors(read_by(name, self._index, self._setting)):
                self._need_vectors(name)
                _ = self._encoder

    @cached_property
    def _encoder(self) -> Encoder:
        recorded = Fingerprint.from_json(self._index.manifest.settings["encoder"])
        threads = EncodeConfig(threads=self._setting.dense.threads)
        return reopen(recorded, self._index.path, threads, log=self._log)
