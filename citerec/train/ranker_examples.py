"""The training examples of the ranker: queries of an index, the features of their candidates, and which are cited."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import (
    RANKING_DEPTH,
    ExpandConfig,
    RecommendConfig,
    RerankConfig,
)
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.pipeline import FirstStage, Pipeline
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import FEATURES, NAMES, Features, Group, Matrix, without_groups
from citerec.rank.ltr import DEFAULT, expanded, open_ranker, with_rerank_feature
from citerec.rerank.choose import open_reranker
from citerec.rerank.reranker import NAME as RERANK
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.held_out import HeldOut
from citerec.rules.known import (
    CitationScope,
    GraphSnapshot,
    TemporalGraph,
)
from citerec.train.data import TrainingData, load_dev_task, load_training_data
from citerec.train.lists import Flags, Rows
from citerec.train.measures import f1_and_reciprocal_rank
from citerec.train.settings import RankerTraining
from citerec.types import Hits, Log, Progress, Query, QueryBatch

BLOCK = 64  # queries whose candidates are in memory at once
NEGATIVES = 400  # sampled candidates per query that it does not cite, at most
CITATION_LAG = 5  # years; half of the queries do not know the newest citations, of 1 to so many
KNOWN_FRACTION = 0.15  # of the train queries, which know half of their references, as with --cited
EXPAND = ExpandConfig()  # how the references of neighbours join the candidates
# The probability that a feature group is disabled in a copy of a query. Lexical features are always enabled, since
# every index has BM25. Graph and popularity are disabled together, as in an index without citations.
MISSING = (
    ((Group.SEMANTIC,), 0.3),
    ((Group.RERANKER,), 0.5),
    ((Group.GRAPH, Group.POPULARITY), 0.25),
    ((Group.AUTHORS,), 0.3),
    ((Group.VENUE,), 0.3),
)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RankerExamples:
    """The candidates of several queries, query by query, in first-stage order."""

    matrix: Matrix  # shape (papers, features), columns as `FEATURES`
    cited: Flags  # shape (papers,)
    sizes: Counts  # papers of each query, shape (queries,)
    gold: Counts  # cited papers of each query, retrieved or not, shape (queries,)
    weights: npt.NDArray[np.float32]  # of each paper, shape (papers,)

    @classmethod
    def one(cls, matrix: Matrix, cited: Flags, gold: int, weights: Any = None) -> Self:
        """Make the examples of one query; weights are 1 by default."""
        each = np.ones(len(cited), np.float32) if weights is None else weights
        return cls(matrix, cited, np.array([len(cited)]), np.array([gold]), each)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Concatenate the queries of several parts."""
        parts = [*parts]
        return cls(
            np.concatenate([np.zeros((0, len(FEATURES)), np.float32), *(p.matrix for p in parts)]),
            np.concatenate([np.zeros(0, np.bool_), *(p.cited for p in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(p.sizes for p in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(p.gold for p in parts)]),
            np.concatenate([np.zeros(0, np.float32), *(p.weights for p in parts)]),
        )

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as the constructor takes them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def segment_ids(self) -> Counts:
        """The number of the query of each paper, shape (papers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def is_reranked(self) -> bool:
        """Whether a reranker scored a candidate of any query."""
        return bool(np.isfinite(self.matrix[:, NAMES.index(RERANK)]).any())

    def of(self, chosen: Flags) -> Self:
        """Return the flagged queries; `chosen` has shape (queries,)."""
        rows = chosen[self.segment_ids]
        return type(self)(
            self.matrix[rows],
            self.cited[rows],
            self.sizes[chosen],
            self.gold[chosen],
            self.weights[rows],
        )

    def learnable(self) -> Self:
        """Return the queries with both cited and other papers."""
        hits = np.bincount(self.segment_ids, self.cited, len(self))
        return self.of((hits > 0) & (hits < self.sizes))

    def measures(self, scores: npt.NDArray[np.floating]) -> dict[str, float]:
        """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper."""
        if not len(self):
            return {"f1@20": 0.0, "mrr": 0.0}
        ends = np.cumsum(self.sizes)
        bounds = zip((ends - self.sizes).tolist(), ends.tolist(), self.gold.tolist(), strict=True)
        measured = [
            f1_and_reciprocal_rank(scores[start:end], self.cited[start:end], gold)
            for start, end, gold in bounds
        ]
        f1, reciprocal_ranks = zip(*measured, strict=True)
        return {"f1@20": float(np.mean(f1)), "mrr": float(np.mean(reciprocal_ranks))}

    def first_stage(self) -> dict[str, float]:
        """Return the measures of the first-stage order."""
        return self.measures(-np.arange(len(self.cited), dtype=np.float64))

    def with_copies(self, copies: int, rng: np.random.Generator) -> Self:
        """Return the queries and `copies` copies of each with disabled feature groups: an index may lack these."""
        parts = [self]
        for _ in range(copies):
            matrix = self.matrix
            for groups, share in MISSING:
                disabled = (rng.random(len(self)) < share)[self.segment_ids]
                matrix = without_groups(matrix, groups, disabled, keep=always_present(groups))
            parts.append(replace(self, matrix=matrix))
        return self.joined(parts)


def always_present(groups: Sequence[Group]) -> frozenset[str]:
    """Return the features of disabled groups that stay enabled: the age of a paper needs no citation graph."""
    return frozenset({"age"}) if Group.GRAPH in groups else frozenset()


def sampled(
    matrix: Matrix, cited: Flags, gold: int, negatives: int, rng: np.random.Generator
) -> RankerExamples:
    """Sample the examples of one query: all cited papers, and at most `negatives` others.

    Half of the others are the top candidates, where the ranking is decided; the rest is drawn from all candidates. Each
    of these is weighted by the square root of the number of papers that it represents. Without weights the model would
    learn that middle ranks are nearly empty and would raise useless papers from there; the full weight would cost
    accuracy at the top.
    """
    others = np.flatnonzero(~cited)
    best, rest = others[: negatives // 2], others[negatives // 2 :]
    drawn = rng.choice(rest, min(len(rest), negatives - len(best)), replace=False)
    weights = np.ones(len(cited), np.float32)
    weights[drawn] = np.sqrt(len(rest) / max(len(drawn), 1))
    rows = np.sort(np.concatenate([np.flatnonzero(cited), best, drawn]))
    return RankerExamples.one(matrix[rows], cited[rows], gold, weights[rows])


@dataclass(frozen=True, slots=True, eq=False)
class LabelledQueries(QueryBatch):
    """Queries of one split with their references."""

    gold: Sequence[Rows] = field(kw_only=True)  # per query, the rows of its references

    def at(self, positions: Sequence[int]) -> Self:
        """Return the queries at the given positions."""
        return type(self)(
            [self.queries[i] for i in positions],
            [self.eligible[i] for i in positions],
            [self.cited[i] for i in positions] if self.cited else (),
            gold=[self.gold[i] for i in positions],
        )

    def with_known_half(self, share: float, rng: np.random.Generator) -> "LabelledQueries":
        """Return the same queries; a `share` of them knows half of its references, and only the rest is gold."""
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
    index: IndexFolder, config: RankerTraining, held: HeldOut | None = None, split: str = "dev"
) -> LabelledQueries | None:
    """Return at most `dev_queries` queries of a split that are not held out elsewhere; None if there are none."""
    eval_set = load_dev_task(index, split)
    if eval_set is None:
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
        known = snapshot.is_citing(np.arange(len(self._years), dtype=np.int32))
        return self._array_snapshot(
            snapshot.year, known & (self._years < snapshot.year - self._stale)
        )


class Gatherer:
    """Makes examples of the queries of one index: searches them, expands the candidates, computes features."""

    def __init__(
        self,
        index: IndexFolder,
        config: RankerTraining,
        log: Log,
        *,
        encoder: bool = True,
        reranker: str | None = None,
        finder: FirstStage | None = None,
    ) -> None:
        """Open the stages of an index.

        Args:
            index: The index whose queries are searched.
            config: The settings of the training.
            log: Receives a message before a download from the hub.
            encoder: Whether the vectors of the index are searched.
            reranker: The reranker of the best candidates; None for none.
            finder: Finds the candidates; by default the retriever of `recommend`.

        Raises:
            ModelError: If a model of the index is missing.
        """
        self._config = config
        first = RecommendConfig(encoder="auto" if encoder else "none")
        self._finder = finder or open_hybrid(index, first, log)
        self._reranker = None
        if reranker:
            settings = RerankConfig(
                model=reranker, depth=config.rerank_depth, threads=config.threads
            )
            self._reranker = open_reranker(index, settings, log)
        self._first_order = open_ranker(DEFAULT).score if reranker else None
        self._graph = TemporalGraph(index, CitationScope.TRAIN)
        self._features = Features(index, self._graph)  # the candidates hold the snapshots

    def train(self, data: TrainingData, progress: Progress) -> RankerExamples:
        """Return examples of the train queries; for half of them the newest citations are unknown.

        At most `rerank_queries` of them are reranked; for the others the feature is missing.
        """
        config, rng = self._config, np.random.default_rng([self._config.seed, 6])
        number = len(data.queries)
        drawn = rng.permutation(number)[: config.queries or number]
        chosen = np.sort(drawn)
        most = config.rerank_queries if self._reranker else 0
        reranked = np.isin(chosen, drawn[: most or len(drawn)])
        queries = train_queries(data.only(chosen)).with_known_half(KNOWN_FRACTION, rng)
        lags = rng.integers(1, CITATION_LAG, len(chosen), endpoint=True)
        lags[rng.random(len(chosen)) >= 0.5] = 0
        parts: list[RankerExamples] = []
        for lag, reranks in product(range(CITATION_LAG + 1), (True, False)):
            rows = np.flatnonzero((lags == lag) & (reranked == reranks))
            for one in self._gathered(queries.at(rows.tolist()), lag, reranks):
                parts.append(sampled(*one, NEGATIVES, rng))
                progress("features", len(parts), len(chosen))
        return RankerExamples.joined(parts)

    def whole(self, queries: LabelledQueries, progress: Progress) -> RankerExamples:
        """Return examples of all candidates of some queries; all citations of train papers are known."""
        parts: list[RankerExamples] = []
        for one in self._gathered(queries, 0, reranks=True):
            parts.append(RankerExamples.one(*one))
            progress("features of dev queries", len(parts), len(queries.queries))
        return RankerExamples.joined(parts)

    def _gathered(
        self, queries: LabelledQueries, citation_lag: int, reranks: bool
    ) -> Iterator[tuple[Matrix, Flags, int]]:
        """Yield for each query the features of its candidates, their gold mask, and the gold count."""
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
            if self._reranker and self._first_order and reranks:
                id_rank = self._graph.index.id_rank
                lists = [
                    Hits.ordered(one.rows, self._first_order(matrix), id_rank)
                    for one, matrix in zip(candidates, matrices, strict=True)
                ]
                done = self._reranker.rerank(part.queries, lists)
                matrices = [
                    with_rerank_feature(matrix, one.rows, self._reranker.unit_scores(after))
                    for matrix, one, after in zip(matrices, candidates, done, strict=True)
                ]
            for matrix, one, gold in zip(matrices, candidates, part.gold, strict=True):
                yield matrix, np.isin(one.rows, gold), len(gold)
