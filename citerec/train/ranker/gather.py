"""From an index to examples: its queries are searched, their pools expanded, their features computed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import RecommendConfig, RerankConfig, RerankStage
from citerec.errors import ConfigError
from citerec.evaluate.protocol import load_task
from citerec.folder import IndexFolder
from citerec.pipeline import Finder, Pipeline, RerankFeature, Stage
from citerec.rank.expansion import CandidateExpander
from citerec.rank.features import Features
from citerec.rank.known import LATELY, GraphSnapshot, KnownGraph, TemporalGraph
from citerec.rank.ltr import expanded
from citerec.rerank.cascade import Cascade
from citerec.rerank.opening import open_cascade, own_reranker, trained_on_other_data
from citerec.retrieve.hybrid import open_hybrid
from citerec.train.data import TrainingData, load_training_data
from citerec.train.modelfolder import read_training
from citerec.train.ranker.apart import HeldOut
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples, sampled
from citerec.train.ranker.kept import KeptExamples
from citerec.types import Log, Progress, Query, QueryBatch

BLOCK = 64  # queries whose pools are in memory at once

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledQueries(QueryBatch):
    """Queries of one split, with the papers that each cites."""

    gold: Sequence[Rows] = field(kw_only=True)  # rows of the papers that each query cites

    def at(self, places: Sequence[int]) -> Self:
        """Return the queries at some places."""
        return type(self)(
            [self.queries[i] for i in places],
            [self.eligible[i] for i in places],
            [self.cited[i] for i in places] if self.cited else (),
            gold=[self.gold[i] for i in places],
        )

    def with_known_half(self, share: float, rng: np.random.Generator) -> "LabelledQueries":
        """Return the same queries, where some know half of their references and only the rest is gold.

        Args:
            share: Of the queries that know half, about; those with less than two citations know none.
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
    """The citation graph where the newest citations have not arrived yet.

    So it is in an evaluation, where nobody knows what dev and test papers cite, and in a corpus that was collected some
    years before a query was written.
    """

    def __init__(self, known: TemporalGraph, years: int) -> None:
        """Leave out the last `years` years before each query's."""
        super().__init__(known.index, known.graph)
        self._stale = years

    def _at(self, year: int | None, own: tuple[int, ...]) -> GraphSnapshot:
        snapshot = super()._at(year, own)
        citing = snapshot.citing & (self._years < snapshot.year - self._stale)
        lately = citing & (self._years >= snapshot.year - LATELY)
        return replace(
            snapshot, citing=citing, counts=self._counted(citing), recent=self._counted(lately)
        )


@dataclass(frozen=True, slots=True)
class ExcludedModels:
    """Which models of an index are not asked about its train queries, and so have to be learned from dev queries."""

    encoder: bool = False  # one of citerec's own training, as a rule on what these cite
    reranker: bool = False  # so it was, as a rule; and to read the pools of all of them takes hours

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.encoder or self.reranker

    @classmethod
    def of(cls, index: IndexFolder, config: RankerTraining) -> "ExcludedModels":
        """Find out, from what the model folders tell."""
        recorded = index.manifest.settings.get("encoder")
        told = read_training(index.path / str(recorded["source"])) if recorded else {}
        return cls(bool(told), reranker_of(index, config) is not None)


