"""Learning to rank: features of the expanded candidates, and the model that orders them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.encode.light.one_thread import one_blas_thread
from citerec.fuse import Rank, ranks_and_scores
from citerec.rank.catalogue import NAMES
from citerec.rank.custom import LtrModel
from citerec.rank.expansion import ExpandedCandidates
from citerec.rank.facts import Facts
from citerec.rank.features import Features, Group, Matrix, without_groups
from citerec.rerank.cascade import NAME as RERANK
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

    def reordered(
        self, ranked: RankedCandidates, scored: Hits, hits_by_reranker: Mapping[str, Hits]
    ) -> RankedCandidates:
        """Order candidates again, with the probabilities of a reranker.

        Args:
            ranked: The candidates in the order of the model without them.
            scored: The papers that the reranker scored, with their probabilities.
            hits_by_reranker: By name, the papers that each reranker scored, with its scores.
        """
        matrix = with_rerank_feature(ranked.matrix, ranked.matrix_rows, scored)
        before = {name: hits for name, hits in ranked.hits_by_source.items() if name != NAME}
        return self._ordered(
            matrix, ranked.matrix_rows, {**before, **hits_by_reranker}, ranked.facts
        )

    def _ranked(
        self, query: Query, candidates: ExpandedCandidates, cited: Sequence[int]
    ) -> RankedCandidates:
        with one_blas_thread():  # on more threads its sums differ in the last bits
            matrix = self._features.matrix(query, candidates, cited)
        if self._disabled:
            matrix = without_groups(matrix, self._disabled)
        facts = Facts(self._graph, candidates.snapshot, candidates.neighbour_scores, cited)
        return self._ordered(matrix, candidates.rows, candidates.hits_by_source, facts)

    def _ordered(
        self, matrix: Matrix, rows: Rows, hits_by_source: Mapping[str, Hits], facts: Facts
    ) -> RankedCandidates:
        scores = self._ranker.score(matrix)
        hits = Hits.ordered(rows, scores, self._id_rank)
        probabilities = None
        if calibration := self._ranker.calibration:
            values = calibration.probabilities(hits.scores).astype(np.float32)
            probabilities = Hits(hits.rows, values)
        return RankedCandidates(
            hits,
            {**hits_by_source, NAME: hits},
            matrix=matrix,
            matrix_rows=rows,
            facts=facts,
            probabilities=probabilities,
        )


def with_rerank_feature(matrix: Matrix, rows: Rows, scored: Hits) -> Matrix:
    """Return features with the probabilities of a reranker.

    Args:
        matrix: The features, shape (papers, features).
        rows: The papers of `matrix`, in its order.
        scored: The papers that the reranker scored, with their probabilities.
    """
    matrix = matrix.copy()
    matrix[:, NAMES.index(RERANK)] = ranks_and_scores(scored, rows)[1]
    return matrix


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
