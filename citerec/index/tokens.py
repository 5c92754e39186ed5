"""The token ids of the papers of an index, for cross-encoders: each text is tokenized once in a process."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import Papers
from citerec.text import pair_text

LONGEST = 447  # tokens of one text: no side of a pair has room for more
KEPT = 50_000  # papers whose tokens are kept in memory: 40 MB for abstracts

Cut = Callable[[Sequence[str]], list[list[int]]]  # texts to ids, at most `LONGEST` each


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of papers, tokenized on request; those of the last `KEPT` papers are kept."""

    papers: Papers
    cut: Cut
    kept: dict[int, npt.NDArray[np.uint32]] = field(
        default_factory=dict[int, "npt.NDArray[np.uint32]"]
    )

    def of(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Return the ids of the papers at `rows`, without special tokens, by row."""
        requested = set(rows)
        papers = self.papers.at(requested - self.kept.keys())
        ids_by_row = {row: self.kept[row].tolist() for row in requested & self.kept.keys()}
        fresh = self.cut([pair_text(paper) for paper in papers.values()])
        ids_by_row.update(zip(papers, fresh, strict=True))
        self.kept.update((row, np.array(ids_by_row[row], np.uint32)) for row in papers)
        for row in [*self.kept][: max(0, len(self.kept) - KEPT)]:
            del self.kept[row]
        return ids_by_row
