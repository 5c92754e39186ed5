"""Gathers the training examples of an index: searches its queries, expands the candidates, computes features."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import CrossEncoderConfig, RecommendConfig, RerankConfig
from citerec.errors import ConfigError
from citerec.evaluate.protocol import load_task
from citerec.folder import IndexFolder
from citerec.pipeline import Pipeline
from citerec.rank.expansion import CandidateExpander
from citerec.rank.features import Features
from citerec.rank.ltr import expanded
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import auto_reranker, open_cascade
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.held_out import HeldOut
from citerec.rules.known import LATELY, CitationScope, GraphSnapshot, TemporalGraph
from citerec.stages import FirstStage, RerankFeatureStage, Stage
from citerec.train.data import TrainingData, load_training_data
from citerec.train.modelfolder import read_training
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples, sampled
from citerec.train.ranker.kept import KeptExamples
from citerec.types import Log, Progress, Query, QueryBatch

BLOCK = 64  # queries whose candidates are in memory at once

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledQueries(QueryBatch):
    """Queries of one split with their references."""

    gold: Sequence[Rows] = field(kw_only=True)  # per query, the rows of its references

    def at(self, places: Sequence[int]) -> Self:
        """Return the queries at the given positions."""
        return type(self)(
            [self.queries[i] for i in places],
            [self.eligible[i] for i in places],
            [self.cited[i] for i in places] if self.cited else (),
            gold=[self.gold[i] for i in places],
        )

    def with_known_half(self, share: float, rng: np.random.Generator) -> "LabelledQueries":
        """Return the same queries; for some, half of the references are known and only the rest is gold.

        Args:
            share: The probability of known references per query. A query with less than two references has none.
            rng: Draws the queries and the references.
        """
        halves = [
            rng.permutation(gold)[: len(gold) // 2] if rng.random() < share else gold[:0]
            for gold in self.gold
        ]
        known = [np.sort(half).tolist() for half in halves]
        rules = [
            replace(rule, excluded=rule.excluded.union(half)) if half else rule
            for rule, half in zip(self.eligible, known, strict=True)
        ]
        rest = [np.setdiff1d(gold, half) for gold, half in zip(self.gold, halves, strict=True)]
        return LabelledQueries(self.queries, rules, known, gold=rest)


class LaggedGraph(TemporalGraph):
    """The citation graph without the newest citations.

    The citations of dev and test papers are unknown in an evaluation, as are recent citations if the corpus is some
    years older than the query.
    """

    def __init__(self, graph: TemporalGraph, years: int) -> None:
        """Prepare; citations of the last `years` years before each query's year are unknown."""
        super().__init__(graph.index, graph.scope)
        self._stale = years

    def _at(self, year: int | None, own: tuple[int, ...]) -> GraphSnapshot:
        snapshot = super()._at(year, own)
        citing = snapshot.citing & (self._years < snapshot.year - self._stale)
        recent = citing & (self._years >= snapshot.year - LATELY)
        return replace(
            snapshot, citing=citing, counts=self._counted(citing), recent=self._counted(recent)
        )


@dataclass(frozen=True, slots=True)
class ExcludedModels:
    """The models of an index that are not run on its train queries; their features are learned from dev queries."""

    encoder: bool = False  # trained by citerec, usually on the citations of the train queries
    reranker: bool = False  # likewise; reranking for all train queries takes hours

    def __bool__(self) -> bool:
        """Whether any model is excluded."""
        return self.encoder or self.reranker

    @classmethod
    def of(cls, index: IndexFolder, config: RankerTraining) -> "ExcludedModels":
        """Read the training records of the model folders."""
        recorded = index.manifest.settings.get("encoder")
        record = read_training(index.path / str(recorded["source"])) if recorded else {}
        return cls(bool(record), reranker_of(index, config) is not None)


