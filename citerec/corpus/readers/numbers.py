"""Sets and maps of many whole numbers in arrays, for ids of which a dump holds hundreds of millions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

RECENT = 2**16  # numbers that are kept as Python objects
_LONGEST_CHAIN = 20

Numbers = npt.NDArray[np.int64]


class NumberSet:
    """A set of numbers from 0 to 2**63 - 1 in 8 bytes each; a look-up takes microseconds."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._sorted: list[Numbers] = []  # each at least twice as long as the next one

    def add(self, number: int) -> None:
        """Add one number."""
        self._recent.add(number)
        if len(self._recent) >= RECENT:
            self._add_sorted(np.sort(np.fromiter(self._recent, np.int64, len(self._recent))))
            self._recent.clear()

    def update(self, other: "NumberSet") -> None:
        """Add the numbers of another set."""
        for run in other._sorted:
            self._add_sorted(run)
        for number in other._recent:
            self.add(number)

    def _add_sorted(self, run: Numbers) -> None:
        while self._sorted and len(self._sorted[-1]) < 2 * len(run):
            run = np.union1d(self._sorted.pop(), run)
        self._sorted.append(run)

    def __contains__(self, number: int) -> bool:
        return number in self._recent or any(_find(run, number) >= 0 for run in self._sorted)


class NumberMap:
    """A map of numbers to numbers in 16 bytes each."""

    def __init__(self) -> None:
        self._keys: Numbers = np.zeros(0, np.int64)
        self._values: Numbers = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def update(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Add pairs of a key and its value; of several values of one key, the last one counts."""
        added = np.array(pairs, np.int64).reshape(-1, 2)
        keys = np.concatenate([added[::-1, 0], self._keys])
        values = np.concatenate([added[::-1, 1], self._values])
        self._keys, first = np.unique(keys, return_index=True)
        self._values = values[first]

    def follow(self) -> None:
        """Let every key lead to the end of its chain: if a leads to b, and b to c, then a leads to c."""
        for _ in range(_LONGEST_CHAIN if len(self) else 0):
            at = np.minimum(self._keys.searchsorted(self._values), len(self) - 1)
            leads_on = self._keys[at] == self._values
            if not leads_on.any():
                return
            self._values = np.where(leads_on, self._values[at], self._values)

    def get(self, key: int, default: int) -> int:
        """Return the value of a key, or `default`."""
        at = _find(self._keys, key)
        return int(self._values[at]) if at >= 0 else default


def _find(numbers: Numbers, number: int) -> int:
    """Return where a number is in a sorted array; -1 if it is not."""
    at = int(numbers.searchsorted(number))
    return at if at < len(numbers) and numbers[at] == number else -1
