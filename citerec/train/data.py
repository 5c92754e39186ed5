"""The training data of an index: the train queries, the papers that they cite, and the papers that may be negatives.

Dev and test queries are never read in training, neither as queries nor as positives or negatives. Only the references
of the train queries are known.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR, no_later
from citerec.corpus.splits import SPLITS, gold_citations
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalSet, load_task
from citerec.folder import IndexFolder
from citerec.rules.held_out import HELD_OUT, held_out, held_out_rows, train_rows
from citerec.train.joined import JoinedIndexes, TrainingIndex
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.types import Eligibility, Query

CHUNK = 4096  # queries whose lists are built at once


@dataclass(frozen=True)
class TrainingData:
    """The train queries of an index, or of several, and the papers that may be positives or negatives."""

    index: TrainingIndex
    queries: Rows  # shape (queries,), rising
    pool: Flags  # papers that may be positives or negatives, shape (papers,)
    cited: Lists  # the references of each query, of any year
    gold: Lists  # the references that are positives: in the pool and of no later year

    @property
    def papers(self) -> int:
        """The number of papers in the index."""
        return len(self.pool)

    @property
    def years(self) -> npt.NDArray[np.int32]:
        """The year of each paper; `NO_YEAR` where unknown."""
        return self.index.papers.years

    @cached_property
    def links(self) -> Any:
        """The citations of the train queries that are in the pool, as a sparse matrix, shape (papers, papers)."""
        from scipy.sparse import csr_array

        references = self.cited.where(self.pool[self.cited.indices])
        citing = self.queries[references.segment_ids]
        ones = np.ones(len(citing), np.int32)
        return csr_array((ones, (citing, references.indices)), shape=(self.papers, self.papers))

    def eligible(self, queries: Rows, rows: npt.NDArray[np.integer]) -> Flags:
        """Return which rows are in the index of their query and of no later year.

        Args:
            queries: The rows of the queries.
            rows: The rows of the papers; a shape that broadcasts with `queries`.

        Returns:
            Flags in the broadcast shape. A query or a paper without a year is not restricted.
        """
        allowed = no_later(self.years[rows], self.years[queries])
        if isinstance(self.index, JoinedIndexes):
            allowed &= self.index.number[rows] == self.index.number[queries]
        return allowed

    def rules(self, queries: Rows) -> list[Eligibility]:
        """Return which papers may be candidates of some train queries: no dev or test query, none of a later year."""
        hidden = np.flatnonzero(~self.pool)
        years = self.years[queries].tolist()
        of_year = {  # few: dev and test queries are the newest papers
            year: frozenset(hidden[no_later(self.years[hidden], np.int32(year))].tolist())
            for year in set(years)
        }
        return [
            Eligibility(year if year != NO_YEAR else None, of_year[year] | {row})
            for year, row in zip(years, queries.tolist(), strict=True)
        ]

    def only(self, chosen: npt.NDArray[np.integer]) -> "TrainingData":
        """Return the training data of some queries.

        Args:
            chosen: The numbers of the queries, rising.
        """
        return TrainingData(
            self.index,
            self.queries[chosen],
            self.pool,
            self.cited.at(chosen),
            self.gold.at(chosen),
        )

    def by_index(self) -> Iterator["IndexPart"]:
        """Yield the part of each index."""
        if not isinstance(self.index, JoinedIndexes):
            yield IndexPart(self.index, 0, np.arange(len(self.queries)), self)
            return
        for number, index in enumerate(self.index.parts):
            start, end = self.index.starts[number : number + 2].tolist()
            chosen = np.flatnonzero((self.queries >= start) & (self.queries < end))
            part = self.only(chosen)
            queries, pool = part.queries - np.int32(start), self.pool[start:end]
            lists = part.cited.shifted(-start), part.gold.shifted(-start)
            data = TrainingData(index, queries, pool, *lists)
            yield IndexPart(index, start, chosen, data)

    def forbidden(self, positives: Lists) -> Pairs:
        """Return the pairs (query, paper) that are never negatives: references, positives, and the query itself."""
        return Pairs(
            np.concatenate(
                [
                    self.queries[self.cited.segment_ids],
                    self.queries[positives.segment_ids],
                    self.queries,
                ]
            ),
            np.concatenate([self.cited.indices, positives.indices, self.queries]),
            self.papers,
        )


@dataclass(frozen=True, slots=True)
class IndexPart:
    """The part of the training data that is of one index."""

    index: IndexFolder
    start: int  # the joined row of its first paper
    numbers: npt.NDArray[np.int64]  # of its queries, shape (queries,), rising
    data: TrainingData  # with the rows of the index


@dataclass(frozen=True)
class DevQueries:
    """A random sample of the dev queries of an index."""

    queries: tuple[Query, ...]
    eligible: tuple[Eligibility, ...]
    gold: tuple[Rows, ...]  # the rows of the papers that each cites

    @classmethod
    def drawn(cls, index: IndexFolder, count: int, rng: np.random.Generator) -> "DevQueries | None":
        """Draw at most `count` dev queries; None if there are none or `count` is 0."""
        evalset = load_dev_task(index) if count else None
        if evalset is None:
            return None
        places = rng.choice(len(evalset.queries), min(count, len(evalset.queries)), replace=False)
        chosen = np.sort(places).tolist()
        queries = tuple(evalset.queries[i] for i in chosen)
        return cls(
            queries,
            tuple(evalset.eligible[i] for i in chosen),
            tuple(index.papers.rows_of(sorted(evalset.qrels[query.id])) for query in queries),
        )


def load_dev_task(index: IndexFolder, split: str = "dev") -> EvalSet | None:
    """Return the queries of a split with their gold; None if none of them cites a paper of the index."""
    try:
        return load_task(index, split)
    except ConfigError:
        return None


def load_training_data(index: TrainingIndex) -> TrainingData:
    """Load the train queries of an index, or of several.

    A dev or test query of one index is no query, positive or negative in another: papers are compared by id and title.

    Raises:
        ConfigError: If an index has no train queries, or they cite no eligible paper.
    """
    if not isinstance(index, JoinedIndexes):
        return _load(index)
    parts: list[TrainingData] = []
    for one in index.parts:
        held = held_out([other for other in index.parts if other is not one], HELD_OUT)
        papers = one.papers
        parts.append(
            _without(_load(one), held.allowed_mask(papers.ids.tolist(), [*papers.titles()]))
        )
    starts = index.starts[:-1].tolist()
    shifted = [part.queries + np.int32(start) for part, start in zip(parts, starts, strict=True)]
    return TrainingData(
        index,
        np.concatenate(shifted),
        np.concatenate([part.pool for part in parts]),
        Lists.joined([p.cited.shifted(start) for p, start in zip(parts, starts, strict=True)]),
        Lists.joined([p.gold.shifted(start) for p, start in zip(parts, starts, strict=True)]),
    )


def _without(data: TrainingData, allowed: Flags) -> TrainingData:
    """Return the data without the papers that are held out in another index."""
    data = replace(data.only(np.flatnonzero(allowed[data.queries])), pool=data.pool & allowed)
    return replace(data, gold=data.gold.where(data.pool[data.gold.indices]))


def _load(index: IndexFolder) -> TrainingData:
    train, held_out = _split_rows(index)
    years = index.papers.years
    pool = np.ones(len(years), np.bool_)
    pool[held_out] = False
    train = train[pool[train]]
    if not len(train):
        raise ConfigError(
            f"{index.path} has no train queries; a model is trained on their citations"
        )
    if (years[train] != NO_YEAR).all():
        pool &= years <= years[train].max()
    graph = index.graph
    cited = _citations(graph, train, np.ones(len(graph.indices), np.bool_))
    gold = _citations(graph, train, gold_citations(graph, years) & pool[graph.indices])
    data = TrainingData(index, train, pool, cited, gold)
    if not len(gold.indices):
        raise ConfigError(
            f"the train queries of {index.path} cite no eligible paper of the index; there is nothing to train on"
        )
    return data


def _split_rows(index: IndexFolder) -> tuple[Rows, Rows]:
    """Return the rows of the train queries and of the dev and test queries."""
    files = [index.splits / f"{name}.ids" for name in SPLITS]
    if missing := [file.name for file in files if not file.is_file()]:
        raise ConfigError(
            f"{index.splits} has no {missing[0]}; rebuild the index: "
            f"citerec index CORPUS --index {index.path} --force"
        )
    return train_rows(index), held_out_rows(index)


def _citations(graph: Graph, queries: Rows, keep: Flags) -> Lists:
    number = np.full(len(graph.indptr) - 1, -1)
    number[queries] = np.arange(len(queries))
    segment_ids = number[graph.citing]
    chosen = (segment_ids >= 0) & keep
    return Lists.of(segment_ids[chosen], np.asarray(graph.indices)[chosen], len(queries))
