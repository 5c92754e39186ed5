"""Lists of papers, one for each query, held as two arrays, and drawing from them without a loop over queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lists:
    """For each of some queries a list of rows: `indices[indptr[i]:indptr[i + 1]]`."""

    indptr: npt.NDArray[np.int64]  # shape (queries + 1,)
    indices: Rows  # shape (entries,)

    @classmethod
    def of(cls, owners: npt.NDArray[np.integer], rows: npt.NDArray[np.integer], count: int) -> Self:
        """Make `count` lists of pairs (which list, row), in the order of the pairs."""
        order = np.argsort(owners, kind="stable")
        lengths = np.bincount(owners, minlength=count)
        return cls(np.concatenate([[0], np.cumsum(lengths)]), rows[order].astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Put the lists of several parts one after the other."""
        lengths = [np.diff(part.indptr) for part in parts]
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
        return cls(ends, np.concatenate([np.zeros(0, np.int32), *(p.indices for p in parts)]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, i: int) -> Rows:
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many rows each list has, shape (queries,)."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """The list of each entry, shape (entries,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def where(self, keep: Flags) -> "Lists":
        """Return the lists with those entries only that are flagged, shape (entries,)."""
        return Lists.of(self.owners[keep], self.indices[keep], len(self))

    def at(self, chosen: npt.NDArray[np.integer]) -> "Lists":
        """Return some of the lists; `chosen` rises."""
        number = np.full(len(self), -1)
        number[chosen] = np.arange(len(chosen))
        owners = number[self.owners]
        return Lists.of(owners[owners >= 0], self.indices[owners >= 0], len(chosen))

    def drawn(self, count: int, rng: np.random.Generator, *, repeat: bool) -> Rows:
        """Draw `count` distinct rows of each list, shape (queries, count).

        Where a list is shorter, its rows repeat, or -1 stands for those that are missing; of an empty one all are.
        """
        drawn = np.full((len(self), count), -1, np.int32)
        if not len(self.indices) or not count:
            return drawn
        order = np.lexsort((rng.random(len(self.indices)), self.owners))
        shuffled = self.indices[order]
        lengths = self.lengths[:, None]
        places = np.arange(count)[None, :]
        there = (lengths > 0) & (repeat | (places < lengths))
        at = self.indptr[:-1, None] + places % np.maximum(lengths, 1)
        drawn[there] = shuffled[at[there]]
        return drawn

    def shortened(self, most: int, rng: np.random.Generator) -> "Lists":
        """Return lists of at most `most` rows, drawn at random; a list that is short enough stays as it is."""
        order = np.lexsort((rng.random(len(self.indices)), self.owners))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - self.indptr[self.owners[order]]
        return self.where(place < most)


class Pairs:
    """A set of pairs of rows, which answers for many at once."""

    def __init__(
        self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], papers: int
    ) -> None:
        self._papers = papers
        self._keys = np.unique(self._key(first, second))

    def holds(self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Flags:
        """Return which pairs are in it, shape that of `first` and `second` together."""
        keys = self._key(first, second)
        if not len(self._keys):
            return np.zeros(keys.shape, np.bool_)
        at = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[at] == keys

    def _key(
        self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int64]:
        return np.asarray(first, np.int64) * self._papers + second
