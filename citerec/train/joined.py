"""Several indexes as one corpus for training: the rows of each index follow those of the index before it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import Papers
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.types import Paper

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class JoinedPapers:
    """The papers of several indexes, by joined row."""

    parts: Sequence[Papers]
    starts: npt.NDArray[np.int64]  # the first row of each part, and the number of all papers

    def __len__(self) -> int:
        return int(self.starts[-1])

    def at(self, rows: Iterable[int]) -> dict[int, Paper]:
        """Return the papers at `rows`, by row."""
        wanted = np.unique(np.fromiter(rows, np.int64))
        numbers = np.searchsorted(self.starts, wanted, "right") - 1
        papers: dict[int, Paper] = {}
        for number in np.unique(numbers).tolist():
            start = int(self.starts[number])
            found = self.parts[number].at((wanted[numbers == number] - start).tolist())
            papers |= {start + row: paper for row, paper in found.items()}
        return papers

    def titles(self) -> Iterator[str]:
        """Yield the title of each row."""
        for part in self.parts:
            yield from part.titles()

    def rows_of(self, docids: Sequence[str]) -> Rows:
        """Return the rows of docids, shape (len(docids),); -1 for an unknown one; the first index with it counts."""
        rows = np.full(len(docids), -1, np.int32)
        for part, start in zip(self.parts, self.starts, strict=False):
            found = part.rows_of(docids)
            rows = np.where((rows < 0) & (found >= 0), found + np.int32(start), rows)
        return rows

    @cached_property
    def years(self) -> npt.NDArray[np.int32]:
        """The year of each row, shape (papers,); `NO_YEAR` where unknown."""
        return np.concatenate([part.years for part in self.parts])


@dataclass(frozen=True)
class JoinedIndexes:
    """Several indexes as one."""

    parts: tuple[IndexFolder, ...]

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first row of each index, and the number of all papers, shape (indexes + 1,)."""
        return np.cumsum([0, *(len(index.papers) for index in self.parts)])

    @cached_property
    def papers(self) -> JoinedPapers:
        """The papers of all indexes."""
        return JoinedPapers([index.papers for index in self.parts], self.starts)

    @cached_property
    def number(self) -> npt.NDArray[np.int16]:
        """The number of the index of each row, shape (papers,)."""
        lengths = np.diff(self.starts)
        return np.repeat(np.arange(len(self.parts), dtype=np.int16), lengths)

    @property
    def path(self) -> Path:
        """The folder in which a relative model folder is searched: the first index."""
        return self.parts[0].path

    @property
    def name(self) -> str:
        """The names of the indexes."""
        return ", ".join(index.manifest.name for index in self.parts)


TrainingIndex = IndexFolder | JoinedIndexes


def parts_of(index: TrainingIndex) -> tuple[IndexFolder, ...]:
    """Return the indexes that are trained on."""
    return index.parts if isinstance(index, JoinedIndexes) else (index,)


def name_of(index: TrainingIndex) -> str:
    """Return the name of an index, or the names of several."""
    return index.name if isinstance(index, JoinedIndexes) else index.manifest.name


def join(indexes: Sequence[IndexFolder]) -> TrainingIndex:
    """Return several indexes as one; a single index as it is.

    Raises:
        ConfigError: If an index occurs twice.
    """
    folders = [index.path.resolve() for index in indexes]
    if repeated := next((folder for folder in folders if folders.count(folder) > 1), None):
        raise ConfigError(f"{repeated} is given twice; give each index once")
    return JoinedIndexes(tuple(indexes)) if len(indexes) > 1 else indexes[0]
