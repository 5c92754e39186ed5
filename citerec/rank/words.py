"""Words of titles and names of venues, compared for all papers of a pool at once."""

import re
from collections.abc import Sequence

import numpy as np

from citerec.corpus.papers import Papers, codes
from citerec.rank.known import Rows, Scores
from citerec.text import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_KEPT = 100_000  # titles whose words are in memory at once


class Titles:
    """The words of titles; those read once are kept for the queries to come."""

    def __init__(self, papers: Papers) -> None:
        self._papers = papers
        self._words: dict[int, frozenset[str]] = {}

    def overlap(self, title: str, rows: Rows) -> Scores:
        """Return the Jaccard similarity of a title's words and those of some papers' titles, in [0, 1].

        Words are in lower case, without function words; where either title has none, it is 0.
        """
        asked = title_words(title)
        theirs = self._of(rows)
        shared = [len(asked & words) for words in theirs]
        return np.array(
            [
                both / (len(asked) + len(words) - both) if both else 0.0
                for both, words in zip(shared, theirs, strict=True)
            ],
            np.float32,
        )

    def _of(self, rows: Rows) -> Sequence[frozenset[str]]:
        if len(self._words) > _KEPT:
            self._words.clear()
        fresh = [row for row in rows.tolist() if row not in self._words]
        texts = self._papers.texts("title", np.array(fresh, np.int32)).to_pylist()
        self._words.update(zip(fresh, map(title_words, texts), strict=True))
        return [self._words[row] for row in rows.tolist()]


def title_words(title: str) -> frozenset[str]:
    """Return the words of a title in lower case, without function words."""
    return frozenset(_WORD.findall(title.lower())) - STOP_WORDS


class Venues:
    """The venues of all papers; they are read at once, and are few."""

    def __init__(self, papers: Papers) -> None:
        named, numbers = codes(papers.column("venue"))
        keys = [venue_key(name) for name in named.to_pylist()]
        number = {key: n for n, key in enumerate(dict.fromkeys(["", *keys]))}
        self._numbers = number  # 0 for an unknown one
        self._venues = np.array([number[key] for key in keys], np.int32)[numbers]

    def same(self, venue: str, rows: Rows) -> Scores:
        """Return 1 for the papers of a venue, 0 for those of others; NaN where either is unknown.

        Neither the year nor the volume counts, only letters.
        """
        mine = self._numbers.get(venue_key(venue), -1)
        theirs = self._venues[rows]
        unknown = (theirs == 0) | (mine == 0)
        return np.where(unknown, np.nan, theirs == mine).astype(np.float32)


def venue_key(venue: str) -> str:
    """Return the letters of a venue's name, in lower case."""
    return "".join(filter(str.isalpha, venue.lower()))
