"""The systems that an evaluation compares: the pipeline of `recommend` with stages left out, baselines, a ceiling.

They share searches and scored pairs: each is computed once, and its time counts for every system that uses it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha1
from time import perf_counter
from typing import Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from citerec.config import Bm25Config, FuseConfig, RerankConfig
from citerec.encode.encoder import reopen
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError
from citerec.evaluation.protocol import EvalConfig, EvalSet
from citerec.files.arrays import Rows, Scores
from citerec.files.trec import Qrels, Run
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.pipeline import (
    Pipeline,
    configure_for_ranker,
    contexts_of,
    rank_stages,
)
from citerec.plugins import Plugins
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import declared_features
from citerec.rank.ltr import Ranker, Variant, find_ranker, open_ranker, retriever_notice
from citerec.rerank.reranker import (
    NONE,
    OpenReranker,
    Scorer,
    open_reranker,
)
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import HybridRetriever
from citerec.rules.eligible import mask
from citerec.stages import FirstStage, Retriever, Stage
from citerec.text import QueryForm
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Log,
    Progress,
    Query,
    QueryBatch,
    Ranking,
    no_log,
    no_progress,
)


@runtime_checkable
class Pipelined(Protocol):
    """What has a pipeline, such as `citerec.Recommender`."""

    def pipeline(self, depth: int, known: CitationScope) -> Pipeline:
        """Return its pipeline of drafts for `depth` papers, with the citations that a scope knows."""
        ...


# an object that is evaluated
System: TypeAlias = Retriever | FirstStage | Pipeline | Pipelined
FUSED = ("bm25", "dense")  # the retrievers of the fusions
FORMS: Mapping[str, QueryForm | None] = {
    "bm25": None,  # as configured
    "bm25-title": QueryForm.TITLE,
    "bm25-key-terms": QueryForm.KEY_TERMS,
}
FUSIONS = ("rrf", "weighted")
RERANKED: Mapping[str, str | None] = {  # with the system that finds their candidates
    "bm25+rerank": "bm25",  # the candidates of the reranker paper
    "rerank": None,  # as configured
    "rerank-alone": None,  # likewise, in the order of the reranker's scores
}
DEPTH = 100  # reranked candidates by default, on every machine, so that results can be compared
EXPANDED = "expanded"  # the first-stage candidates with the expansion
RANKED: Mapping[str, Variant] = {  # ordered by the learning-to-rank model
    "ranker": Variant.FULL,
    "ranker-no-popularity": Variant.NO_POPULARITY,
    "ranker-no-authors": Variant.NO_AUTHORS,
}


def random_lists(
    index: IndexFolder, eval_set: EvalSet, config: EvalConfig
) -> list[Hits]:
    """Draw eligible papers for each query, depending on its id and the seed alone."""
    lists: list[Hits] = []
    for query, rule in zip(eval_set.queries, eval_set.eligible, strict=True):
        digest = sha1(
            query.id.encode("utf-8", "surrogatepass"), usedforsecurity=False
        ).digest()
        rng = np.random.default_rng([config.seed, int.from_bytes(digest, "big")])
        rows = np.flatnonzero(mask(rule, index.papers.years)).astype(np.int32)
        drawn = rng.choice(rows, size=min(config.depth, len(rows)), replace=False)
        lists.append(Hits(drawn, np.arange(len(drawn), 0, -1, dtype=np.float32)))
    return lists


def most_cited_lists(
    index: IndexFolder, eval_set: EvalSet, config: EvalConfig
) -> list[Hits]:
    """Return the eligible papers with the most known citations; those without a citation are left out."""
    graph = TemporalGraph(index, config.known_graph)
    years = index.papers.years
    snapshots = graph.snapshots(eval_set.queries, eval_set.eligible)
    # queries with the same known citations share an order
    ordered: dict[object, Hits] = {}
    lists: list[Hits] = []
    for rule, snapshot in zip(eval_set.eligible, snapshots, strict=True):
        key = snapshot.before, snapshot.own
        if key not in ordered:
            counts = snapshot.citations(np.arange(len(years), dtype=np.int32))
            rows = np.flatnonzero(counts > 0).astype(np.int32)
            ordered[key] = Hits.ordered(
                rows, counts[rows].astype(np.float32), index.id_rank
            )
        everything = ordered[key]
        places = np.flatnonzero(mask(rule, years)[everything.rows])[: config.depth]
        lists.append(Hits(everything.rows[places], everything.scores[places]))
    return lists


BASELINES = {"most-cited": most_cited_lists, "random": random_lists}
CEILINGS = frozenset({"oracle"})  # upper bounds, made from the gold references
SYSTEMS = (
    *FORMS,
    "dense",
    *FUSIONS,
    *RERANKED,
    EXPANDED,
    *RANKED,
    *BASELINES,
    *CEILINGS,
)
NEED_VECTORS = frozenset({"dense", *FUSIONS})
CANDIDATES = ("bm25", "dense", *FUSIONS)  # the choices for the candidates of "rerank"


def systems() -> tuple[str, ...]:
    """Return the names of all systems: citerec's own, then the registered first-stage retrievers."""
    return tuple(dict.fromkeys((*SYSTEMS, *Plugins.RETRIEVERS.names)))


