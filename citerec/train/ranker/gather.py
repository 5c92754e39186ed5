"""Gathers the training examples of an index: searches its queries, expands the candidates, computes features."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import (
    RANKING_DEPTH,
    ExpandConfig,
    RecommendConfig,
    RerankConfig,
)
from citerec.folder import IndexFolder
from citerec.pipeline import FirstStage, Pipeline
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import Features, Matrix
from citerec.rank.ltr import DEFAULT, expanded, open_ranker, with_rerank_feature
from citerec.rerank.choose import open_reranker
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.known import (
    RECENT_YEARS,
    ArraySnapshot,
    CitationScope,
    GraphSnapshot,
    Scores,
    TemporalGraph,
)
from citerec.train.data import TrainingData
from citerec.train.lists import Flags
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples, sampled
from citerec.train.ranker.models import IndexModels, reranker_of
from citerec.train.ranker.queries import LabelledQueries, train_queries
from citerec.train.workspace import CheckpointTimer, Workspace
from citerec.types import CandidateSet, Hits, Log, Progress, Query

BLOCK = 64  # queries whose candidates are in memory at once
NEGATIVES = 400  # sampled candidates per query that it does not cite, at most
CITATION_LAG = 5  # years; half of the queries do not know the newest citations, of 1 to so many
KNOWN_FRACTION = 0.15  # of the train queries, which know half of their references, as with --cited
EXPAND = ExpandConfig()  # how the references of neighbours join the candidates
STATE = "generator"  # name of the random state among the saved facts

Positions = npt.NDArray[np.int64]  # of queries
MatrixScores = Callable[[Matrix], Scores]  # features of papers to their scores, shape (papers,)


@dataclass(slots=True)
class KeptExamples:
    """Examples in the training folder, saved every few minutes and at the end."""

    workspace: Workspace | None = None  # None to save nothing
    name: str = ""
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def gather(
        self,
        make: Callable[[int], Iterable[RankerExamples]],
        rng: np.random.Generator,
        progress: Callable[[int], None],
    ) -> RankerExamples:
        """Return the saved examples and those that `make` adds; save them regularly.

        Args:
            make: Yields blocks of examples, without those of the first so many queries.
            rng: Draws the examples; it is set to its state at the last save.
            progress: Receives the number of finished queries.
        """
        parts = self._read(rng)
        state, written = rng.bit_generator.state, len(parts)
        try:
            for part in make(sum(map(len, parts))):
                parts.append(part)
                state = rng.bit_generator.state
                progress(sum(map(len, parts)))
                if self.timer.is_due():
                    self.timer.begin()
                    self._write(parts, state)
                    written = len(parts)
                    self.timer.done()
        finally:
            if len(parts) > written:
                self._write(parts, state)
        return RankerExamples.joined(parts)

    def _read(self, rng: np.random.Generator) -> list[RankerExamples]:
        saved = self.workspace.load(self.name) if self.workspace else None
        if saved is None:
            return []
        arrays, facts = saved
        rng.bit_generator.state = facts[STATE]
        return [RankerExamples(**arrays)]

    def _write(self, parts: Sequence[RankerExamples], state: Any) -> None:
        if self.workspace is None:
            return
        joined = RankerExamples.joined(parts)
        arrays = {one.name: getattr(joined, one.name) for one in fields(RankerExamples)}
        self.workspace.save(self.name, arrays, {STATE: state})


class LaggedGraph(TemporalGraph):
    """The citation graph without the newest citations.

    The citations of dev and test papers are unknown in an evaluation, as are recent citations if the corpus is some
    years older than the query.
    """

    def __init__(self, graph: TemporalGraph, years: int) -> None:
        """Prepare; citations of the last `years` years before each query's year are unknown."""
        super().__init__(graph.index, graph.scope)
        self._stale = years

    def _new_snapshot(self, year: int | None, own: tuple[int, ...]) -> GraphSnapshot:
        snapshot = super()._new_snapshot(year, own)
        citing = snapshot.citing & (self._years < snapshot.year - self._stale)
        recent = citing & (self._years >= snapshot.year - RECENT_YEARS)
        counts = self._counted(citing), self._counted(recent)
        return ArraySnapshot(snapshot.year, citing, *counts)


