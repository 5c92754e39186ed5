"""The training data of an index: the train queries, the papers that they cite, and the papers that may be negatives.

Dev and test queries are never read in training, neither as queries nor as positives or negatives. Only the references
of the train queries are known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluation.protocol import load_eval_set
from citerec.files.arrays import (
    Counts,
    Flags,
    Floats,
    Integers,
    Numbers,
    Rows,
    batched,
)
from citerec.index.folder import IndexFolder
from citerec.index.graph import Lists
from citerec.index.papers import NO_YEAR, no_later
from citerec.retrieve.fuse import sigmoid
from citerec.rules.held_out import HeldOut, held_out_rows, train_rows
from citerec.stages import FirstStage
from citerec.types import CandidateSet, Eligibility, Progress, Query, QueryBatch

F1_DEPTH = 20
F1 = 1  # the column of F1 in `query_measures`
BLOCK = 256  # queries searched at once


class Pairs:
    """A set of pairs (query, paper) with a vectorised membership test."""

    def __init__(self, parts: Iterable[tuple[Integers, Integers]], papers: int) -> None:
        """Take the pairs of several parts; `papers` is more than any paper."""
        self._papers = papers
        # a key of no pair, so that there is a last one
        none = np.array([np.iinfo(np.int64).min])
        self._keys = np.unique(
            np.concatenate([none, *(self._key(*part) for part in parts)])
        )

    def holds(self, queries: Integers | int, papers: Integers) -> Flags:
        """Return which pairs are in the set, in the broadcast shape of `queries` and `papers`."""
        keys = self._key(queries, papers)
        at = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[at] == keys

    def _key(self, queries: Integers | int, papers: Integers) -> Counts:
        return np.asarray(queries, np.int64) * self._papers + papers


@dataclass(frozen=True)
class TrainingData:
    """The train queries of an index, and the papers that may be positives or negatives."""

    index: IndexFolder
    queries: Rows  # shape (queries,), rising
    allowed: Flags  # papers that may be positives or negatives, shape (papers,)
    cited: Lists  # the references of each query, of any year
    gold: Lists  # the references that are positives: allowed and of no later year

    @property
    def papers(self) -> int:
        """The number of papers in the index."""
        return len(self.allowed)

    @cached_property
    def links(self) -> Any:
        """The citations of the train queries of allowed papers, as a sparse matrix, shape (papers, papers)."""
        from scipy.sparse import csr_array

        references = self.cited.where(self.allowed[self.cited.indices])
        citing = self.queries[references.segment_ids]
        ones = np.ones(len(citing), np.int32)
        return csr_array(
            (ones, (citing, references.indices)), shape=(self.papers, self.papers)
        )

    def labelled(self) -> "LabelledQueries":
        """Return the queries; their candidates are allowed papers of no later year, not themselves."""
        papers = self.index.papers
        all_years = papers.years
        years = all_years[self.queries].tolist()
        hidden = np.flatnonzero(~self.allowed)
        rows = self.queries.tolist()
        of_year = {  # few: dev and test queries are the newest papers
            year: frozenset(
                hidden[no_later(all_years[hidden], np.int32(year))].tolist()
            )
            for year in set(years)
        }
        rules = [
            Eligibility(year if year != NO_YEAR else None, of_year[year] | {row})
            for year, row in zip(years, rows, strict=True)
        ]
        texts = papers.at(rows)
        gold = [self.gold[i] for i in range(len(rows))]
        return LabelledQueries([Query.of(texts[row]) for row in rows], rules, gold=gold)

    def sampled(self, count: int, seed: int) -> "TrainingData":
        """Return the data of `count` random queries; of all for 0."""
        if not count or count >= len(self.queries):
            return self
        drawn = np.random.default_rng([seed, 5]).choice(
            len(self.queries), count, replace=False
        )
        return self.only(np.sort(drawn))

    def only(self, chosen: Integers) -> "TrainingData":
        """Return the data of some queries, by number; `chosen` rises."""
        queries = self.queries[chosen]
        cited = self.cited.at(chosen)
        gold = self.gold.at(chosen)
        return TrainingData(self.index, queries, self.allowed, cited, gold)

    def pairs(self) -> Pairs:
        """Return the pairs of each query with its references and itself."""
        cited = self.queries[self.cited.segment_ids], self.cited.indices
        return Pairs([cited, (self.queries, self.queries)], self.papers)


def load_training_data(index: IndexFolder) -> TrainingData:
    """Load the train queries of an index; a ConfigError if there are none, or they cite no eligible paper."""
    years = index.papers.years
    train = train_rows(index)
    allowed = np.ones(len(years), np.bool_)
    allowed[held_out_rows(index)] = False
    allowed[index.papers.retracted] = False
    train = train[allowed[train]]
    if not len(train):
        raise ConfigError(
            f"{index.path} has no train queries; a model is trained on their citations"
        )
    if (years[train] != NO_YEAR).all():
        allowed &= years <= years[train].max()
    cited = index.graph.at(train)
    is_earlier = no_later(years[cited.indices], years[train][cited.segment_ids])
    gold = cited.where(is_earlier & allowed[cited.indices])
    if not len(gold.indices):
        raise ConfigError(
            f"the train queries of {index.path} cite no eligible paper of the index; there is nothing to train on"
        )
    return TrainingData(index, train, allowed, cited, gold)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledQueries(QueryBatch):
    """Queries of one split with their references."""

    gold: Sequence[Rows] = field(kw_only=True)  # per query, the rows of its references


def dev_queries(
    index: IndexFolder,
    count: int | None,
    seed: int,
    *,
    held: HeldOut | None = None,
    split: str = "dev",
) -> LabelledQueries | None:
    """Draw `count` queries, or all, of a split that cite a paper and are not held out elsewhere; None without one."""
    try:
        eval_set = load_eval_set(index, split)
    except ConfigError:
        return None
    queries = eval_set.queries
    usable = np.arange(len(queries))
    if held:
        titles = [query.title for query in queries]
        usable = np.flatnonzero(
            held.allowed_mask([query.id for query in queries], titles)
        )
    rng = np.random.default_rng([seed, 7])
    chosen = np.sort(rng.permutation(usable)[:count]).tolist()
    gold = [index.papers.rows_of(sorted(eval_set.qrels[query.id])) for query in queries]
    every = LabelledQueries(queries, eval_set.eligible, gold=gold)
    return every.at(chosen) if chosen else None


def candidate_sets(
    data: TrainingData, first_stage: FirstStage, depth: int, progress: Progress
) -> Iterator[CandidateSet]:
    """Yield what the first stage retrieves for each train query."""
    count = len(data.queries)
    for numbers in batched(np.arange(count), BLOCK):
        block = data.only(numbers).labelled()
        yield from first_stage.candidates(block.queries, block.eligible, depth)
        progress("searching", int(numbers[-1]) + 1, count)


# scores and labels of the candidates of one query, shape (candidates,), and how many papers it cites, retrieved or not
LabelledScores = tuple[Numbers, Flags, int]


def dev_measures(lists: Iterable[LabelledScores]) -> dict[str, float]:
    """Return the means of `query_measures` over queries by name, `mrr` and `f1`; 0 without one."""
    measured = query_measures(lists)
    mrr, f1 = measured.mean(0).tolist() if len(measured) else (0.0, 0.0)
    return {"mrr": mrr, "f1": f1}


def query_measures(lists: Iterable[LabelledScores]) -> Floats:
    """Return of each query 1 / rank of its first cited candidate, and F1 at 20, shape (queries, 2).

    F1 is 2 * cited candidates among the first 20 / (20 + papers that the query cites). Of equal scores, those of cited
    candidates come last: a model that tells no candidates apart gains nothing.
    """
    measured: list[tuple[float, float]] = []
    for scores, cited, gold in lists:
        ranked = cited[np.lexsort((cited, -scores))]
        reciprocal_rank = 1 / (int(ranked.argmax()) + 1) if ranked.any() else 0.0
        measured.append(
            (reciprocal_rank, 2 * int(ranked[:F1_DEPTH].sum()) / (F1_DEPTH + gold))
        )
    return np.array(measured, np.float64).reshape(-1, 2)


def platt(scores: Numbers, cited: Flags) -> tuple[float, float]:
    """Fit the probability sigmoid(scale * score + offset) to what is cited (Platt scaling), both shape (papers,).

    Returns:
        Scale (above 0) and offset; (1, 0) if all papers or none are cited. The targets are smoothed as in the source.

    Source: Platt, Advances in Large Margin Classifiers, 1999.
    """
    positives = int(cited.sum())
    negatives = len(cited) - positives
    if not positives or not negatives:
        return 1.0, 0.0
    spread = max(float(np.std(scores)), 1e-6)
    centre = float(np.mean(scores))
    x = (scores.astype(np.float64) - centre) / spread
    targets = np.where(cited, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    offset, [by] = logistic(x[:, None], targets, float(np.log(positives / negatives)))
    return by / spread, offset - by / spread * centre


def logistic(
    x: Numbers, targets: Numbers, offset: float, strength: float = 0
) -> tuple[float, list[float]]:
    """Fit the probability sigmoid(x @ weights + offset) to targets in [0, 1]; `x` has the shape (papers, weights).

    Args:
        x: What the weights multiply.
        targets: Of each paper.
        offset: Where the search starts; it is not penalised.
        strength: The penalty is strength / 2 * the sum of (weight - 1)^2, so 1 is a weight's value without papers.

    Returns:
        Offset and weights. The first weight is above 0, so that a model worse than chance is not inverted.
    """
    from scipy.optimize import minimize

    def loss(at: Numbers) -> tuple[float, Numbers]:
        z = x @ at[1:] + at[0]
        moved = at[1:] - 1
        gap = (sigmoid(z) - targets) / len(x)
        value = np.mean(
            np.logaddexp(0, z) - targets * z
        ) + strength / 2 * moved @ moved / len(x)
        return float(value), np.array(
            [gap.sum(), *(gap @ x + strength * moved / len(x))]
        )

    start = np.array([offset, *np.ones(x.shape[1])])
    bounds = [(None, None), (1e-3, None), *[(None, None)] * (x.shape[1] - 1)]
    first, *weights = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds
    ).x.tolist()
    return first, weights
