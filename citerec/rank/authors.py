"""The authors of papers, identified by first initial and last name.

`Ribler, R. L.`, `Randy L. Ribler` and `Ribler RL` are the same author. Two people with the same initial and last name
are not distinguished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from citerec.bibliography.names import name_key
from citerec.corpus.papers import Papers, codes
from citerec.rules.known import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """The papers of some authors."""

    rows: Rows  # rising; a row occurs once for each of these authors that the paper has
    author_count: int  # different authors among the given names


class Authors:
    """The authors of all papers of a corpus. The constructor reads them all, so reuse the object."""

    def __init__(self, papers: Papers) -> None:
        names, counts = papers.authors()
        distinct, which = codes(names)
        self._numbers: dict[str, int] = {}
        number = self._numbers.setdefault
        keys = [number(name_key(name), len(self._numbers)) for name in distinct.to_pylist()]
        self._authors = np.array(keys, np.int32)[which]
        self._rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self.named = counts > 0  # whether a paper has an author, shape (papers,)

    def papers_of_same(self, rows: Rows) -> Any:
        """Return all papers with an author of each paper, a sparse matrix of ones, shape (len(rows), papers)."""
        papers = (self._wrote[rows] @ self._written).tocsr()
        papers.data[:] = 1
        papers.sort_indices()
        return papers

    @cached_property
    def _wrote(self) -> Any:
        """The authors of all papers, a sparse matrix of shape (papers, authors)."""
        from scipy.sparse import csr_array

        shape = (len(self.named), len(self._numbers))
        ones = np.ones(len(self._authors), np.float32)
        return csr_array((ones, (self._rows, self._authors)), shape=shape)

    @cached_property
    def _written(self) -> Any:
        return self._wrote.T.tocsr()

    def written_by(self, names: Sequence[str]) -> Written:
        """Return the papers with at least one of the given authors."""
        keys = {key for name in names if (key := name_key(name))}
        wanted = sorted(self._numbers[key] for key in keys if key in self._numbers)
        positions = np.flatnonzero(np.isin(self._authors, wanted))
        pairs = np.unique(np.stack([self._rows[positions], self._authors[positions]]), axis=1)
        return Written(pairs[0], len(keys))
