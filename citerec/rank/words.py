"""Compares title words and venue names of a query with those of all its candidates at once."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum, log

import numpy as np

from citerec.corpus.papers import Papers, codes
from citerec.rules.known import Rows, Scores
from citerec.text import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_MAX_TITLES = 100_000  # titles whose words are in memory at once


class Titles:
    """The words of titles, cached between queries."""

    def __init__(self, papers: Papers) -> None:
        self._papers = papers
        self._words: dict[int, frozenset[str]] = {}

    def overlap(self, title: str, rows: Rows) -> Scores:
        """Return the Jaccard similarity of a title and the titles of papers, in [0, 1], in the shape of `rows`.

        Words are in lower case, without function words. The similarity is 0 if a title has no word.
        """
        query_words = title_words(title)
        candidate_words = self._of(rows)
        shared = [len(query_words & words) for words in candidate_words]
        return np.array(
            [
                both / (len(query_words) + len(words) - both) if both else 0.0
                for both, words in zip(shared, candidate_words, strict=True)
            ],
            np.float32,
        )

    def found_in(self, text: str, rows: Rows) -> Scores:
        """Return the share of each title's words that a text contains, in [0, 1], in the shape of `rows`.

        A word has the weight log((papers + 1) / titles with it) among the titles of these papers. The share is 0 if a
        title has no word.
        """
        titles, words = self._of(rows), title_words(text)
        counts = Counter(word for title in titles for word in title)
        weights = {word: log((len(titles) + 1) / count) for word, count in counts.items()}

        def mass(found: Iterable[str]) -> float:
            return fsum(weights[word] for word in found)  # exact, so in any order

        return np.array(
            [mass(title & words) / mass(title) if title & words else 0.0 for title in titles],
            np.float32,
        )

    def _of(self, rows: Rows) -> Sequence[frozenset[str]]:
        if len(self._words) > _MAX_TITLES:
            self._words.clear()
        fresh = [row for row in rows.tolist() if row not in self._words]
        texts = self._papers.texts("title", np.array(fresh, np.int32)).to_pylist()
        self._words.update(zip(fresh, map(title_words, texts), strict=True))
        return [self._words[row] for row in rows.tolist()]


def title_words(title: str) -> frozenset[str]:
    """Return the words of a title in lower case, without function words."""
    return frozenset(_WORD.findall(title.lower())) - STOP_WORDS


class Venues:
    """The venues of all papers. The constructor reads them all; distinct venues are few."""

    def __init__(self, papers: Papers) -> None:
        self._papers = papers
        named, numbers = codes(papers.column("venue"))
        keys = [venue_key(name) for name in named.to_pylist()]
        number = {key: n for n, key in enumerate(dict.fromkeys(["", *keys]))}
        self._numbers = number  # by venue; 0 for an unknown venue
        # of each paper, shape (papers,)
        self.numbers = np.array([number[key] for key in keys], np.int32)[numbers]

    def number(self, venue: str) -> int:
        """Return the number of a venue; 0 for an unknown one, -1 for one without a paper."""
        return self._numbers.get(venue_key(venue), -1)

    def same(self, venue: str, rows: Rows) -> Scores:
        """Return 1 for the papers of a venue, 0 for the others, NaN if a venue is unknown; in the shape of `rows`.

        Only letters are compared, without year and volume.
        """
        return same_venue(self._papers, venue, rows)


def same_venue(papers: Papers, venue: str, rows: Rows) -> Scores:
    """Return 1 for the papers of a venue, 0 for the others, NaN if a venue is unknown; in the shape of `rows`.

    Only letters are compared, without year and volume.
    """
    key = venue_key(venue)
    if not key:
        return np.full(len(rows), np.nan, np.float32)
    keys = map(venue_key, papers.texts("venue", rows).to_pylist())
    return np.array([float(other == key) if other else np.nan for other in keys], np.float32)


@lru_cache(maxsize=2**14)
def venue_key(venue: str) -> str:
    """Return the letters of a venue's name, in lower case."""
    return "".join(filter(str.isalpha, venue.lower()))
