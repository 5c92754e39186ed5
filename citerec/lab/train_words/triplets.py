"""Triplets for Citeomatic's embedding: a query, a cited paper, and a negative of one of three kinds.

The more likely a kind of negative is cited, the smaller its margin.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.lab.words.model import Vectors
from citerec.train.data import TrainingData
from citerec.train.encoder.graph import cited_by_cited
from citerec.train.lists import Lists, Pairs, Rows

RANDOM, NEAR, SECOND = 0.3, 0.2, 0.1  # margins: random paper, neighbour, reference of a reference
BOOST, SLOPE = 0.02, 0.01  # maximum and slope of the score bonus of cited papers
NEIGHBOURS = 50  # of a query, that negatives are drawn from
BLOCK = 1024  # queries whose neighbours are searched at once
PART = 65_536  # papers among which they are

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Triplets:
    """Rows of papers and margins, all of shape (triplets,)."""

    queries: Places
    positives: Places
    negatives: Places
    margins: npt.NDArray[np.float32]


@dataclass(frozen=True)
class Drawer:
    """Draws the triplets of an epoch.

    One rule of the published code is left out: a neighbour that shares more words with the query than all of its
    references is no negative.

    Source: Bhagavatula et al., NAACL 2018, section 3.1, https://arxiv.org/abs/1802.08301.
    """

    data: TrainingData
    count: int  # triplets of each citation
    seed: int

    @cached_property
    def second(self) -> Lists:
        """The references of each query's references, without its own."""
        return cited_by_cited(self.data, seed=self.seed)

    @cached_property
    def forbidden(self) -> Pairs:
        """The pairs that are never negatives."""
        return self.data.forbidden(self.data.gold)

    @cached_property
    def boost(self) -> npt.NDArray[np.float64]:
        """The bonus of each paper by its citations from train papers, shape (papers,)."""
        cited = np.asarray(self.data.links.sum(0)).ravel()
        return BOOST / (1 + np.exp(-SLOPE * cited))

    def draw(self, near: Lists | None, rng: np.random.Generator) -> Triplets:
        """Draw triplets in random order, a third of each kind; neighbours only if `near` is given.

        Args:
            near: The neighbours of each query; None before there are vectors.
            rng: The random generator.
        """
        gold = self.data.gold
        segment_ids = np.repeat(gold.segment_ids, self.count)
        positives = np.repeat(gold.indices, self.count).astype(np.int64)
        kinds = np.tile(np.arange(self.count) % 3, len(gold.indices))
        pool = np.flatnonzero(self.data.pool)
        negatives = rng.choice(pool, len(segment_ids))
        margins = np.full(len(segment_ids), RANDOM)
        for kind, lists, margin in ((1, self.second, SECOND), (2, near, NEAR)):
            if lists is not None:
                _replace(negatives, margins, segment_ids, kinds == kind, lists, margin, rng)
        queries = self.data.queries[segment_ids].astype(np.int64)
        margins = margins + self.boost[positives] - self.boost[negatives]
        free = np.flatnonzero(~self.forbidden.holds(queries, negatives))
        order = rng.permutation(free)
        return Triplets(
            queries[order],
            positives[order],
            negatives[order],
            margins[order].astype(np.float32),
        )

    def near(self, vectors: Vectors) -> Lists:
        """Return the nearest papers of the pool to each query that it does not cite.

        Args:
            vectors: Of all papers, of unit length, shape (papers, dim).
        """
        pool = np.flatnonzero(self.data.pool)
        queries = self.data.queries
        count = min(NEIGHBOURS, len(pool))
        parts: list[Lists] = []
        for first in range(0, len(queries), BLOCK):
            rows: Rows = queries[first : first + BLOCK]
            best = nearest(vectors, rows, pool, count)
            neighbours = Lists.of(np.repeat(np.arange(len(rows)), count), best.ravel(), len(rows))
            cited = self.forbidden.holds(rows[neighbours.segment_ids], neighbours.indices)
            parts.append(neighbours.where(~cited))
        return Lists.joined(parts)


def nearest(vectors: Vectors, rows: Rows, pool: Places, count: int) -> Places:
    """Return the papers of the pool with the highest inner product for each row, shape (rows, count).

    The pool is searched in parts: the scores of a million papers and a thousand queries take 4 GB.

    Args:
        vectors: Of all papers, shape (papers, dim).
        rows: The query papers.
        pool: The candidates, at least `count`.
        count: Neighbours per row.
    """
    best_scores, best = np.zeros((len(rows), 0), np.float32), np.zeros((len(rows), 0), np.int64)
    for first in range(0, len(pool), PART):
        part = pool[first : first + PART]
        scores = np.hstack([best_scores, vectors[rows] @ vectors[part].T])
        candidates = np.hstack([best, np.broadcast_to(part, (len(rows), len(part)))])
        most = min(count, scores.shape[1])
        chosen = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        best_scores = np.take_along_axis(scores, chosen, 1)
        best = np.take_along_axis(candidates, chosen, 1)
    return best


def _replace(
    negatives: Places,
    margins: npt.NDArray[np.float64],
    segment_ids: Places,
    flags: npt.NDArray[np.bool_],
    lists: Lists,
    margin: float,
    rng: np.random.Generator,
) -> None:
    """Replace the flagged negatives by entries of their query's list; an empty list changes nothing."""
    lengths = lists.lengths[segment_ids]
    places = np.flatnonzero(flags & (lengths > 0))
    chosen = (rng.random(len(places)) * lengths[places]).astype(np.int64)
    negatives[places] = lists.indices[lists.indptr[segment_ids[places]] + chosen]
    margins[places] = margin
