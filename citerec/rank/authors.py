"""Who wrote what: authors known by the first initial and the last name, however a corpus writes them.

`Ribler, R. L.`, `Randy L. Ribler` and `Ribler RL` are one, as are two people of one initial and name.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citerec.corpus.papers import Papers, codes
from citerec.query.names import name_key
from citerec.rank.known import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """Papers by some authors."""

    rows: Rows  # each as often as it has different ones of them, rising
    asked: int  # how many different authors were asked for


class Authors:
    """The authors of all papers of a corpus; reads them all, so make it once and only if need be."""

    def __init__(self, papers: Papers) -> None:
        names, counts = papers.authors()
        distinct, which = codes(names)
        self._numbers: dict[str, int] = {}
        number = self._numbers.setdefault
        keys = [number(name_key(name), len(self._numbers)) for name in distinct.to_pylist()]
        self._authors = np.array(keys, np.int32)[which]
        self._rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self.named = counts > 0  # which papers name an author, shape (papers,)

    def written_by(self, names: Sequence[str]) -> Written:
        """Return the papers that any of some people wrote."""
        keys = {key for name in names if (key := name_key(name))}
        wanted = sorted(self._numbers[key] for key in keys if key in self._numbers)
        mine = np.flatnonzero(np.isin(self._authors, wanted))
        pairs = np.unique(np.stack([self._rows[mine], self._authors[mine]]), axis=1)
        return Written(pairs[0], len(keys))