class Gatherer:
    """Makes examples of the queries of one index."""

    def __init__(
        self,
        index: IndexFolder,
        config: RankerTraining,
        log: Log,
        finder: FirstStage | None = None,
        models: IndexModels | None = None,
        first_order: MatrixScores | None = None,
    ) -> None:
        """Open the stages of an index.

        Args:
            index: The index whose queries are searched.
            config: The settings of the training.
            log: Receives a message before a download from the hub.
            finder: Finds the candidates; by default the retriever of `recommend`.
            models: The models that are run; by default those that the settings name, whatever they were trained on.
            first_order: Scores candidates by their features; the best are reranked. By default the package's ranker.

        Raises:
            ModelError: If a model of the index is missing.
        """
        self._index, self._config = index, config
        models = models or IndexModels(reranker=reranker_of(index, config))
        first = RecommendConfig(encoder="auto" if models.encoder else "none")
        self._finder = finder or open_hybrid(index, first, log)
        self._cascade = _cascade(index, models.reranker, config, log)
        if self._cascade and first_order is None:
            first_order = open_ranker(DEFAULT).score
        self._first_order = first_order
        self._graph = TemporalGraph(index, CitationScope.TRAIN)
        self._features = Features(index, self._graph)  # the candidates hold the snapshots

    def train(
        self,
        data: TrainingData,
        progress: Progress,
        kept: KeptExamples | None = None,
        rerankable: Flags | None = None,
    ) -> RankerExamples:
        """Return examples of the train queries; for half of them the newest citations are unknown.

        Args:
            data: The train queries.
            progress: Receives the number of gathered queries.
            kept: Saves the examples; queries that it holds are not searched again. By default nothing is saved.
            rerankable: Mask of the queries that the reranker was not trained on, shape (queries,); by default all.
                At most `rerank_queries` of them are reranked; for the others the feature is missing.
        """
        config, rng = self._config, np.random.default_rng([self._config.seed, 6])
        number = len(data.queries)
        drawn = rng.permutation(number)[: config.queries or number]
        chosen = np.sort(drawn)
        reranked = np.isin(chosen, self._reranked(drawn, rerankable))
        queries = train_queries(data.only(chosen)).with_known_half(KNOWN_FRACTION, rng)
        lags = rng.integers(1, CITATION_LAG, len(chosen), endpoint=True)
        lags[rng.random(len(chosen)) >= 0.5] = 0

        def make(skip: int) -> Iterator[RankerExamples]:
            for lag, reranks in product(range(CITATION_LAG + 1), (True, False)):
                rows = np.flatnonzero((lags == lag) & (reranked == reranks))
                skipped = min(skip, len(rows))
                skip -= skipped
                for block in self._gathered(queries.at(rows[skipped:].tolist()), lag, reranks):
                    yield RankerExamples.joined([sampled(*o, NEGATIVES, rng) for o in block])

        kept = kept or KeptExamples()
        return kept.gather(make, rng, lambda done: progress("features", done, len(chosen)))

    def whole(
        self, queries: LabelledQueries, progress: Progress, kept: KeptExamples | None = None
    ) -> RankerExamples:
        """Return examples of all candidates of some queries; all citations of train papers are known.

        Args:
            queries: The queries.
            progress: Receives the number of gathered queries.
            kept: Saves the examples; queries that it holds are not searched again. By default nothing is saved.
        """

        def make(skip: int) -> Iterator[RankerExamples]:
            rest = queries.at(np.arange(skip, len(queries.queries)).tolist())
            for block in self._gathered(rest, 0):
                yield RankerExamples.joined([RankerExamples.one(*one) for one in block])

        kept, rng = kept or KeptExamples(), np.random.default_rng(0)  # draws nothing here
        number = len(queries.queries)
        return kept.gather(
            make, rng, lambda done: progress("features of dev queries", done, number)
        )

    def _reranked(self, drawn: Positions, rerankable: Flags | None) -> Positions:
        """Return which of the drawn queries are reranked; all if there is no reranker."""
        if self._cascade is None:
            return drawn
        allowed = drawn if rerankable is None else drawn[rerankable[drawn]]
        return allowed[: self._config.rerank_queries or len(allowed)]

    def _gathered(
        self, queries: LabelledQueries, citation_lag: int, reranks: bool = True
    ) -> Iterator[list[tuple[Any, Any, int]]]:
        """Yield blocks of queries: for each, the features of its candidates, their gold mask, and the gold count."""
        graph = LaggedGraph(self._graph, citation_lag) if citation_lag else self._graph
        expand = CandidateExpander(graph, EXPAND)
        pipeline = Pipeline(self._finder, (expand,), RANKING_DEPTH, queries_per_part=BLOCK)
        for start in range(0, len(queries), BLOCK):
            part = queries.at(range(start, min(start + BLOCK, len(queries))))
            candidates = [expanded(one) for one in pipeline.all(part)]
            matrices = [
                self._features.matrix(query, one, part.known_references(i))
                for i, (query, one) in enumerate(zip(part.queries, candidates, strict=True))
            ]
            if self._cascade and self._first_order and reranks:
                matrices = self._reranked_matrices(
                    self._cascade, self._first_order, part.queries, candidates, matrices
                )
            yield [
                (matrix, np.isin(one.rows, gold), len(gold))
                for matrix, one, gold in zip(matrices, candidates, part.gold, strict=True)
            ]

    def _reranked_matrices(
        self,
        cascade: OpenReranker,
        first_order: MatrixScores,
        queries: Sequence[Query],
        candidates: Sequence[CandidateSet],
        matrices: Sequence[Matrix],
    ) -> list[Matrix]:
        """Return features with the probabilities of the candidates that are best without; see `RerankedLtrStage`."""
        id_rank = self._graph.index.id_rank
        lists = [
            Hits.ordered(one.rows, first_order(matrix), id_rank)
            for one, matrix in zip(candidates, matrices, strict=True)
        ]
        done = cascade.rerank(queries, lists)
        return [
            with_rerank_feature(matrix, one.rows, cascade.unit_scores(after))
            for matrix, one, after in zip(matrices, candidates, done, strict=True)
        ]


def _cascade(
    index: IndexFolder, reranker: str | None, config: RankerTraining, log: Log
) -> OpenReranker | None:
    if reranker is None:
        return None
    settings = RerankConfig(model=reranker, depth=config.rerank_depth, threads=config.threads)
    return open_reranker(index, settings, log)
