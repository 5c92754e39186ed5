"""Products of a sparse vector and the citation matrix that touch only the papers they connect.

SciPy allocates arrays of all papers for each product. Here the columns that a product touches are numbered by a scratch
array, which is never cleared: each place is written before it is read. Sums are added in SciPy's order, and the
entries of a product are stored in its order, so that all numbers are the same bit by bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Weights = npt.NDArray[np.float64]
# returns the lists of some rows one after the other, and the length of each
Lists = Callable[[Rows], tuple[Rows, npt.NDArray[np.int64]]]


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """Weights of some papers, each once, in any order; both arrays have the same shape."""

    rows: Rows
    weights: Weights

    def times(self, lists: Lists, scratch: Rows) -> Self:
        """Return the product with a matrix of zeros and ones.

        Args:
            lists: The columns of the ones of each row, such as `Graph.lists`.
            scratch: Any content, shape (columns,); it is overwritten.
        """
        columns, lengths = lists(self.rows)
        return self._summed(columns, np.repeat(self.weights, lengths), scratch)

    def plus(self, other: Self, scratch: Rows) -> Self:
        """Return the sum of two vectors; `scratch` as in `times`."""
        rows = np.concatenate([self.rows, other.rows])
        return self._summed(rows, np.concatenate([self.weights, other.weights]), scratch)

    def at(self, rows: Rows, scratch: Rows) -> Weights:
        """Return the weights of some papers, 0 for those without one; `scratch` as in `times`."""
        scratch[rows] = -1
        scratch[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        place = scratch[rows]
        found = np.zeros(len(rows))
        found[place >= 0] = self.weights[place[place >= 0]]
        return found

    def _summed(self, rows: Rows, weights: Weights, scratch: Rows) -> Self:
        """Return a vector of some rows, with the weights of equal rows added."""
        place = np.arange(len(rows), dtype=np.int32)
        scratch[rows[::-1]] = place[::-1]  # of equal rows the first is written last
        first = scratch[rows]
        is_first = first == place
        numbers = (np.cumsum(is_first) - 1)[first]
        sums = np.bincount(numbers, weights)
        return replace(self, rows=rows[is_first][::-1], weights=sums[::-1])

    def scaled(self, by: Weights | float) -> Self:
        """Return the vector with each weight multiplied; `by` is a number or has the shape of `rows`."""
        return replace(self, weights=self.weights * by)

    def ones(self) -> Self:
        """Return the vector with all weights replaced by 1."""
        return replace(self, weights=np.ones(len(self.rows)))

    def only(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return the entries that a mask selects, shape of `rows`."""
        return replace(self, rows=self.rows[keep], weights=self.weights[keep])

    def ordered(self) -> Self:
        """Return the entries by rising row."""
        order = np.argsort(self.rows, kind="stable")
        return replace(self, rows=self.rows[order], weights=self.weights[order])
