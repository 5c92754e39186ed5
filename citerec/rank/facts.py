"""Facts of the citation graph that connect a candidate with the neighbours of a query, with titles and counts.

Only citations that are known at the query's time count, as in the features (`GraphSnapshot`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citerec.corpus.papers import NO_YEAR
from citerec.rank.neighbours import NeighbourScores
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph


@dataclass(frozen=True, slots=True)
class CitedBy:
    """The neighbours that cite the candidate."""

    count: int  # neighbours that cite the candidate
    neighbours: int  # all neighbours whose references are known
    closest: str  # the title of the closest neighbour that cites the candidate


@dataclass(frozen=True, slots=True)
class CoCitation:
    """The papers that cite both the candidate and a neighbour."""

    partner: str  # the title of the neighbour
    citing: str  # the title of the newest paper that cites both
    others: int  # the number of other papers that cite both


@dataclass(frozen=True, slots=True)
class SharedReferences:
    """The references that the candidate shares with another paper."""

    count: int  # shared references
    with_paper: (
        str  # the title of the other paper; if that is the query, the title of a shared reference
    )


class Facts:
    """Looks up the citations that connect papers with one query."""

    def __init__(
        self,
        graph: TemporalGraph,
        snapshot: GraphSnapshot,
        neighbour_scores: NeighbourScores,
        cited: Sequence[int] = (),
    ) -> None:
        """Prepare.

        Args:
            graph: The citation graph.
            snapshot: The citations that are known for the query.
            neighbour_scores: The neighbours of the query.
            cited: Rows of the known references of the query.
        """
        self._graph, self._snapshot, self._neighbour_scores = graph, snapshot, neighbour_scores
        self._cited = np.array(sorted(cited), np.int32)

    def cited_by_similar(self, row: int) -> CitedBy | None:
        """Return the neighbours that cite a paper; None if there is none."""
        neighbours = self._neighbour_scores.neighbours
        citing = neighbours[np.isin(neighbours, self._citing(row))]
        if not len(citing):
            return None
        return CitedBy(len(citing), len(neighbours), self._title(citing[0]))

    def co_citation(self, row: int) -> CoCitation | None:
        """Return the neighbour with the most co-citations of a paper; None without a co-citation."""
        citing = self._citing(row)
        neighbours = self._neighbour_scores.cited_neighbours
        both = [np.intersect1d(citing, self._citing(other)) for other in neighbours.tolist()]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        years = self._graph.index.papers.years[both[best]]
        newest = both[best][np.argmax(np.where(years == NO_YEAR, -1, years))]
        return CoCitation(self._title(neighbours[best]), self._title(newest), len(both[best]) - 1)

    def shared_references(self, row: int) -> SharedReferences | None:
        """Return the neighbour that shares the most references with a paper; None if no reference is shared."""
        references, neighbours = self._references(row), self._neighbour_scores.neighbours
        both = [
            np.intersect1d(references, self._references(other)) for other in neighbours.tolist()
        ]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        return SharedReferences(len(both[best]), self._title(neighbours[best]))

    def own_references(self, row: int) -> SharedReferences | None:
        """Return the known references of the query that a paper cites; None if there is none."""
        both = np.intersect1d(self._references(row), self._cited)
        return SharedReferences(len(both), self._title(both[0])) if len(both) else None

    @staticmethod
    def _largest(row: int, neighbours: Rows, both: Sequence[Rows]) -> int | None:
        """Return the position of the neighbour with the most shared papers; None if there is none.

        Ties go to the closest neighbour. The paper itself does not count.
        """
        sizes = [
            0 if other == row else len(rows)
            for other, rows in zip(neighbours.tolist(), both, strict=True)
        ]
        best = int(np.argmax(sizes)) if sizes else 0
        return best if sizes and sizes[best] else None

    def _citing(self, row: int) -> Rows:
        rows = self._graph.citers.citers(row)
        return rows[self._snapshot.is_citing(rows)]

    def _references(self, row: int) -> Rows:
        citations = self._graph.index.graph
        [is_known] = self._snapshot.is_citing(np.array([row], np.int32))
        return citations.references(row) if is_known else citations.indices[:0]

    def _title(self, row: int) -> str:
        (title,) = self._graph.index.papers.texts("title", np.array([row], np.int32)).to_pylist()
        return title
