"""Titles of the same paper among millions: those whose sets of words have a Jaccard similarity of 0.7 or more.

An exact join, not an approximate one: where the words of all titles stand in one order, rarest first, two sets that are
so alike share one of the first n - ceil(0.7 n) + 1 of their n words. So a title is compared only with those
that share one of its few rarest words.

Sources: the rule is that of Nogueira et al. 2020, section 4.1; the join of Bayardo et al., WWW 2007,
https://doi.org/10.1145/1242572.1242591.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError

THRESHOLD = 0.7
MIN_WORDS = 2  # a title of one word, such as "Editorial", says too little of which paper it is
BATCH = 20_000  # titles looked up at once
PAIRS = 2_000_000  # pairs compared at once, so that memory stays flat
ROUNDING = 1e-9  # 0.7 * 10 may be a little more than 7

Ints = npt.NDArray[np.int64]

_special = re.compile(r"[^\w\s]|_")


def words(title: str) -> frozenset[str]:
    """Return the distinct words of a title, without case and special characters; "pre-training" is one word."""
    return frozenset(_special.sub("", title.casefold()).split())


def same_titles(
    titles: Iterable[str],
    against: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    min_words: int = MIN_WORDS,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a title and one of `against` that are of the same paper, by place, rising.

    The titles are read as they come, so they may be more than memory holds; `against` is kept as its words.

    Args:
        titles: Any number.
        against: What they are compared with.
        threshold: Jaccard similarity of the words from which on two titles are the same, in (0, 1].
        min_words: Titles of fewer words are the same as none.
        progress: Receives now and then how many titles have been looked up.

    Raises:
        ConfigError: If the threshold is none.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"a threshold of similarity lies in (0, 1], got {threshold}")
    known = _TitleIndex(against, threshold, max(min_words, 1))
    rest, first = iter(titles), 0
    while batch := list(islice(rest, BATCH)):
        for x, y in known.same_as(batch):
            yield first + x, y
        first += len(batch)
        progress(first)


class _TitleIndex:
    """Titles by the rarest of their words."""

    def __init__(self, titles: Sequence[str], threshold: float, min_words: int) -> None:
        self._threshold, self._min_words = threshold, min_words
        sets = [words(title) for title in titles]
        counts = Counter(word for one in sets for word in one)
        order = sorted(counts, key=lambda word: (counts[word], word))
        self._number = {word: number for number, word in enumerate(order)}
        numbered = [sorted(map(self._number.__getitem__, one)) for one in sets]
        self._lengths = np.array([len(one) for one in numbered], np.int64)
        self._words = _matrix(numbered, len(order))
        firsts = _RarestWords(numbered, [self._to_look_at(len(one)) for one in numbered])
        by_number = np.argsort(firsts.numbers, kind="stable")
        self._rows, self._left = firsts.rows[by_number], firsts.left[by_number]
        here = np.bincount(firsts.numbers, minlength=len(order))
        self._starts = np.concatenate([[0], np.cumsum(here)])  # of each word among the rows

    def same_as(self, titles: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the pairs of a title and one of these that are the same, rising."""
        asked, lengths, rare, numbered = list[int](), list[int](), list[int](), list[list[int]]()
        for place, title in enumerate(titles):
            distinct = words(title)
            there = [number for word in distinct if (number := self._number.get(word)) is not None]
            # Words that none of these has come first, as the rarest.
            first = self._to_look_at(len(distinct)) - (len(distinct) - len(there))
            if first > 0:
                asked.append(place)
                lengths.append(len(distinct))
                rare.append(first)
                numbered.append(sorted(there))
        matrix = _matrix(numbered, len(self._number))
        for x, y in self._alike(_RarestWords(numbered, rare), np.array(lengths, np.int64), matrix):
            yield asked[x], y

    def _to_look_at(self, length: int) -> int:
        """Return how many of the rarest words of a title one of a title that is the same must be among."""
        if length < self._min_words:
            return 0
        return length - ceil(self._threshold * length - ROUNDING) + 1

    def _alike(
        self, firsts: "_RarestWords", lengths: Ints, matrix: Any
    ) -> Iterator[tuple[int, int]]:
        """Yield the pairs that are alike, looking at about `PAIRS` of them at once."""
        counts = self._starts[firsts.numbers + 1] - self._starts[firsts.numbers]
        behind = np.cumsum(np.bincount(firsts.rows, counts, minlength=len(lengths)))
        slices = (behind // PAIRS)[firsts.rows]  # whole titles, so that no pair stands in two
        for one in np.unique(slices):
            xs, ys = self._candidates(firsts, np.flatnonzero(slices == one), counts, lengths)
            common = matrix[xs].multiply(self._words[ys]).sum(axis=1)
            alike = common / (lengths[xs] + self._lengths[ys] - common) >= self._threshold
            yield from zip(xs[alike].tolist(), ys[alike].tolist(), strict=True)

    def _candidates(
        self, firsts: "_RarestWords", entries: Ints, counts: Ints, lengths: Ints
    ) -> tuple[Ints, Ints]:
        """Return pairs that share one of their rarest words and have enough behind it, each once, rising."""
        entry = np.repeat(entries, counts[entries])
        steps = np.arange(len(entry)) - np.repeat(
            np.cumsum(counts[entries]) - counts[entries], counts[entries]
        )
        posting = self._starts[firsts.numbers[entry]] + steps
        xs, ys = firsts.rows[entry], self._rows[posting]
        most = np.minimum(firsts.left[entry], self._left[posting])  # words that can be common
        least = (lengths[xs] + self._lengths[ys]) * (self._threshold / (1 + self._threshold))
        fits = most >= least - ROUNDING
        keys = np.sort(xs[fits] * len(self._lengths) + ys[fits])
        keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique would hash them: six times as slow
        return keys // len(self._lengths), keys % len(self._lengths)


class _RarestWords:
    """The rarest words of titles: for each its number, its title, and how many words follow, itself included."""

    def __init__(self, numbered: list[list[int]], rare: list[int]) -> None:
        self.rows = np.repeat(np.arange(len(rare)), rare)  # rises
        self.numbers = _flat(one[:n] for one, n in zip(numbered, rare, strict=True))
        self.left = _flat(
            range(len(one), len(one) - n, -1) for one, n in zip(numbered, rare, strict=True)
        )


def _flat(lists: Iterable[Iterable[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(lists), np.int64)


def _matrix(numbered: list[list[int]], columns: int) -> Any:
    """Return which words each title has as a sparse matrix, shape (titles, columns)."""
    from scipy.sparse import csr_array

    ends = np.cumsum([0, *map(len, numbered)])
    numbers = _flat(numbered)
    return csr_array((np.ones(len(numbers), np.int32), numbers, ends), (len(numbered), columns))
