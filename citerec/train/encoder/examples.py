"""Examples, epoch by epoch: a query, one of its positives and negatives, as row numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.train.data import TrainingData
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.memory import learners
from citerec.train.lists import Lists, Pairs, Rows

MISSING = -1  # where a negative is still to be drawn


@dataclass(frozen=True)
class Examples:
    """Draws the examples of an epoch. The same config and epoch give the same ones, in the same order."""

    data: TrainingData
    config: EncoderTraining
    positives: Lists  # of each query, none empty
    hard: Lists  # negatives of each query
    forbidden: Pairs  # (query, paper) that are no negatives

    @classmethod
    def of(
        cls, data: TrainingData, config: EncoderTraining, positives: Lists, hard: Lists
    ) -> "Examples":
        """Make examples of the queries that have a positive, and for whom there is a negative.

        Raises:
            ConfigError: If there is none.
        """
        pool = int(data.pool.sum())
        known = data.cited.where(data.pool[data.cited.indices]).lengths + positives.lengths
        chosen = np.flatnonzero((positives.lengths > 0) & (known < pool - 1))
        if not len(chosen):
            raise ConfigError(
                f"no train query of {data.index.path} has a positive and a negative; the corpus is too small"
            )
        data, positives = data.only(chosen), positives.at(chosen)
        hard, forbidden = hard.at(chosen), data.forbidden(positives)
        hard = hard.where(~forbidden.holds(data.queries[hard.owners], hard.indices))
        return cls(data, config, positives, hard, forbidden)

    @cached_property
    def learners(self) -> Rows:
        """The papers that are learned from, where there is a memory."""
        return learners(self.data, self.positives, self.config)

    def __len__(self) -> int:
        """Return how many there are in an epoch."""
        most = self.config.examples
        if self.config.loss is Loss.MEMORY:
            return len(self.learners)
        if self.config.loss is Loss.TRIPLET:
            return most * len(self.data.queries)
        return int(np.minimum(self.positives.lengths, most).sum())

    def epoch(self, number: int) -> Rows:
        """Return the examples of an epoch, shape (examples, 2 + negatives): query, positive, negatives.

        Those over the memory are single papers, shape (papers, 1).
        """
        drawn = number if self.config.fresh else 0
        rng = np.random.default_rng([self.config.seed, drawn])
        if self.config.loss is Loss.MEMORY:
            found = self.learners[:, None]
        else:
            found = self._triples(rng) if self.config.loss is Loss.TRIPLET else self._pairs(rng)
        order = np.random.default_rng([self.config.seed, number, 1]).permutation(len(found))
        return found[order]

    def _triples(self, rng: np.random.Generator) -> Rows:
        """Draw `examples` triples of each query; positives repeat where they are fewer."""
        count = self.config.examples
        positives = self.positives.drawn(count, rng, repeat=True)
        negatives = np.full_like(positives, MISSING)
        negatives[:, : self.config.hard] = self.hard.drawn(self.config.hard, rng, repeat=False)
        queries = np.repeat(self.data.queries, count)
        negatives = self._completed(queries, negatives.reshape(-1, 1), rng)
        return np.column_stack([queries, positives.ravel(), negatives])

    def _pairs(self, rng: np.random.Generator) -> Rows:
        """Draw at most `examples` pairs of each query, no positive twice, with `hard` negatives each."""
        count, hard = self.config.examples, self.config.hard
        positives = self.positives.drawn(count, rng, repeat=False)
        negatives = self.hard.drawn(count * hard, rng, repeat=False)
        there = positives.ravel() != MISSING
        queries = np.repeat(self.data.queries, count)[there]
        negatives = self._completed(queries, negatives.reshape(-1, hard)[there], rng)
        return np.column_stack([queries, positives.ravel()[there], negatives])

    def _completed(self, queries: Rows, negatives: Rows, rng: np.random.Generator) -> Rows:
        """Put easy negatives where hard ones are missing: random papers of the pool."""
        return easy(queries, negatives, self.data.pool, self.forbidden, rng)


def easy(
    queries: Rows,
    negatives: Rows,
    pool: npt.NDArray[np.bool_],
    forbidden: Pairs,
    rng: np.random.Generator,
) -> Rows:
    """Put a random paper of the pool where `negatives` are missing, shape (len(queries), negatives).

    A paper that must not be one is drawn again; each query must have one that may.
    """
    papers = np.flatnonzero(pool).astype(np.int32)
    rows, columns = np.nonzero(negatives == MISSING)
    while len(rows):
        drawn = rng.choice(papers, len(rows))
        bad = forbidden.holds(queries[rows], drawn)
        negatives[rows[~bad], columns[~bad]] = drawn[~bad]
        rows, columns = rows[bad], columns[bad]
    return negatives
