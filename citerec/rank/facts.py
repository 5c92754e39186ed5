"""Facts of the citation graph that tie a candidate to papers like the query: each names a paper, with true counts.

Only citations that are known at the query's time count, as in the features (`known.GraphSnapshot`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citerec.corpus.papers import NO_YEAR
from citerec.rank.known import GraphSnapshot, Rows, TemporalGraph
from citerec.rank.neighbours import NeighbourScores


@dataclass(frozen=True, slots=True)
class CitedBy:
    """Some of the most similar papers cite the candidate."""

    count: int  # how many do
    of: int  # how many most similar papers there are whose references are known
    closest: str  # the title of the closest that cites it


@dataclass(frozen=True, slots=True)
class CoCitation:
    """Papers cite the candidate and a similar paper together."""

    partner: str  # the title of the similar paper
    citing: str  # the title of the newest paper that cites both
    others: int  # how many more cite both


@dataclass(frozen=True, slots=True)
class SharedReferences:
    """The candidate cites papers that another paper cites."""

    count: int
    with_paper: (
        str  # the title of the other paper; of a shared reference where the other is the query
    )


class Facts:
    """Looks up what ties papers to one query."""

    def __init__(
        self,
        known: TemporalGraph,
        snapshot: GraphSnapshot,
        neighbour_scores: NeighbourScores,
        cited: Sequence[int] = (),
    ) -> None:
        """Prepare.

        Args:
            known: The citation graph.
            snapshot: Whose citations the query may know.
            neighbour_scores: Its neighbours.
            cited: Rows of references that the query is known to have.
        """
        self._known, self._snapshot, self._neighbour_scores = known, snapshot, neighbour_scores
        self._cited = np.array(sorted(cited), np.int32)

    def cited_by_similar(self, row: int) -> CitedBy | None:
        """Return which neighbours cite a paper; None if none does."""
        neighbours = self._neighbour_scores.neighbours
        citing = neighbours[np.isin(neighbours, self._citing(row))]
        if not len(citing):
            return None
        return CitedBy(len(citing), len(neighbours), self._title(citing[0]))

    def co_citation(self, row: int) -> CoCitation | None:
        """Return with which neighbour a paper is cited most often, and by whom; None if with none."""
        mine = self._citing(row)
        neighbours = self._neighbour_scores.cited_neighbours
        both = [np.intersect1d(mine, self._citing(other)) for other in neighbours.tolist()]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        years = self._known.index.papers.years[both[best]]
        newest = both[best][np.argmax(np.where(years == NO_YEAR, -1, years))]
        return CoCitation(self._title(neighbours[best]), self._title(newest), len(both[best]) - 1)

    def shared_references(self, row: int) -> SharedReferences | None:
        """Return with which neighbour a paper shares the most references; None if with none."""
        mine, neighbours = self._references(row), self._neighbour_scores.neighbours
        both = [np.intersect1d(mine, self._references(other)) for other in neighbours.tolist()]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        return SharedReferences(len(both[best]), self._title(neighbours[best]))

    def own_references(self, row: int) -> SharedReferences | None:
        """Return which of the query's known references a paper cites; None if none."""
        both = np.intersect1d(self._references(row), self._cited)
        return SharedReferences(len(both), self._title(both[0])) if len(both) else None

    @staticmethod
    def _largest(row: int, neighbours: Rows, both: Sequence[Rows]) -> int | None:
        """Return the place of the neighbour with most in common, the closest of equals; never the paper itself."""
        sizes = [
            0 if other == row else len(rows)
            for other, rows in zip(neighbours.tolist(), both, strict=True)
        ]
        best = int(np.argmax(sizes)) if sizes else 0
        return best if sizes and sizes[best] else None

    def _citing(self, row: int) -> Rows:
        matrix = self._known.cited_by
        rows = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        return rows[self._snapshot.citing[rows]]

    def _references(self, row: int) -> Rows:
        graph = self._known.index.graph
        return graph.references(row) if self._snapshot.citing[row] else graph.indices[:0]

    def _title(self, row: int) -> str:
        (title,) = self._known.index.papers.texts("title", np.array([row], np.int32)).to_pylist()
        return title
