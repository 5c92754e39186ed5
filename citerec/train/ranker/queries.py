"""The queries that a learning-to-rank model is trained and measured on.

Corpora may share papers: dev and test queries of one index are not train queries of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rules.held_out import HeldOut
from citerec.train.data import TrainingData, load_dev_task, load_training_data
from citerec.train.lists import Rows
from citerec.train.ranker.config import RankerTraining
from citerec.types import Query, QueryBatch


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