class Gatherer:
    """Makes examples of the queries of one index."""

    def __init__(
        self,
        index: IndexFolder,
        config: RankerTraining,
        log: Log,
        finder: Finder | None = None,
        spare: ExcludedModels = ExcludedModels(),
    ) -> None:
        """Open the stages of an index.

        Args:
            index: Whose queries are asked.
            config: How.
            log: Receives what is fetched from the hub, before.
            finder: Finds the candidates; by default as `recommend` does.
            spare: Models that are not asked.

        Raises:
            ModelError: If a model of the index is not there.
        """
        self._index, self._config = index, config
        first = RecommendConfig(encoder="none" if spare.encoder else "auto")
        self._finder = finder or open_hybrid(index, first, log)
        self._cascade = None if spare.reranker else _cascade(index, config, log)
        self._known = TemporalGraph(index, KnownGraph.TRAIN)
        self._features = Features(index, self._known)  # what is known in time is said by each pool

    def train(
        self, data: TrainingData, progress: Progress, kept: KeptExamples | None = None
    ) -> Examples:
        """Return examples of the train queries; half of them do not know the newest citations.

        Args:
            data: The train queries.
            progress: Receives how many of them are gathered.
            kept: Keeps what is gathered; queries that it holds are not searched again. By default nothing is kept.
        """
        config, rng = self._config, np.random.default_rng([self._config.seed, 6])
        number = len(data.queries)
        chosen = np.sort(rng.permutation(number)[: config.queries or number])
        asked = train_queries(data.only(chosen)).with_known_half(config.known_fraction, rng)
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
                for block in self._gathered(asked.at(rows[skipped:].tolist()), lag):
                    yield Examples.joined([sampled(*o, config.negatives, rng) for o in block])

        kept = kept or KeptExamples(None)
        return kept.gather(make, rng, lambda done: progress("features", done, len(chosen)))

    def whole(
        self, asked: LabelledQueries, progress: Progress, kept: KeptExamples | None = None
    ) -> Examples:
        """Return all papers of the pools of some queries, of which all train citations are known.

        Args:
            asked: The queries.
            progress: Receives how many of them are gathered.
            kept: Keeps what is gathered; queries that it holds are not searched again.
        """

        def make(skip: int) -> Iterator[Examples]:
            rest = asked.at(np.arange(skip, len(asked.queries)).tolist())
            for block in self._gathered(rest, 0):
                yield Examples.joined([Examples.one(*one) for one in block])

        kept, rng = kept or KeptExamples(None), np.random.default_rng(0)  # which draws nothing here
        number = len(asked.queries)
        return kept.gather(
            make, rng, lambda done: progress("features of dev queries", done, number)
        )

    def _gathered(
        self, queries: LabelledQueries, citation_lag: int
    ) -> Iterator[list[tuple[Any, Any, int]]]:
        """Yield, block by block, the features of each query's candidates, which of them it cites, and how many."""
        graph = LaggedGraph(self._known, citation_lag) if citation_lag else self._known
        stages: tuple[Stage, ...] = (CandidateExpander(graph, self._config.expand),)
        if self._cascade:
            stages = (*stages, RerankFeature(self._cascade, self._cascade.depth))
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
    """Return the train queries of an index; no dev or test query may be recommended to them."""
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
    others: HeldOut | None = None,
    split: str = "dev",
) -> LabelledQueries | None:
    """Return the dev queries of an index, or some of them, but for those of `others`; None if there are none."""
    try:
        task = load_task(index, split)
    except ConfigError:
        return None
    gold = [index.papers.rows_of(sorted(task.qrels[query.id])) for query in task.queries]
    queries = LabelledQueries(task.queries, task.eligible, gold=gold)
    rng = np.random.default_rng([config.seed, 7])
    usable = np.arange(len(task.queries))
    if others:
        titles = [query.title for query in task.queries]
        usable = np.flatnonzero(others.spares([query.id for query in task.queries], titles))
    chosen = rng.permutation(usable)[: config.dev_queries or len(usable)]
    return queries.at(np.sort(chosen).tolist()) if len(chosen) else None


def load_train(index: IndexFolder) -> TrainingData | None:
    """Load the train queries of an index; None where they cite nothing that they may."""
    try:
        return load_training_data(index)
    except ConfigError:
        return None


def _cascade(index: IndexFolder, config: RankerTraining, log: Log) -> Cascade | None:
    reranker = reranker_of(index, config)
    if reranker is None:
        return None
    stage = RerankStage(model=str(reranker), depth=config.rerank_depth)
    return open_cascade(index, RerankConfig(stages=(stage,), threads=config.threads), log)


def reranker_of(index: IndexFolder, config: RankerTraining) -> Path | str | None:
    """Return what reads the pools of an index; None for nothing."""
    if config.reranker == "none":
        return None
    if config.reranker != "auto":
        return config.reranker
    own = own_reranker(index)
    return None if own and trained_on_other_data(own, index) else own
