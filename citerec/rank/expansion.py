"""Expansion: papers that the neighbours of a query cite join its candidates."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from citerec.config import ExpandConfig
from citerec.eligibility import within
from citerec.fuse import Rank, rrf
from citerec.rank.known import GraphSnapshot, Rows, TemporalGraph
from citerec.rank.neighbours import NeighbourScores, neighbour_scores
from citerec.types import CandidateSet, Eligible, Hits, Progress, QueryBatch, no_progress

EXPAND = "expand"  # the name of the hits that the neighbours contribute


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedCandidates(CandidateSet):
    """The candidates of one query and of its neighbours, before a learning-to-rank model orders them.

    Their order is that of a weighted reciprocal rank fusion of the retrieved list and the expansion.
    """

    neighbour_scores: NeighbourScores  # of each paper of `hits`, in its order
    snapshot: GraphSnapshot  # the citations that the query may know
    rerank_probabilities: Hits | None = (
        None  # of the papers that a reranker scored; None without one
    )


class CandidateExpander:
    """A stage that adds the papers which the neighbours of each query cite."""

    def __init__(self, graph: TemporalGraph, config: ExpandConfig | None = None) -> None:
        """Prepare; `graph` says whose citations count, `config` which candidates are neighbours."""
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
            batch: The references that a query is known to have are its first neighbours.
            candidates: One per query, deep enough to be ranked.
            progress: Not called: expansion takes a moment.

        Returns:
            One per query, in the order given.
        """
        same: defaultdict[GraphSnapshot, list[int]] = defaultdict(list)
        for i, snapshot in enumerate(self.graph.of(batch.queries, batch.eligible)):
            same[snapshot].append(i)
        expanded: dict[int, ExpandedCandidates] = {}
        for snapshot, places in same.items():
            lists = [_closest_first(candidates[i].rows, batch.known_references(i)) for i in places]
            scores = neighbour_scores(self.graph, snapshot, lists, self.config)
            for i, of_query in zip(places, scores, strict=True):
                expanded[i] = self._joined(batch.eligible[i], candidates[i], of_query, snapshot)
        return [expanded[i] for i in range(len(batch))]

    def _joined(
        self,
        rule: Eligible,
        retrieved: CandidateSet,
        scores: NeighbourScores,
        snapshot: GraphSnapshot,
    ) -> ExpandedCandidates:
        added = self._added(rule, scores)
        hits = rrf([retrieved.hits, added], self._id_rank, weights=[1, self.config.weight])
        return ExpandedCandidates(
            hits=hits,
            stages={**retrieved.stages, EXPAND: added},
            neighbour_scores=scores.at(hits.rows),
            snapshot=snapshot,
        )

    def _added(self, rule: Eligible, scores: NeighbourScores) -> Hits:
        """Return the eligible papers with a neighbour score above 0, highest first."""
        weight = scores.cites + scores.co
        keep = within(rule, self._years, scores.rows) & (weight > 0)
        rows, weight = scores.rows[keep], weight[keep]
        order = np.lexsort((self._id_rank[rows], -weight))[: self.config.extra]
        return Hits(rows[order], weight[order])


def _closest_first(retrieved: Rows, cited: Sequence[int]) -> Rows:
    """Return the known references, then the retrieved papers that are not among them."""
    known = np.array(sorted(cited), np.int32)
    return np.concatenate([known, retrieved[~np.isin(retrieved, known)]])
