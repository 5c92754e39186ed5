"""The memory: every paper that is learned from, as it was read last.

So each step compares each of its papers with all the others, not just with those of the same step: a query is drawn
to everything that it cites and held off everything else, a paper is drawn to all that cite it. Only the papers of
the step are read anew, and only through them the loss is differentiated; the rest is a few steps old.

Source: Wang et al., CVPR 2020, https://arxiv.org/abs/1912.06798 (cross-batch memory), here with one place for each
paper of a corpus in place of a queue, and all of a query's positives at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.train.data import TrainingData
from citerec.train.encoder.config import EncoderTraining
from citerec.train.lists import Flags, Lists, Rows

PLAIN_SHARE = 1  # papers that nobody cites, for each one that cites or is cited


def learners(data: TrainingData, positives: Lists, config: EncoderTraining) -> Rows:
    """Return the papers that are learned from, rising: the queries, their positives, and others at random.

    Args:
        data: The queries, and the pool that others are drawn from.
        positives: Of each query.
        config: At most `memory_papers` of them are taken; the queries and positives come first.
    """
    rng = np.random.default_rng([config.seed, 5])
    linked = np.union1d(data.queries, positives.indices)
    if len(linked) > config.memory_papers:
        linked = np.sort(rng.choice(linked, config.memory_papers, replace=False))
    others = np.setdiff1d(np.flatnonzero(data.pool), linked)
    more = min(len(others), PLAIN_SHARE * len(linked), config.memory_papers - len(linked))
    return np.union1d(linked, rng.choice(others, more, replace=False)).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a step compares with every paper of the memory; places in it, but for `owners`: places in `queries`."""

    queries: npt.NDArray[np.int64]  # shape (queries,)
    owners: npt.NDArray[np.int64]  # the query of each positive, shape (positives,)
    targets: npt.NDArray[np.int64]  # the paper of each positive, same shape
    weights: npt.NDArray[np.float32]  # of each positive, same shape; over all queries they sum to 1
    allowed: Flags  # who stands against whom, shape (queries, papers)


class Memory:
    """Which papers are remembered, and what a step compares with what."""

    def __init__(
        self, data: TrainingData, positives: Lists, rows: Rows, config: EncoderTraining
    ) -> None:
        """Remember the papers at `rows`, which rise."""
        self.rows = rows
        self._data, self._config = data, config
        self._place = np.full(data.papers, -1)
        self._place[rows] = np.arange(len(rows))
        known = self._place[positives.indices] >= 0
        self._positives = positives.where(known)
        self._cited = data.cited.where(self._place[data.cited.indices] >= 0)
        asks = (self._place[data.queries] >= 0) & (self._positives.lengths > 0)
        self._askers = np.flatnonzero(asks)
        share = self._positives.lengths**0.5  # between all queries alike and all citations alike
        self._share = share / max(share[asks].sum(), 1)
        self._citing = Lists.of(  # the queries of which each paper is a positive
            self._place[self._positives.indices],
            self._positives.owners.astype(np.int32),
            len(rows),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return the place of each paper."""
        return self._place[rows]

    def comparison(self, live: Rows) -> Comparison:
        """Return what a step that reads `live` compares, at most `memory_queries` queries.

        First come the queries among `live` and those that one of these is a positive of. The others are drawn
        at random, by the papers of the step, so that the same step draws the same ones; each then weighs for those
        that were not drawn, too, else papers would be pulled by all that cite them and pushed by some of the rest.
        """
        data = self._data
        asked, stands_for = self._asked(live)
        queries = data.queries[asked]
        allowed = data.eligible(queries[:, None], self.rows[None, :])
        cited = self._cited.at(asked)
        allowed[cited.owners, self._place[cited.indices]] = False
        allowed[np.arange(len(asked)), self._place[queries]] = False
        mine = self._positives.at(asked)
        targets = self._place[mine.indices]
        allowed[mine.owners, targets] = True
        share = self._share[asked] * stands_for
        weights = (share / mine.lengths)[mine.owners]
        return Comparison(
            self._place[queries], mine.owners, targets, weights.astype(np.float32), allowed
        )

    def _asked(self, live: Rows) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.float64]]:
        """Return the numbers of the queries of a step, rising, and how many each of them stands for."""
        most = self._config.memory_queries
        if len(self._askers) <= most:
            return self._askers, np.ones(len(self._askers))
        own = np.flatnonzero(np.isin(self._data.queries, live))
        citing = [self._citing[place] for place in self._place[live].tolist()]
        concerned = np.intersect1d(np.concatenate([own, *citing]), self._askers)
        rng = np.random.default_rng([self._config.seed, 6, *live[:8].tolist()])
        rest = np.setdiff1d(self._askers, concerned)
        first = min(len(concerned), max(most // 2, most - len(rest)))
        some = rng.choice(concerned, first, replace=False)
        more = rng.choice(rest, most - first, replace=False)
        asked = np.union1d(some, more)
        of_rest = len(rest) / max(len(more), 1)
        return asked, np.where(np.isin(asked, more), of_rest, len(concerned) / max(len(some), 1))


def over_memory(scores: Any, compared: dict[str, Any], *, temperature: float) -> Any:
    """Return the weighted mean of -log softmax(scores / temperature) over the positives.

    Args:
        scores: How close each query is to each paper, shape (queries, papers).
        compared: `owners`, `targets`, `weights` and `allowed` of a `Comparison`, as tensors.
        temperature: Under 1 sharpens.
    """
    logits = (scores / temperature).masked_fill(~compared["allowed"], float("-inf"))
    owners, targets = compared["owners"], compared["targets"]
    terms = logits.logsumexp(1)[owners] - logits[owners, targets]
    return (compared["weights"] * terms).sum()