class Gatherer:
    """Makes examples of the queries of one index."""

    def __init__(
        self,
        index: IndexFolder,
        config: RankerTraining,
        log: Log,
        finder: FirstStage | None = None,
        excluded_models: ExcludedModels = ExcludedModels(),
    ) -> None:
        """Open the stages of an index.

        Args:
            index: The index whose queries are searched.
            config: The settings of the training.
            log: Receives a message before a download from the hub.
            finder: Finds the candidates; by default the retriever of `recommend`.
            excluded_models: Models that are not run.

        Raises:
            ModelError: If a model of the index is missing.
        """
        self._index, self._config = index, config
        first = RecommendConfig(encoder="none" if excluded_models.encoder else "auto")
        self._finder = finder or open_hybrid(index, first, log)
        self._cascade = None if excluded_models.reranker else _cascade(index, config, log)
        self._graph = TemporalGraph(index, CitationScope.TRAIN)
        self._features = Features(index, self._graph)  # the candidates hold the snapshots

    def train(
        self, data: TrainingData, progress: Progress, kept: KeptExamples | None = None
    ) -> Examples:
        """Return examples of the train queries; for half of them the newest citations are unknown.

        Args:
            data: The train queries.
            progress: Receives the number of gathered queries.
            kept: Saves the examples; queries that it holds are not searched again. By default nothing is saved.
        """
        config, rng = self._config, np.random.default_rng([self._config.seed, 6])
        number = len(data.queries)
        chosen = np.sort(rng.permutation(number)[: config.queries or number])
        queries = train_queries(data.only(chosen)).with_known_half(config.known_fraction, rng)
        lags = (
            rng.integers(1, config.citation_lag, len(chosen), endpoint=True)
            if config.citation_lag
            else None
        )
        citation_lag = rng.random(len(chosen)) < 0.5
        groups = [
            (lag, ~citation_lag | (lags is None) if lag == 0 else citation_lag & (lags == lag))
            for lag in range(config.citation_lag + 1)
        ]

        def make(skip: int) -> Iterator[Examples]:
            for lag, group in groups:
                rows = np.flatnonzero(group)
                skipped = min(skip, len(rows))
                skip -= skipped
                for block in self._gathered(queries.at(rows[skipped:].tolist()), lag):
                    yield Examples.joined([sampled(*o, config.negatives, rng) for o in block])

        kept = kept or KeptExamples(None)
        return kept.gather(make, rng, lambda done: progress("features", done, len(chosen)))

    def whole(
        self, queries: LabelledQueries, progress: Progress, kept: KeptExamples | None = None
    ) -> Examples:
        """Return examples of all candidates of some queries; all citations of train papers are known.

        Args:
            queries: The queries.
            progress: Receives the number of gathered queries.
            kept: Saves the examples; queries that it holds are not searched again. By default nothing is saved.
        """

        def make(skip: int) -> Iterator[Examples]:
            rest = queries.at(np.arange(skip, len(queries.queries)).tolist())
            for block in self._gathered(rest, 0):
                yield Examples.joined([Examples.one(*one) for one in block])

        kept, rng = kept or KeptExamples(None), np.random.default_rng(0)  # draws nothing here
        number = len(queries.queries)
        return kept.gather(
            make, rng, lambda done: progress("features of dev queries", done, number)
        )

    def _gathered(
        self, queries: LabelledQueries, citation_lag: int
    ) -> Iterator[list[tuple[Any, Any, int]]]:
        """Yield blocks of queries: for each, the features of its candidates, their gold mask, and the gold count."""
        graph = LaggedGraph(self._graph, citation_lag) if citation_lag else self._graph
        stages: tuple[Stage, ...] = (CandidateExpander(graph, self._config.expand),)
        if self._cascade:
            stages = (*stages, RerankFeatureStage(self._cascade, self._cascade.depth))
        pipeline = Pipeline(self._finder, stages, self._config.depth, together=BLOCK)
        for start in range(0, len(queries), BLOCK):
            part = queries.at(range(start, min(start + BLOCK, len(queries))))
            yield [
                (
                    self._features.matrix(query, expanded(one), part.known_references(i)),
                    np.isin(one.rows, gold),
                    len(gold),
                )
                for i, (query, one, gold) in enumerate(
                    zip(part.queries, pipeline.all(part), part.gold, strict=True)
                )
            ]


def train_queries(data: TrainingData) -> LabelledQueries:
    """Return the train queries of an index; dev and test queries are not eligible for them."""
    rows = data.queries.tolist()
    papers = data.index.papers.at(rows)
    return LabelledQueries(
        [Query.of(papers[row]) for row in rows],
        data.rules(data.queries),
        gold=[data.gold[i] for i in range(len(rows))],
    )


def dev_queries(
    index: IndexFolder,
    config: RankerTraining,
    held: HeldOut | None = None,
    split: str = "dev",
) -> LabelledQueries | None:
    """Return the dev queries of an index; None if there are none.

    Args:
        index: The index.
        config: The maximum number of queries, and the seed of the sample.
        held: Held-out queries, which are left out.
        split: The split.
    """
    try:
        eval_set = load_task(index, split)
    except ConfigError:
        return None
    gold = [index.papers.rows_of(sorted(eval_set.qrels[query.id])) for query in eval_set.queries]
    queries = LabelledQueries(eval_set.queries, eval_set.eligible, gold=gold)
    rng = np.random.default_rng([config.seed, 7])
    usable = np.arange(len(eval_set.queries))
    if held:
        titles = [query.title for query in eval_set.queries]
        usable = np.flatnonzero(held.allowed_mask([query.id for query in eval_set.queries], titles))
    chosen = rng.permutation(usable)[: config.dev_queries or len(usable)]
    return queries.at(np.sort(chosen).tolist()) if len(chosen) else None


def load_train(index: IndexFolder) -> TrainingData | None:
    """Load the train queries of an index; None if none of them cites an eligible paper."""
    try:
        return load_training_data(index)
    except ConfigError:
        return None


def _cascade(index: IndexFolder, config: RankerTraining, log: Log) -> Cascade | None:
    reranker = reranker_of(index, config)
    if reranker is None:
        return None
    stage = CrossEncoderConfig(model=str(reranker), depth=config.rerank_depth)
    return open_cascade(index, RerankConfig(cross_encoders=(stage,), threads=config.threads), log)


def reranker_of(index: IndexFolder, config: RankerTraining) -> Path | str | None:
    """Return the reranker for the candidates of an index; None for none."""
    if config.reranker == "none":
        return None
    if config.reranker != "auto":
        return config.reranker
    return auto_reranker(index, same_data=True)
