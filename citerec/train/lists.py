"""Lists of rows, one per query, stored as two arrays; sampling from them needs no loop over queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lists:
    """A list of rows for each query; list `i` is `indices[indptr[i]:indptr[i + 1]]` (CSR layout)."""

    indptr: npt.NDArray[np.int64]  # shape (queries + 1,)
    indices: Rows  # shape (entries,)

    @classmethod
    def of(
        cls, segment_ids: npt.NDArray[np.integer], rows: npt.NDArray[np.integer], count: int
    ) -> Self:
        """Build `count` lists from pairs (list number, row), in the order of the pairs.

        Args:
            segment_ids: The list of each entry, in [0, count), shape (entries,).
            rows: The row of each entry, shape (entries,).
            count: The number of lists; a list without an entry is empty.
        """
        order = np.argsort(segment_ids, kind="stable")
        lengths = np.bincount(segment_ids, minlength=count)
        return cls(np.concatenate([[0], np.cumsum(lengths)]), rows[order].astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate the lists of several parts."""
        lengths = [np.diff(part.indptr) for part in parts]
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
        return cls(ends, np.concatenate([np.zeros(0, np.int32), *(p.indices for p in parts)]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, i: int) -> Rows:
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of rows of each list, shape (queries,)."""
        return np.diff(self.indptr)

    @property
    def segment_ids(self) -> npt.NDArray[np.int64]:
        """The list number of each entry, shape (entries,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def where(self, keep: Flags) -> "Lists":
        """Return the lists with only the flagged entries; `keep` has shape (entries,)."""
        return Lists.of(self.segment_ids[keep], self.indices[keep], len(self))

    def at(self, chosen: npt.NDArray[np.integer]) -> "Lists":
        """Return some of the lists, by number; `chosen` rises."""
        number = np.full(len(self), -1)
        number[chosen] = np.arange(len(chosen))
        segment_ids = number[self.segment_ids]
        return Lists.of(segment_ids[segment_ids >= 0], self.indices[segment_ids >= 0], len(chosen))

    def drawn(self, count: int, rng: np.random.Generator, *, repeat: bool) -> Rows:
        """Draw `count` distinct rows of each list.

        Args:
            count: The number of rows per list.
            rng: Draws them.
            repeat: Whether the rows of a shorter list repeat; otherwise -1 fills the missing places.

        Returns:
            Shape (queries, count); -1 in every place of an empty list.
        """
        drawn = np.full((len(self), count), -1, np.int32)
        if not len(self.indices) or not count:
            return drawn
        order = np.lexsort((rng.random(len(self.indices)), self.segment_ids))
        shuffled = self.indices[order]
        lengths = self.lengths[:, None]
        columns = np.arange(count)[None, :]
        filled = (lengths > 0) & (repeat | (columns < lengths))
        at = self.indptr[:-1, None] + columns % np.maximum(lengths, 1)
        drawn[filled] = shuffled[at[filled]]
        return drawn

    def shortened(self, most: int, rng: np.random.Generator) -> "Lists":
        """Return lists of at most `most` rows, drawn at random; shorter lists are unchanged."""
        order = np.lexsort((rng.random(len(self.indices)), self.segment_ids))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - self.indptr[self.segment_ids[order]]
        return self.where(place < most)


class Pairs:
    """A set of pairs of rows with a vectorised membership test."""

    def __init__(
        self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], papers: int
    ) -> None:
        self._papers = papers
        self._keys = np.unique(self._key(first, second))

    def holds(self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Flags:
        """Return which pairs are in the set, in the broadcast shape of `first` and `second`."""
        keys = self._key(first, second)
        if not len(self._keys):
            return np.zeros(keys.shape, np.bool_)
        at = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[at] == keys

    def _key(
        self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int64]:
        return np.asarray(first, np.int64) * self._papers + second
