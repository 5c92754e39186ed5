"""The systems that an evaluation compares: the pipeline's stages, their fusions, baselines, a ceiling.

Each stage searches once, however many systems read it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from time import perf_counter

import numpy as np

from citerec.config import Bm25Config, FuseConfig, FuseMethod
from citerec.eligibility import mask
from citerec.encode.config import EncodeConfig
from citerec.encode.encoder import Encoder, reopen
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.evaluate.baselines import (
    citation_order,
    most_cited_hits,
    oracle_run,
    query_rng,
    random_hits,
)
from citerec.evaluate.protocol import Setting, Task, citing_before, known_citations
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.run import Run
from citerec.text import QueryForm
from citerec.tuned import read_tuned
from citerec.types import Hits, Note, Ranking, Retriever

FUSED = ("bm25", "dense")  # the stages that the fusions read
_FORMS: Mapping[str, QueryForm | None] = {
    "bm25": None,  # as the setting says
    "bm25-title": QueryForm.TITLE,
    "bm25-key-terms": QueryForm.KEY_TERMS,
}
_FUSIONS = ("rrf", "weighted")
_BASELINES = ("most-cited", "random")
CEILINGS = frozenset({"oracle"})  # made from the gold itself: no system to be compared with
SYSTEMS = (*_FORMS, "dense", *_FUSIONS, *_BASELINES, *sorted(CEILINGS))
NEED_VECTORS = frozenset({"dense", *_FUSIONS})


def default_systems(index: IndexFolder) -> list[str]:
    """Return the systems that an evaluation compares unless told otherwise."""
    dense = ["dense", "rrf"] if index.is_embedded else []
    if dense and (tuned := read_tuned(index)) and tuned.method is FuseMethod.WEIGHTED:
        dense.append("weighted")  # as `recommend` fuses
    return ["bm25", *dense, *_BASELINES, *sorted(CEILINGS)]


def weights(index: IndexFolder) -> FuseConfig:
    """Return the weights of the system "weighted": as tuned on the index, else both alike."""
    tuned = read_tuned(index)
    return replace(tuned or FuseConfig(), method=FuseMethod.WEIGHTED)


def run_system(
    name: str, index: IndexFolder, task: Task, setting: Setting
) -> tuple[Run, float | None]:
    """Run one system over the queries of a task; for several, `Systems` is quicker."""
    return Systems(index, task, setting).run(name)


def bm25_of(name: str, setting: Setting) -> Bm25Config | None:
    """Return what BM25 searches with in a system; None for one without BM25."""
    if name in _FUSIONS:
        return setting.bm25
    if name not in _FORMS:
        return None
    form = _FORMS[name]
    return replace(setting.bm25, form=form) if form else setting.bm25


def fuse_of(name: str, setting: Setting) -> FuseConfig | None:
    """Return how a system fuses; None for one that does not."""
    if name == "rrf":
        return FuseConfig(k0=setting.fuse.k0, depth=setting.depth)
    return replace(setting.fuse, depth=setting.depth) if name == "weighted" else None


class Systems:
    """The systems over one task."""

    def __init__(
        self,
        index: IndexFolder,
        task: Task,
        setting: Setting,
        note: Note | None = None,
    ) -> None:
        """Prepare to run systems; `note` is told what is fetched from the hub, before."""
        self._note = note
        self._index, self._task, self._setting = index, task, setting
        self._found: dict[str, tuple[list[Hits], float]] = {}

    def run(self, name: str) -> tuple[Run, float | None]:
        """Run one system over the queries of the task.

        Args:
            name: One of `SYSTEMS`.

        Returns:
            The run, and the seconds that it took, those of the stages that it reads included (None for the
            oracle, which does not search).

        Raises:
            ConfigError: If there is no such system, or it needs vectors and the index has none.
            ModelError: If the encoder of the index is not there any more.
        """
        if name not in SYSTEMS:
            raise ConfigError(f"no system {name!r}; there are: {', '.join(SYSTEMS)}")
        if name in CEILINGS:
            return oracle_run(self._task.qrels, name), None
        hits, seconds = self._hits(name)
        return _as_run(name, self._index, self._task, hits), seconds

    def stages(self) -> list[dict[str, Hits]]:
        """Return, for each query, what each of the stages `FUSED` found.

        Raises:
            ConfigError: If the index has no vectors.
        """
        self._need_vectors(FUSED[-1])
        found = {stage: self._hits(stage)[0] for stage in FUSED}
        queries = range(len(self._task.queries))
        return [{stage: hits[i] for stage, hits in found.items()} for i in queries]

    def as_run(self, name: str, hits: list[Hits]) -> Run:
        """Name what was found for each query of the task, as a run."""
        return _as_run(name, self._index, self._task, hits)

    def _need_vectors(self, name: str) -> None:
        if not self._index.is_embedded:
            raise ConfigError(
                f"{name} needs vectors, and {self._index.path} has none; embed its papers: "
                f"citerec encode --index {self._index.path} --encoder MODEL"
            )

    def _hits(self, name: str) -> tuple[list[Hits], float]:
        if name in NEED_VECTORS:
            self._need_vectors(name)
        if name not in self._found:
            before = sum(self._hits(stage)[1] for stage in FUSED) if name in _FUSIONS else 0.0
            search = self._searcher(name)  # opened outside of what is timed
            start = perf_counter()
            hits = search()
            self._found[name] = hits, before + perf_counter() - start
        return self._found[name]

    def _searcher(self, name: str) -> Callable[[], list[Hits]]:
        if name in _FUSIONS:
            return lambda: self._fused(name)
        if name in _BASELINES:
            baseline = {"most-cited": _most_cited, "random": _random}[name]
            return lambda: baseline(self._index, self._task, self._setting)
        retriever: Retriever
        if name == "dense":
            retriever = DenseRetriever(self._index, self._encoder, self._setting.dense)
        else:
            retriever = Bm25Retriever(self._index, bm25_of(name, self._setting))
        task, depth = self._task, self._setting.depth
        return lambda: retriever.retrieve(task.queries, task.eligible, depth)

    def _fused(self, name: str) -> list[Hits]:
        config = fuse_of(name, self._setting)
        assert config is not None
        depth = self._setting.depth
        return [fuse(found, self._index.id_rank, config, k=depth) for found in self.stages()]

    @cached_property
    def _encoder(self) -> Encoder:
        recorded = Fingerprint.from_json(self._index.manifest.settings["encoder"])
        threads = EncodeConfig(threads=self._setting.dense.threads)
        return reopen(recorded, self._index.path, threads, tell=self._note)


def _as_run(name: str, index: IndexFolder, task: Task, hits: list[Hits]) -> Run:
    """Put docids for rows; only the rows that were hit are read."""
    rows = np.unique(np.concatenate([found.rows for found in hits]))
    ids = np.array(index.papers.ids_at(rows.tolist()), np.object_)
    rankings = {
        query.id: Ranking(
            tuple(ids[np.searchsorted(rows, found.rows)]), tuple(found.scores.tolist())
        )
        for query, found in zip(task.queries, hits, strict=True)
    }
    return Run(name, rankings)


def _random(index: IndexFolder, task: Task, setting: Setting) -> list[Hits]:
    years = index.papers.years
    return [
        random_hits(mask(rule, years), setting.depth, query_rng(setting.seed, query.id))
        for query, rule in zip(task.queries, task.eligible, strict=True)
    ]


def _most_cited(index: IndexFolder, task: Task, setting: Setting) -> list[Hits]:
    """Count citations once for all queries that know the same ones, not once for each query."""
    years = index.papers.years
    own = index.papers.rows_of([query.id for query in task.queries]).tolist()
    alike: defaultdict[tuple[int | None, int], list[int]] = defaultdict(list)
    for i, (query, row) in enumerate(zip(task.queries, own, strict=True)):
        is_earlier = row >= 0 and citing_before(query.year, years[row : row + 1])[0]
        alike[query.year, row if is_earlier else -1].append(i)
    found: dict[int, Hits] = {}
    for (year, row), members in alike.items():
        counts = known_citations(index, year, setting.known_graph, own=row)
        order = citation_order(counts, index.id_rank)
        for i in members:
            allowed = mask(task.eligible[i], years)
            found[i] = most_cited_hits(order, counts, allowed, setting.depth)
    return [found[i] for i in range(len(task.queries))]
