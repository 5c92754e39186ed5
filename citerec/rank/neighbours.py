"""Neighbour scores: candidates from the citation graph of the papers retrieved for a query, with weights.

The neighbours of a query are its first retrieved papers with known references (for co-citation: with known
citations). A neighbour has the weight 1 / (k0 + rank), normalised so that the weights of the first `neighbours` ranks
sum to 1. Its weight adds to the scores of the papers that it cites (`cites`; `closest` counts the first neighbours
only), of the papers that are co-cited with it (`co`), and of the papers that are bibliographically coupled with it
(`coupled`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from citerec.config import ExpandConfig
from citerec.rank.product import SparseVector, Weights
from citerec.rules.known import Counts, Flags, GraphSnapshot, Rows, Scores, TemporalGraph

CLOSEST = 10  # neighbours that `closest` counts
_LEAST = 1e-6  # least cosine; smaller values are rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores:
    """The scores that the neighbours of one query give to papers; each array has the shape of `rows`."""

    rows: Rows  # the scored papers
    cites: Scores  # total weight of the neighbours that cite the paper, in [0, 1]
    closest: Scores  # likewise, for the first `CLOSEST` neighbours
    counts: Counts  # neighbours that cite the paper
    co: Scores  # weighted sum of its co-citation cosines with the neighbours, in [0, 1]
    coupled: Scores  # likewise, of bibliographic coupling; 0 if its references are unknown
    neighbours: Rows  # those with known references, closest first; shape (neighbours,)
    cited_neighbours: Rows  # those with known citations, closest first; shape (neighbours,)

    def at(self, rows: Rows) -> Self:
        """Return the scores of other rows, 0 for rows without a score; `self.rows` must rise."""
        position = np.searchsorted(self.rows, rows).clip(max=max(len(self.rows) - 1, 0))
        is_known = self.rows[position] == rows if len(self.rows) else np.zeros(len(rows), np.bool_)

        def of(values: Any) -> Any:
            column = np.zeros(len(rows), values.dtype)
            column[is_known] = values[position[is_known]]
            return column

        columns = of(self.cites), of(self.closest), of(self.counts), of(self.co), of(self.coupled)
        return type(self)(rows, *columns, self.neighbours, self.cited_neighbours)


def neighbour_scores(
    graph: TemporalGraph, snapshot: GraphSnapshot, lists: Sequence[Rows], config: ExpandConfig
) -> list[NeighbourScores]:
    """Compute the neighbour scores of queries with the same known citations.

    The co-citation of p and c is the cosine of their citing papers: common / sqrt(citing p * citing c). Coupling is the
    cosine of their references. With the weights W and the citation matrix A, the sums are (W A^T) A and (W A) A^T, so
    no matrix of all pairs is computed.

    Args:
        graph: The citation graph.
        snapshot: The known citations of these queries.
        lists: For each query, the retrieved papers, best first.
        config: The number of neighbours, and k0 of their weights.

    Returns:
        One per query, in the order given, for all papers with a score; rows rise.
    """
    return [_of_query(graph, snapshot, rows, config) for rows in lists]


def _of_query(
    graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows, config: ExpandConfig
) -> NeighbourScores:
    is_citing, is_cited = snapshot.is_citing(rows), snapshot.citations(rows) > 0
    citing = _weights(rows, is_citing, config)
    first = config.replace(neighbours=min(CLOSEST, config.neighbours))
    cites, scratch = graph.index.graph.lists, graph.scratch
    scores = {
        "cites": citing.times(cites, scratch),
        "closest": _weights(rows, is_citing, first).times(cites, scratch),
        "counts": citing.ones().times(cites, scratch),
        "co": _co_cited(graph, snapshot, _weights(rows, is_cited, config)),
        "coupled": _coupled(graph, snapshot, citing),
    }
    return _merged(
        {name: vector.ordered() for name, vector in scores.items()},
        rows[is_citing][: config.neighbours],
        rows[is_cited][: config.neighbours],
    )


def _co_cited(graph: TemporalGraph, snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted co-citations of each paper, without those with itself."""
    by_size = weights.scaled(1 / _cited_size(snapshot, weights.rows))
    shared = by_size.times(graph.citers.lists, graph.scratch)  # the papers that cite the neighbours
    shared = shared.only(snapshot.is_citing(shared.rows))
    both = shared.times(graph.index.graph.lists, graph.scratch)
    return _others(both.scaled(1 / _cited_size(snapshot, both.rows)), weights, graph.scratch)


def _cited_size(snapshot: GraphSnapshot, rows: Rows) -> Weights:
    """Return the square root of the known citations of each paper, at least 1."""
    return np.sqrt(np.maximum(snapshot.citations(rows), 1))


def _coupled(graph: TemporalGraph, snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted coupling of each paper, without that with itself."""
    citations = graph.index.graph

    def size(rows: Rows) -> Weights:
        return np.sqrt(np.maximum(citations.degrees(rows), 1))

    cited = weights.scaled(1 / size(weights.rows)).times(citations.lists, graph.scratch)
    both = cited.times(graph.citers.lists, graph.scratch)
    both = both.only(snapshot.is_citing(both.rows))
    return _others(both.scaled(1 / size(both.rows)), weights, graph.scratch)


def _others(both: SparseVector, weights: SparseVector, scratch: Rows) -> SparseVector:
    """Subtract the cosine of each neighbour with itself, which is 1."""
    scratch[weights.rows] = -1
    scratch[both.rows] = np.arange(len(both.rows), dtype=np.int32)
    place = scratch[weights.rows]
    rest = both.weights.copy()
    rest[place[place >= 0]] -= weights.weights[place >= 0]
    return replace(both, weights=rest).only(rest >= _LEAST)


def _weights(rows: Rows, mask: Flags, config: ExpandConfig) -> SparseVector:
    """Return the weights of the neighbours: the first papers of a list that a mask selects."""
    positions = np.flatnonzero(mask)[: config.neighbours]
    of_rank: Weights = 1 / (config.k0 + np.arange(1, len(rows) + 1))
    whole = (1 / (config.k0 + np.arange(1, config.neighbours + 1))).sum()
    return SparseVector(rows[positions], of_rank[positions] / whole)


def _merged(
    scores: Mapping[str, SparseVector], neighbours: Rows, cited_neighbours: Rows
) -> NeighbourScores:
    # sorted: much faster than the hashing of np.unique
    all_rows = np.sort(np.concatenate([vector.rows for vector in scores.values()]))
    rows = all_rows[np.concatenate([[True], all_rows[1:] != all_rows[:-1]])[: len(all_rows)]]
    columns: dict[str, Any] = {}
    for name, vector in scores.items():
        columns[name] = np.zeros(len(rows), np.int32 if name == "counts" else np.float32)
        columns[name][np.searchsorted(rows, vector.rows)] = vector.weights
    return NeighbourScores(
        rows=rows, **columns, neighbours=neighbours, cited_neighbours=cited_neighbours
    )
