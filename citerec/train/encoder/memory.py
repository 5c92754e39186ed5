"""The memory: the last vector of every training paper.

Each step compares its queries with all papers of the memory, not only with those of the step. Only the papers of the
step are encoded again, and only they receive gradients; the other vectors are a few steps old.

Source: Wang et al., CVPR 2020, https://arxiv.org/abs/1912.06798 (cross-batch memory); here with one slot per paper in
place of a queue, and all positives of a query at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists, Rows

MEMORY_PAPERS = 16_384  # papers at most
LINEAR_PAPERS = 200_000  # of a linear map, whose base model gives each paper its vector once
MEMORY_QUERIES = 4096  # queries compared in a step at most
UNLINKED_RATIO = 1  # papers without a citation for each one that cites or is cited


def learners(data: TrainingData, positives: Lists, *, seed: int, most: int) -> Rows:
    """Return the papers of the memory, rising: the queries, their positives, and random others.

    Several indexes share the memory equally; a small one leaves its room to the larger ones.

    Args:
        data: The queries and the pool of other papers.
        positives: Of each query.
        seed: Of the sample.
        most: How many papers are taken at most; queries and positives come first.
    """
    rng = np.random.default_rng([seed, 5])
    parts = [*data.by_index()]
    lists = [positives.at(part.numbers) for part in parts]
    queries = [data.queries[part.numbers] for part in parts]
    linked = [np.union1d(*pair) for pair in zip(queries, (of.indices for of in lists), strict=True)]
    order = np.argsort([len(rows) for rows in linked], kind="stable").tolist()
    chosen: list[Rows] = []
    room = most
    for left, number in enumerate(order):
        share = room // (len(order) - left)
        rows = linked[number]
        if len(rows) > share:
            whole = _whole_lists(queries[number], lists[number], share, rng)
            rest = np.setdiff1d(rows, whole)
            rows = np.union1d(whole, rng.choice(rest, share - len(whole), replace=False))
        pool = parts[number].start + np.flatnonzero(parts[number].data.pool)
        others = np.setdiff1d(pool, linked[number])
        more = min(len(others), UNLINKED_RATIO * len(rows), share - len(rows))
        chosen += [rows, rng.choice(others, more, replace=False)]
        room -= len(rows) + more
    return np.unique(np.concatenate(chosen)).astype(np.int32)


def _whole_lists(queries: Rows, positives: Lists, most: int, rng: np.random.Generator) -> Rows:
    """Return queries with all of their positives, drawn until at most `most` papers are chosen."""
    taken: set[int] = set()
    for number in rng.permutation(len(queries)).tolist():
        papers = {int(queries[number]), *positives[number].tolist()} - taken
        if len(taken) + len(papers) > most:
            break
        taken |= papers
    return np.array(sorted(taken), np.int32)


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """The queries and papers that a step compares; papers are slots of the memory."""

    queries: npt.NDArray[np.int64]  # slots, shape (queries,)
    # The number of the query of each positive in `queries`, shape (positives,).
    segment_ids: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]  # the place of each positive among the papers, same shape
    weights: npt.NDArray[np.float32]  # of each positive, same shape; the sum over all queries is 1
    allowed: Flags  # the papers of each query's softmax, shape (queries, papers)


class Memory:
    """The papers of the memory, and the comparison of each step."""

    def __init__(self, data: TrainingData, positives: Lists, rows: Rows, *, seed: int) -> None:
        """Use the papers at `rows`, which rise."""
        self.rows = rows
        self._data, self._seed = data, seed
        self._slot_of = np.full(data.papers, -1)
        self._slot_of[rows] = np.arange(len(rows))
        in_memory = self._slot_of[positives.indices] >= 0
        self._positives = positives.where(in_memory)
        self._cited = data.cited.where(self._slot_of[data.cited.indices] >= 0)
        usable = (self._slot_of[data.queries] >= 0) & (self._positives.lengths > 0)
        self.usable = np.flatnonzero(usable)  # the numbers of the queries that can be compared
        # Between equal weights for queries and equal weights for citations.
        share = self._positives.lengths**0.5
        self._share = share / max(share[usable].sum(), 1)
        self._citing = Lists.of(  # for each slot, the queries with this positive
            self._slot_of[self._positives.indices],
            self._positives.segment_ids.astype(np.int32),
            len(rows),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def slots(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Return the slot of each paper; -1 for a paper outside the memory."""
        return self._slot_of[rows]

    def comparison(self, live: Rows) -> MemoryComparison:
        """Return the comparison of a step that encodes the papers `live`: at most `MEMORY_QUERIES` queries.

        Half of the queries are among `live` or have one of these papers as a positive. The others are drawn at random
        with a seed made from `live`, so the same step draws the same ones. Each sampled query is weighted by the number
        of queries that it represents.
        """
        return self.of_queries(*self._step_queries(live))

    def of_queries(
        self,
        chosen: npt.NDArray[np.integer],
        represented: npt.NDArray[np.float64] | None = None,
        papers: npt.NDArray[np.int64] | None = None,
    ) -> MemoryComparison:
        """Return the comparison of some queries with papers of the memory.

        Args:
            chosen: The numbers of the queries, rising.
            represented: How many queries each stands for, same shape; None for 1.
            papers: The slots of the papers, rising, with all positives of the queries; None for all. Targets are
                places among them.
        """
        data = self._data
        queries = data.queries[chosen]
        rows = self.rows if papers is None else self.rows[papers]
        allowed = data.eligible(queries[:, None], rows[None, :])
        place = np.full(data.papers, -1)
        place[rows] = np.arange(len(rows))
        cited = self._cited.at(chosen)
        _forbid(allowed, cited.segment_ids, place[cited.indices])
        _forbid(allowed, np.arange(len(chosen)), place[queries])
        positives = self._positives.at(chosen)
        targets = place[positives.indices]
        allowed[positives.segment_ids, targets] = True
        share = self._share[chosen] * (1 if represented is None else represented)
        weights = (share / positives.lengths)[positives.segment_ids]
        return MemoryComparison(
            self._slot_of[queries],
            positives.segment_ids,
            targets,
            weights.astype(np.float32),
            allowed,
        )

    def _step_queries(self, live: Rows) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.float64]]:
        """Return the numbers of the queries of a step, rising, and how many queries each represents."""
        most = MEMORY_QUERIES
        if len(self.usable) <= most:
            return self.usable, np.ones(len(self.usable))
        own = np.flatnonzero(np.isin(self._data.queries, live))
        citing = [self._citing[place] for place in self._slot_of[live].tolist()]
        concerned = np.intersect1d(np.concatenate([own, *citing]), self.usable)
        rng = np.random.default_rng([self._seed, 6, *live[:8].tolist()])
        rest = np.setdiff1d(self.usable, concerned)
        first = min(len(concerned), max(most // 2, most - len(rest)))
        some = rng.choice(concerned, first, replace=False)
        more = rng.choice(rest, most - first, replace=False)
        chosen = np.union1d(some, more)
        rest_weight = len(rest) / max(len(more), 1)
        return chosen, np.where(
            np.isin(chosen, more), rest_weight, len(concerned) / max(len(some), 1)
        )


def _forbid(allowed: Flags, queries: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> None:
    """Clear the flags of pairs of a query and a paper; a paper that is not compared has the place -1."""
    is_compared = places >= 0
    allowed[queries[is_compared], places[is_compared]] = False
