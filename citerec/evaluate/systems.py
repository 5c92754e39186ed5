"""The systems that an evaluation compares: the pipeline's stages, their fusions, baselines, a ceiling.

Each stage searches once, however many systems read it, and a reranker scores a pair once.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter

from citerec.candidates import Candidates
from citerec.config import ExpandConfig
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder, reopen
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.evaluate.audit import Audit, audit
from citerec.evaluate.baselines import most_cited_lists, oracle_run, random_lists
from citerec.evaluate.catalogue import (
    BASELINES,
    CEILINGS,
    DEPTH,
    EXPANDED,
    FUSED,
    FUSIONS,
    RANKED,
    RERANKED,
    WITH_POOLS,
    bm25_of,
    fuse_of,
    needs_vectors,
    plugged,
    read_by,
)
from citerec.evaluate.docids import as_run
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.evaluate.ranked import expanded, ranked
from citerec.evaluate.remembering import CachedScorer
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.rank.final import beside
from citerec.rank.ranker import Ranker, find_ranker, open_ranker
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import open_cascade
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.run import Run
from citerec.types import Hits, Log, Progress, Retriever, no_progress


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
        self._found: dict[str, tuple[list[Hits], float]] = {}

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

    def stages(self) -> list[dict[str, Hits]]:
        """Return, for each query, what each of the stages `FUSED` found.

        Raises:
            ConfigError: If the index has no vectors.
        """
        self._need_vectors(FUSED[-1])
        found = {stage: self._hits(stage)[0] for stage in FUSED}
        queries = range(len(self._task.queries))
        return [{stage: hits[i] for stage, hits in found.items()} for i in queries]

    def hits(self, name: str) -> list[Hits]:
        """Return what a system, but no ceiling, found for each query.

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
            return beside(self.cascade, self._need_ranker(name), asked)
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
        """The rerankers, which remember what they scored.

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
        if name not in self._found:
            before = sum(self._hits(stage)[1] for stage in self._reads(name))
            search = self._searcher(name)  # opened outside of what is timed
            start, spared = perf_counter(), self._spared()
            hits = search()
            took = perf_counter() - start + self._spared() - spared
            self._found[name] = hits, before + took
        return self._found[name]

    def _reads(self, name: str) -> tuple[str, ...]:
        """Return the systems whose lists a system reads."""
        if name in RERANKED or name in WITH_POOLS:
            return (read_by(name, self._index, self._setting),)
        return FUSED if name in FUSIONS else ()

    def _spared(self) -> float:
        """Return the seconds that remembered scores have spared so far; 0 where no reranker is open."""
        cascade: Cascade | None = self.__dict__.get("cascade")
        scorers = [stage.scorer for stage in cascade.stages] if cascade else []
        return sum(scorer.spared for scorer in scorers if isinstance(scorer, CachedScorer))

    def _searcher(self, name: str) -> Callable[[], list[Hits]]:
        if name in RERANKED:
            hits, _ = self._hits(self._reads(name)[0])
            cascade = self.cascade_of(name)
            return lambda: self.reranked(hits, cascade)
        if name in FUSIONS:
            return lambda: self._fused(name)
        if name in WITH_POOLS:
            return self._pooled(name)
        if name in BASELINES:
            baseline = {"most-cited": most_cited_lists, "random": random_lists}[name]
            return lambda: baseline(self._index, self._task, self._setting)
        return self._stage(name)

    def _pooled(self, name: str) -> Callable[[], list[Hits]]:
        found = self.candidates()
        pooled = (self._index, self._task, self._setting, found)
        if name == EXPANDED:
            return lambda: expanded(*pooled)
        ranker = self._need_ranker(name)
        cascade = self.cascade_of(name) if self._setting.rerank else None
        return lambda: ranked(*pooled, ranker, cascade, self._progress)

    def _stage(self, name: str) -> Callable[[], list[Hits]]:
        task, setting = self._task, self._setting
        if system := plugged(name):
            encoder = self._encoder if system.needs_vectors else None
            return lambda: system.search(self._index, task, setting, encoder)
        retriever: Retriever
        if name == "dense":
            retriever = DenseRetriever(self._index, self._encoder, setting.dense)
        else:
            retriever = Bm25Retriever(self._index, bm25_of(name, setting))
        return lambda: retriever.retrieve(task.queries, task.eligible, setting.depth)

    def candidates(self) -> list[Candidates]:
        """Return what the first stages found for each query, put together as `recommend` does or the setting says."""
        [name] = self._reads(EXPANDED)
        lists, _ = self._hits(name)
        stages = FUSED if name in FUSIONS else (name,)
        parts = {stage: self._hits(stage)[0] for stage in stages}
        return [
            Candidates(hits, {stage: found[i] for stage, found in parts.items()})
            for i, hits in enumerate(lists)
        ]

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

    def _fused(self, name: str) -> list[Hits]:
        config = fuse_of(name, self._setting)
        assert config is not None
        depth = self._setting.depth
        return [fuse(found, self._index.id_rank, config, k=depth) for found in self.stages()]

    @cached_property
    def _encoder(self) -> Encoder:
        recorded = Fingerprint.from_json(self._index.manifest.settings["encoder"])
        threads = EncodeConfig(threads=self._setting.dense.threads)
        return reopen(recorded, self._index.path, threads, log=self._log)
