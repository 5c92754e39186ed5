"""The authors of papers, identified by first initial and last name.

`Ribler, R. L.`, `Randy L. Ribler` and `Ribler RL` are the same author. Two people with the same initial and last name
are not distinguished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from citerec.bibliography.names import name_key
from citerec.corpus.papers import Papers, codes
from citerec.rules.known import Rows
from citerec.rules.snapshot import Flags

_NONE: Rows = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The papers of some authors."""

    rows: Rows  # rising; a row occurs once for each of these authors that the paper has
    author_count: int  # different authors among the given names


class Authors:
    """The authors of all papers of a corpus; reuse the object."""

    def __init__(self, papers: Papers) -> None:
        """Prepare. Without stored tables all authors are read on first use."""
        self._papers = papers

    @property
    def has_any(self) -> bool:
        """Whether any paper has an author."""
        return self._papers.has_authors

    @property
    def named(self) -> Flags:
        """Whether each paper has an author, shape (papers,)."""
        return self.is_named(np.arange(len(self._papers), dtype=np.int32))

    def is_named(self, rows: Rows) -> Flags:
        """Return whether some papers have an author, shape of `rows`."""
        return self._papers.lengths("authors", rows) > 0

    def written_by(self, names: Sequence[str]) -> Written:
        """Return the papers with at least one of the given authors."""
        keys = {key for name in names if (key := name_key(name))}
        if self._papers.lookup:
            found = self._papers.lookup.authors.rows_of(sorted(keys))
            return Written(np.sort(np.concatenate([*found, _NONE])), len(keys))
        numbers, authors, rows = self._read
        wanted = sorted(numbers[key] for key in keys if key in numbers)
        positions = np.flatnonzero(np.isin(authors, wanted))
        pairs = np.unique(np.stack([rows[positions], authors[positions]]), axis=1)
        return Written(pairs[0], len(keys))

    @cached_property
    def _read(self) -> tuple[dict[str, int], Rows, Rows]:
        """The number of each author, and the authors and rows of all pairs of paper and author."""
        names, counts = self._papers.authors()
        distinct, which = codes(names)
        numbers: dict[str, int] = {}
        keys = [numbers.setdefault(name_key(name), len(numbers)) for name in distinct.to_pylist()]
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return numbers, np.array(keys, np.int32)[which], rows
