"""The training data of an index: the train queries, the papers that they cite, and the papers that may be negatives.

Dev and test queries are never read in training, neither as queries nor as positives or negatives. Only the references
of the train queries are known.
"""

from dataclasses import dataclass
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
from citerec.rules.held_out import held_out_rows, train_rows
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.types import Eligibility, Query

CHUNK = 4096  # queries whose lists are built at once


@dataclass(frozen=True)
class TrainingData:
    """The train queries of an index, and the papers that may be positives or negatives."""

    index: IndexFolder
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
        """Return which rows are of no later year than their query.

        Args:
            queries: The rows of the queries.
            rows: The rows of the papers; a shape that broadcasts with `queries`.

        Returns:
            Flags in the broadcast shape. A query or a paper without a year is not restricted.
        """
        return no_later(self.years[rows], self.years[queries])

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

    def sampled(self, count: int, seed: int) -> "TrainingData":
        """Return the data of `count` random queries; of all for 0."""
        if not count or count >= len(self.queries):
            return self
        drawn = np.random.default_rng([seed, 5]).choice(len(self.queries), count, replace=False)
        return self.only(np.sort(drawn))

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


def load_training_data(index: IndexFolder) -> TrainingData:
    """Load the train queries of an index.

    Raises:
        ConfigError: If it has no train queries, or they cite no eligible paper.
    """
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
