"""Learning to rank: features of the expanded candidates, and the model that orders them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.fuse import Rank
from citerec.rank.custom import LtrModel
from citerec.rank.expansion import ExpandedCandidates
from citerec.rank.facts import Facts
from citerec.rank.features import Features, Group, Matrix, without_groups
from citerec.rules.known import Rows, TemporalGraph
from citerec.types import CandidateSet, Hits, Progress, Query, QueryBatch, no_progress

NAME = "ranker"  # the name of the hits of this stage


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates(CandidateSet):
    """The candidates of one query in the order of the model, with its features."""

    matrix: Matrix  # shape (papers, features)
    matrix_rows: Rows  # the papers of `matrix`, in its order
    facts: Facts  # citations that connect these papers with the query

    def features_of(self, rows: Rows) -> Matrix:
        """Return the features of some of the candidates, in the order of `rows`."""
        order = np.argsort(self.matrix_rows)
        return self.matrix[order[np.searchsorted(self.matrix_rows, rows, sorter=order)]]


class LtrStage:
    """A stage that orders expanded candidates by a learning-to-rank model."""

    def __init__(
        self, graph: TemporalGraph, ranker: LtrModel, disabled_features: Collection[Group] = ()
    ) -> None:
        """Prepare.

        Args:
            graph: The citation graph of the expansion.
            ranker: The model.
            disabled_features: Feature groups to leave out, for comparisons.
        """
        self._ranker, self._graph, self._disabled = ranker, graph, disabled_features
        self._id_rank: Rank = graph.index.id_rank
        self._features = Features(graph.index, graph, ranker.features)

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[RankedCandidates]:
        """Order all candidates of each query.

        Args:
            batch: The queries.
            candidates: One `ExpandedCandidates` per query.
            progress: Not called, because ranking is fast.

        Raises:
            TypeError: If the candidates were not expanded.
        """
        return [
            self._ranked(query, expanded(of_query), batch.known_references(position))
            for position, (query, of_query) in enumerate(
                zip(batch.queries, candidates, strict=True)
            )
        ]

    def _ranked(
        self, query: Query, candidates: ExpandedCandidates, cited: Sequence[int]
    ) -> RankedCandidates:
        matrix = self._features.matrix(query, candidates, cited)
        if self._disabled:
            matrix = without_groups(matrix, self._disabled)
        scores = self._ranker.score(matrix)
        hits = Hits.ordered(candidates.rows, scores, self._id_rank)
        probabilities = None
        if calibration := self._ranker.calibration:
            values = calibration.probabilities(hits.scores).astype(np.float32)
            probabilities = Hits(hits.rows, values)
        return RankedCandidates(
            hits,
            {**candidates.hits_by_source, NAME: hits},
            matrix=matrix,
            matrix_rows=candidates.rows,
            facts=Facts(self._graph, candidates.snapshot, candidates.neighbour_scores, cited),
            probabilities=probabilities,
        )


def expanded(candidates: CandidateSet) -> ExpandedCandidates:
    """Return candidates with the type of expanded candidates.

    Raises:
        TypeError: If the candidates are not expanded.
    """
    if not isinstance(candidates, ExpandedCandidates):
        raise TypeError(
            "the candidates are not expanded; run a CandidateExpander before this stage"
        )
    return candidates