def default_systems(
    index: IndexFolder, config: EvalConfig, *, rerank: bool = False
) -> list[str]:
    """Return the systems that are compared by default."""
    fuses = index.is_embedded or bool(config.retrievers)
    names = [
        "bm25",
        *(["dense"] if index.is_embedded else []),
        *(["rrf"] if fuses else []),
    ]
    if rerank:
        names += [name for name, first in RERANKED.items() if fuses or not first]
    names += [EXPANDED, *(["ranker"] if find_ranker(config.ranker, index) else [])]
    return [*names, *BASELINES, *CEILINGS]


def read_by(name: str, index: IndexFolder, config: EvalConfig) -> str:
    """Return the system whose list a system reranks, expands or ranks; any other system is its own."""
    if name in RERANKED or name in RANKED or name == EXPANDED:
        fuses = index.is_embedded or config.retrievers
        as_recommended = "rrf" if fuses else "bm25"
        return RERANKED.get(name) or config.candidates or as_recommended
    return name


def bm25_of(name: str, config: EvalConfig) -> Bm25Config | None:
    """Return the BM25 settings of a system; None without BM25."""
    form = FORMS.get(name)
    if form:
        return config.bm25.replace(form=form)
    return config.bm25 if name in FORMS or name in FUSIONS else None


def fuse_of(name: str, config: EvalConfig) -> FuseConfig | None:
    """Return the fusion settings of a system; None without a fusion."""
    if name == "rrf":
        return FuseConfig(k0=config.fuse.k0)
    return config.fuse if name == "weighted" else None


def pipeline_of(
    system: System, index: IndexFolder, depth: int, known: CitationScope
) -> Pipeline:
    """Return a system that is an object as a pipeline; ConfigError if it is none."""
    if isinstance(system, Pipeline):
        return replace(system, depth=depth)
    if isinstance(system, Pipelined):
        return system.pipeline(depth, known)
    if hasattr(system, "candidates"):
        return Pipeline(cast("FirstStage", system), depth=depth)
    if hasattr(system, "retrieve"):
        return Pipeline(
            HybridRetriever(index, [cast("Retriever", system)]), depth=depth
        )
    raise ConfigError(
        f"{type(system).__name__} is no system; give a name, or an object with retrieve (citerec.Retriever) or "
        "candidates, a Pipeline or a Recommender"
    )


def oracle_run(qrels: Qrels) -> Run:
    """Return the run that ranks exactly the gold of each query, best grades first: the ceiling of every metric.

    All metrics are 1 except F1@20: precision@20 is below 1 for fewer than 20 gold papers, recall@20 for more.
    """
    rankings = {qid: Ranking.from_scores(gold) for qid, gold in qrels.items()}
    return Run("oracle", rankings)


