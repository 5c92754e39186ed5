"""Expansion: adds papers to the candidates that the neighbours of a query cite or are cited together with."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citerec.config import ExpandConfig
from citerec.fuse import Rank, rrf
from citerec.rank.neighbours import NeighbourScores, neighbour_scores
from citerec.rules.eligible import within
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph
from citerec.types import CandidateSet, Eligibility, Hits, Progress, QueryBatch, no_progress

EXPAND = "expand"  # the name of the hits of the expansion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedCandidates(CandidateSet):
    """The retrieved and the added candidates of one query, before a learning-to-rank model orders them.

    The order is the weighted reciprocal rank fusion of the retrieved list and the expansion.
    """

    neighbour_scores: NeighbourScores  # of each paper of `hits`, in its order
    snapshot: GraphSnapshot  # the citations that are known for the query


class CandidateExpander:
    """A stage that adds the papers that the neighbours of each query cite or are cited together with."""

    def __init__(self, graph: TemporalGraph, config: ExpandConfig | None = None) -> None:
        """Prepare; `graph` defines the known citations, `config` the number and the weights of neighbours."""
        self.config = config or ExpandConfig()
        self.graph = graph
        self._id_rank: Rank = graph.index.id_rank
        self._years = graph.index.papers.years

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[ExpandedCandidates]:
        """Add to each query the eligible papers that its neighbours cite or are cited together with.

        Args:
            batch: The queries. The known references of a query are its first neighbours.
            candidates: One candidate set per query; its first papers are the neighbours.
            progress: Not called, because expansion is fast.

        Returns:
            One per query, in the order given.
        """
        same: defaultdict[GraphSnapshot, list[int]] = defaultdict(list)
        for i, snapshot in enumerate(self.graph.snapshots(batch.queries, batch.eligible)):
            same[snapshot].append(i)
        expanded: dict[int, ExpandedCandidates] = {}
        for snapshot, positions in same.items():
            lists = [
                _closest_first(candidates[i].rows, batch.known_references(i)) for i in positions
            ]
            scores = neighbour_scores(self.graph, snapshot, lists, self.config)
            for i, of_query in zip(positions, scores, strict=True):
                expanded[i] = self._joined(batch.eligible[i], candidates[i], of_query, snapshot)
        return [expanded[i] for i in range(len(batch))]

    def _joined(
        self,
        rule: Eligibility,
        retrieved: CandidateSet,
        scores: NeighbourScores,
        snapshot: GraphSnapshot,
    ) -> ExpandedCandidates:
        added = self._added(rule, scores)
        hits = rrf([retrieved.hits, added], self._id_rank, weights=[1, self.config.weight])
        return ExpandedCandidates(
            hits=hits,
            hits_by_source={**retrieved.hits_by_source, EXPAND: added},
            neighbour_scores=scores.at(hits.rows),
            snapshot=snapshot,
            query_vector=retrieved.query_vector,
            sentences=retrieved.sentences,
        )

    def _added(self, rule: Eligibility, scores: NeighbourScores) -> Hits:
        """Return the eligible papers with a neighbour score above 0, highest first."""
        weight = scores.cites + scores.co
        keep = within(rule, self._years, scores.rows) & (weight > 0)
        rows, weight = scores.rows[keep], weight[keep]
        return Hits.ordered(rows, weight, self._id_rank, self.config.extra)


def _closest_first(retrieved: Rows, cited: Sequence[int]) -> Rows:
    """Return the known references, then the retrieved papers that are not among them."""
    known = np.array(sorted(cited), np.int32)
    return np.concatenate([known, retrieved[~np.isin(retrieved, known)]])
