"""The examples of each epoch as row numbers: a query, one of its positives, and negatives."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.train.data import TrainingData
from citerec.train.encoder.config import EncoderLoss, EncoderTraining
from citerec.train.encoder.memory import LINEAR_PAPERS, MEMORY_PAPERS, learners
from citerec.train.lists import Flags, Lists, Pairs, Rows

MIXED = 7  # seed prefix of the mixed sources
MISSING = -1  # marks a negative that is still to be drawn


@dataclass(frozen=True)
class EncoderExamples:
    """Draws the examples of an epoch; the same settings and epoch give the same examples in the same order."""

    data: TrainingData
    config: EncoderTraining
    positives: Lists  # of each query; no list is empty
    hard: Lists  # hard negatives of each query
    forbidden: Pairs  # (query, paper) that are never negatives
    sources: tuple["EncoderExamples", ...] = ()  # the sources that are mixed, if any

    @classmethod
    def of(
        cls, data: TrainingData, config: EncoderTraining, positives: Lists, hard: Lists
    ) -> "EncoderExamples":
        """Make examples of the queries that have a positive and a possible negative.

        Raises:
            ConfigError: If there is no such query.
        """
        pool = int(data.pool.sum())
        excluded = data.cited.where(data.pool[data.cited.indices]).lengths + positives.lengths
        sampled = _sampled_queries(len(data.queries), config)
        chosen = np.flatnonzero((positives.lengths > 0) & (excluded < pool - 1) & sampled)
        if not len(chosen):
            raise ConfigError(
                f"no train query of {data.index.path} has a positive and a negative; use a larger corpus"
            )
        data, positives = data.only(chosen), positives.at(chosen)
        hard, forbidden = hard.at(chosen), data.forbidden(positives)
        hard = hard.where(~forbidden.holds(data.queries[hard.segment_ids], hard.indices))
        return cls(data, config, positives, hard, forbidden)

    @classmethod
    def mixed(
        cls, data: TrainingData, config: EncoderTraining, sources: Sequence["EncoderExamples"]
    ) -> "EncoderExamples":
        """Mix the triplets of several sources: draw a source for each triplet, then one of its triplets.

        Each source has its own queries, positives and negatives. An epoch has `examples` triplets for every query of
        any source; a source with fewer triplets than its share repeats them.

        Args:
            data: The train queries; those of the sources are a subset.
            config: `source_weights` are the shares of the sources.
            sources: In the order of the weights.
        """
        query_rows = np.unique(np.concatenate([source.data.queries for source in sources]))
        data = data.only(np.flatnonzero(np.isin(data.queries, query_rows)))
        positives = _merged(data.queries, [(s.data.queries, s.positives) for s in sources])
        hard = _merged(data.queries, [(s.data.queries, s.hard) for s in sources])
        return cls(data, config, positives, hard, data.forbidden(positives), tuple(sources))

    @cached_property
    def learners(self) -> Rows:
        """The papers of the memory; see `memory.learners`."""
        most = LINEAR_PAPERS if self.config.linear else MEMORY_PAPERS
        return learners(self.data, self.positives, seed=self.config.seed, most=most)

    @property
    def used_queries(self) -> int:
        """How many train queries are learned from: those that a full memory leaves out are not."""
        if self.config.loss is not EncoderLoss.MEMORY:
            return len(self.data.queries)
        positives = self.positives.where(np.isin(self.positives.indices, self.learners))
        return int(np.sum((positives.lengths > 0) & np.isin(self.data.queries, self.learners)))

    def __len__(self) -> int:
        """Return the number of examples in an epoch."""
        most = self.config.examples
        if self.config.loss is EncoderLoss.MEMORY:
            return len(self.learners)
        if self.config.loss is EncoderLoss.TRIPLET:
            return most * len(self.data.queries)
        return int(np.minimum(self.positives.lengths, most).sum())

    def epoch(self, number: int) -> Rows:
        """Return the examples of an epoch, shape (examples, 2 + negatives): query, positive, negatives.

        With the memory loss an example is a single paper: shape (papers, 1).
        """
        drawn = self._drawn(number if self.config.fresh else 0)
        order = np.random.default_rng([self.config.seed, number, 1]).permutation(len(drawn))
        return drawn[order]

    def _drawn(self, number: int, *stream: int) -> Rows:
        """Draw the examples of an epoch in the order of the queries; `stream` separates the seeds of mixed sources."""
        rng = np.random.default_rng([self.config.seed, number, *stream])
        if self.sources:
            return self._mixed(number, rng)
        if self.config.loss is EncoderLoss.MEMORY:
            return self.learners[:, None]
        return self._triplets(rng) if self.config.loss is EncoderLoss.TRIPLET else self._pairs(rng)

    def _mixed(self, epoch: int, rng: np.random.Generator) -> Rows:
        """Draw the source of each triplet, then the triplets of each source."""
        weights = np.array(self.config.source_weights or [1] * len(self.sources), np.float64)
        source_of = rng.choice(len(self.sources), len(self), p=weights / weights.sum())
        parts: list[Rows] = []
        for place, source in enumerate(self.sources):
            triples = source._drawn(epoch, MIXED, place)
            parts.append(
                triples[np.resize(rng.permutation(len(triples)), np.sum(source_of == place))]
            )
        return np.concatenate(parts)

    def _triplets(self, rng: np.random.Generator) -> Rows:
        """Draw `examples` triplets of each query; positives repeat if there are fewer."""
        count = self.config.examples
        positives = self.positives.drawn(count, rng, repeat=True)
        negatives = np.full_like(positives, MISSING)
        negatives[:, : self.config.hard] = self.hard.drawn(self.config.hard, rng, repeat=False)
        queries = np.repeat(self.data.queries, count)
        negatives = self._completed(queries, negatives.reshape(-1, 1), rng)
        return np.column_stack([queries, positives.ravel(), negatives])

    def _pairs(self, rng: np.random.Generator) -> Rows:
        """Draw at most `examples` distinct positives of each query, with `hard` negatives each."""
        count, hard = self.config.examples, self.config.hard
        positives = self.positives.drawn(count, rng, repeat=False)
        negatives = self.hard.drawn(count * hard, rng, repeat=False)
        filled = positives.ravel() != MISSING
        queries = np.repeat(self.data.queries, count)[filled]
        negatives = self._completed(queries, negatives.reshape(-1, hard)[filled], rng)
        return np.column_stack([queries, positives.ravel()[filled], negatives])

    def _completed(self, queries: Rows, negatives: Rows, rng: np.random.Generator) -> Rows:
        """Replace missing hard negatives by random papers of the pool."""
        return easy(queries, negatives, self.data.pool, self.forbidden, rng)


def _sampled_queries(queries: int, config: EncoderTraining) -> Flags:
    """Return which queries are used; the sample depends on the seed only, not on the source."""
    order = np.random.default_rng([config.seed, 8]).permutation(queries)
    return order < (config.queries or queries)


def _merged(queries: Rows, parts: Sequence[tuple[Rows, Lists]]) -> Lists:
    """Merge the lists of several sources into one list per query; `queries` contains those of all sources."""
    segment_ids = [
        np.searchsorted(queries, own_queries[lists.segment_ids]) for own_queries, lists in parts
    ]
    rows = [lists.indices for _, lists in parts]
    return Lists.of(np.concatenate(segment_ids), np.concatenate(rows), len(queries))


def easy(
    queries: Rows,
    negatives: Rows,
    pool: npt.NDArray[np.bool_],
    forbidden: Pairs,
    rng: np.random.Generator,
) -> Rows:
    """Replace `MISSING` negatives by random papers of the pool; `negatives` has shape (len(queries), negatives).

    Forbidden papers are drawn again; each query must have at least one allowed paper.
    """
    papers = np.flatnonzero(pool).astype(np.int32)
    rows, columns = np.nonzero(negatives == MISSING)
    while len(rows):
        drawn = rng.choice(papers, len(rows))
        bad = forbidden.holds(queries[rows], drawn)
        negatives[rows[~bad], columns[~bad]] = drawn[~bad]
        rows, columns = rows[bad], columns[bad]
    return negatives