class CachedRetriever:
    """A retriever that caches the hits of another; the same query ids stand for the same queries and rules."""

    def __init__(self, retriever: Retriever) -> None:
        self.retriever = retriever
        self.name = retriever.name
        self.saved = 0.0  # seconds of the searches that were not repeated
        self._hits: dict[tuple[tuple[str, ...], int], tuple[list[Hits], float]] = {}

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return one `Hits` per query."""
        key = tuple(query.id for query in queries), k
        if key in self._hits:
            self.saved += self._hits[key][1]
        else:
            start = perf_counter()
            hits = self.retriever.retrieve(queries, eligible, k)
            self._hits[key] = hits, perf_counter() - start
        return self._hits[key][0]


class CachedScorer:
    """A cross-encoder with a cache: each pair of query and row is scored once."""

    def __init__(self, scorer: Scorer) -> None:
        self.to_unit_interval = scorer.to_unit_interval
        self.saved = 0.0  # estimated seconds of the scores that were not computed again
        self._scorer = scorer
        self._known: defaultdict[str, dict[int, float]] = defaultdict(dict)
        # computed so far
        self._pairs = 0
        self._seconds = 0.0

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress = no_progress,
    ) -> list[Scores]:
        """Return the score of each candidate of each query; only pairs outside the cache are computed."""
        known = [self._known[query.id] for query in queries]
        missing = [
            [row for row in part.tolist() if row not in of_query]
            for part, of_query in zip(rows, known, strict=True)
        ]
        new = sum(map(len, missing))
        if new:
            todo = [i for i, part in enumerate(missing) if part]
            start = perf_counter()
            parts = [np.array(missing[i], np.int32) for i in todo]
            scored = self._scorer.score(
                index, [queries[i] for i in todo], parts, progress
            )
            self._seconds += perf_counter() - start
            self._pairs += new
            for i, scores in zip(todo, scored, strict=True):
                known[i].update(zip(missing[i], scores.tolist(), strict=True))
        if self._pairs:
            self.saved += (sum(map(len, rows)) - new) * self._seconds / self._pairs
        return [
            np.array([of_query[row] for row in part.tolist()], np.float32)
            for part, of_query in zip(rows, known, strict=True)
        ]


class Systems:
    """The systems on one evaluation set."""

    def __init__(
        self,
        index: IndexFolder,
        eval_set: EvalSet,
        config: EvalConfig,
        log: Log = no_log,
        progress: Progress = no_progress,
        objects: Mapping[str, System] | None = None,
    ) -> None:
        """Prepare; `log` receives a message before a download from the hub, `progress` the number of reranked pairs.

        `objects` are systems that are no part of citerec, by their names.
        """
        self._objects = objects or {}
        self._log = log
        self._progress = progress
        self.index = index
        self.eval_set = eval_set
        self.config = config
        self._results: dict[str, tuple[list[Hits], float]] = {}
        self._retrievers: dict[str, CachedRetriever] = {}
        self._caches: list[CachedRetriever | CachedScorer] = []
        self._batch = QueryBatch(eval_set.queries, eval_set.eligible)

    def run(self, name: str) -> tuple[Run, float | None]:
        """Run one of `systems()`; return the run and its seconds, with those of cached results, None for the oracle.

        ConfigError if there is no such system, or it needs missing vectors; ModelError if the encoder of the index or a
        required reranker is missing, or the reranker is invalid.
        """
        if name in CEILINGS:
            return oracle_run(self.eval_set.qrels), None
        return self.as_run(name, self.hits(name)), self._results[name][1]

    def hits(self, name: str) -> list[Hits]:
        """Return the hits of a system, except a ceiling, for each query; raises as `run` does."""
        if name not in self._results:
            # models are opened before the clock starts
            pipeline = None if name in BASELINES else self._pipeline(name)
            start = perf_counter()
            saved = self._saved()
            if pipeline:
                candidates = pipeline.all(self._batch, self._progress)
                hits = [found.hits.best(self.config.depth) for found in candidates]
            else:
                hits = BASELINES[name](self.index, self.eval_set, self.config)
            self._results[name] = hits, perf_counter() - start + self._saved() - saved
        return self._results[name][0]

    def as_run(self, name: str, hits: list[Hits]) -> Run:
        """Return the hits of each query as a run; only the docids of hit rows are read."""
        rows = np.unique(np.concatenate([ranking.rows for ranking in hits]))
        ids = np.array(self.index.papers.ids_at(rows.tolist()), np.object_)
        rankings = {
            query.id: Ranking(
                tuple(ids[np.searchsorted(rows, ranking.rows)]),
                tuple(ranking.scores.tolist()),
            )
            for query, ranking in zip(self.eval_set.queries, hits, strict=True)
        }
        return Run(name, rankings)

    def candidates(self) -> list[CandidateSet]:
        """Return the first-stage candidates of `recommend` for each query."""
        batch = self._batch
        return self._hybrid(EXPANDED).candidates(
            batch.queries, batch.eligible, self.config.depth
        )

    @cached_property
    def open_reranker(self) -> OpenReranker:
        """The reranker with cached scores; ModelError if there is none, or it is invalid."""
        requested = self.config.rerank or RerankConfig(model=NONE)
        opened = open_reranker(self.index, requested, self._log, depth=DEPTH)
        scorer = CachedScorer(opened.scorer)
        self._caches.append(scorer)
        return replace(opened, scorer=scorer)

    def reranker_of(self, name: str, log: Log = no_log) -> OpenReranker:
        """Return the reranker of one of `RERANKED` or `RANKED`, with the weight that it has there."""
        if name in RANKED:
            ranker = self.ranker_of(name)
            return configure_for_ranker(
                self.open_reranker, ranker, self.config.rerank, log
            )
        if name == "rerank-alone":
            return replace(self.open_reranker, weight=1)
        return self.open_reranker

    def check(self, names: Sequence[str]) -> None:
        """Open the models of some systems except the reranker, before any search; raises as `run` does."""
        for name in names:
            if name in RANKED:
                self.ranker_of(name)
            if "dense" in self._parts(name):
                self._retriever("dense")

    def ranker_of(self, name: str) -> Ranker:
        """Open the ranker of one of `RANKED`; ConfigError if there is none, ModelError if it is invalid."""
        folder = find_ranker(self.config.ranker, self.index)
        if folder is None:
            raise ConfigError(
                f"{name} needs a ranker; train one: citerec train-ranker --index {self.index.path}"
            )
        rerank = self.config.rerank
        parts = *map(self._retriever, self.config.retrievers), rerank and rerank.model
        added = declared_features(parts)
        return open_ranker(folder, RANKED[name], added)

    def _saved(self) -> float:
        """Return the seconds that the caches have saved so far."""
        return sum(cache.saved for cache in self._caches)

    def _pipeline(self, name: str) -> Pipeline:
        """Return a system as a pipeline: the pipeline of `recommend` with stages left out, or an object as one."""
        depth = self.config.depth
        if name in self._objects:
            return pipeline_of(
                self._objects[name], self.index, depth, self.config.known_graph
            )
        first_stage = self._hybrid(name)
        stages = tuple[Stage, ...]()
        graph = TemporalGraph(self.index, self.config.known_graph)
        if name in RERANKED:
            # pairs of all queries are batched together
            parts = len(self.eval_set.queries)
            stages = (self.reranker_of(name),)
            return Pipeline(first_stage, stages, depth, queries_per_part=parts)
        if name in RANKED:
            ranker = self.ranker_of(name)
            reranker = self.reranker_of(name, self._log) if self.config.rerank else None
            if notice := retriever_notice(ranker, self.config.retrievers, self.index):
                self._log(notice)
            contexts = contexts_of(graph, first_stage)
            stages = rank_stages(graph, ranker, reranker, contexts)
        elif name == EXPANDED:
            stages = (CandidateExpander(graph),)
        return Pipeline(first_stage, stages, depth)

    def _hybrid(self, name: str) -> HybridRetriever:
        """Return the retrievers of a system; all systems share their cached hits."""
        first = read_by(name, self.index, self.config)
        retrievers = [self._retriever(part) for part in self._parts(name)]
        return HybridRetriever(self.index, retrievers, fuse_of(first, self.config))

    def _parts(self, name: str) -> tuple[str, ...]:
        """Return the names of the retrievers of a system, fused as `recommend` fuses."""
        first, more = read_by(name, self.index, self.config), self.config.retrievers
        if first in FUSIONS:
            vectors = self.index.is_embedded or not more
            return (*(FUSED if vectors else FUSED[:1]), *more)
        fuses = first != name and not RERANKED.get(name)
        return (first, *(more if fuses else ()))

    def _retriever(self, name: str) -> CachedRetriever:
        if name not in self._retrievers:
            if name == "dense":
                self.index.check_embedded()
                how = EncodeConfig(threads=self.config.dense.threads)
                encoder = reopen(
                    self.index.encoder, self.index.path, how, log=self._log
                )
                opened: Retriever = DenseRetriever(
                    self.index, encoder, self.config.dense
                )
            elif name in FORMS:
                opened = Bm25Retriever(self.index, bm25_of(name, self.config))
            else:
                opened = Plugins.RETRIEVERS.load(name)(self.index)
            self._retrievers[name] = CachedRetriever(opened)
            self._caches.append(self._retrievers[name])
        return self._retrievers[name]
