"""Examples, epoch by epoch: a query, one of its positives and negatives, as row numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.train.data import TrainingData
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.memory import learners
from citerec.train.lists import Flags, Lists, Pairs, Rows

MIXED = 7  # begins the streams of chance of the sources that are mixed
MISSING = -1  # where a negative is still to be drawn


@dataclass(frozen=True)
class Examples:
    """Draws the examples of an epoch. The same config and epoch give the same ones, in the same order."""

    data: TrainingData
    config: EncoderTraining
    positives: Lists  # of each query, none empty
    hard: Lists  # negatives of each query
    forbidden: Pairs  # (query, paper) that are no negatives
    sources: tuple["Examples", ...] = ()  # of which these are mixed

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
        asked = _asked(len(data.queries), config)
        chosen = np.flatnonzero((positives.lengths > 0) & (known < pool - 1) & asked)
        if not len(chosen):
            raise ConfigError(
                f"no train query of {data.index.path} has a positive and a negative; the corpus is too small"
            )
        data, positives = data.only(chosen), positives.at(chosen)
        hard, forbidden = hard.at(chosen), data.forbidden(positives)
        hard = hard.where(~forbidden.holds(data.queries[hard.owners], hard.indices))
        return cls(data, config, positives, hard, forbidden)

    @classmethod
    def mixed(
        cls, data: TrainingData, config: EncoderTraining, sources: Sequence["Examples"]
    ) -> "Examples":
        """Mix the triples of several sources: of each triple the source is drawn, then one of its triples.

        Each source has queries, positives and negatives of its own. An epoch is as long as if every query that any
        source asks were asked once; a source that has fewer triples than its share repeats them.

        Args:
            data: The queries that the sources have theirs from.
            config: `source_weights` says how often each source is drawn.
            sources: In the order of the weights.
        """
        asked = np.unique(np.concatenate([source.data.queries for source in sources]))
        data = data.only(np.flatnonzero(np.isin(data.queries, asked)))
        positives = _merged(data.queries, [(s.data.queries, s.positives) for s in sources])
        hard = _merged(data.queries, [(s.data.queries, s.hard) for s in sources])
        return cls(data, config, positives, hard, data.forbidden(positives), tuple(sources))

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
        found = self._drawn(number if self.config.fresh else 0)
        order = np.random.default_rng([self.config.seed, number, 1]).permutation(len(found))
        return found[order]

    def _drawn(self, number: int, *stream: int) -> Rows:
        """Draw the examples of an epoch, in the order of the queries; each stream of chance draws others."""
        rng = np.random.default_rng([self.config.seed, number, *stream])
        if self.sources:
            return self._mixed(number, rng)
        if self.config.loss is Loss.MEMORY:
            return self.learners[:, None]
        return self._triples(rng) if self.config.loss is Loss.TRIPLET else self._pairs(rng)

    def _mixed(self, number: int, rng: np.random.Generator) -> Rows:
        """Draw the source of each triple, then as many triples of each source."""
        weights = np.array(self.config.source_weights or [1] * len(self.sources), np.float64)
        of = rng.choice(len(self.sources), len(self), p=weights / weights.sum())
        parts: list[Rows] = []
        for place, source in enumerate(self.sources):
            triples = source._drawn(number, MIXED, place)
            parts.append(triples[np.resize(rng.permutation(len(triples)), np.sum(of == place))])
        return np.concatenate(parts)

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


def _asked(queries: int, config: EncoderTraining) -> Flags:
    """Return which queries are asked; from whatever source they learn, they are the same for the same seed."""
    order = np.random.default_rng([config.seed, 8]).permutation(queries)
    return order < (config.queries or queries)


def _merged(queries: Rows, parts: Sequence[tuple[Rows, Lists]]) -> Lists:
    """Put the lists of several sources together, one for each of `queries`, which hold those of all sources."""
    owners = [np.searchsorted(queries, mine[lists.owners]) for mine, lists in parts]
    rows = [lists.indices for _, lists in parts]
    return Lists.of(np.concatenate(owners), np.concatenate(rows), len(queries))


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
