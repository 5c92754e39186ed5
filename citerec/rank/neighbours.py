"""Neighbour scores: candidates from the citation graph of the papers retrieved for a query, with weights.

The neighbours of a query are its first retrieved papers with known references (for co-citation: with known
citations). A neighbour has the weight 1 / (k0 + rank), normalised so that the weights of the first `neighbours` ranks
sum to 1. Its weight adds to the scores of the papers that it cites (`cites`; `closest` counts the first neighbours
only), of the papers that are co-cited with it (`co`), and of the papers that are bibliographically coupled with it
(`coupled`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import ExpandConfig
from citerec.rules.known import Counts, Flags, GraphSnapshot, Rows, Scores, TemporalGraph

Weights = npt.NDArray[np.float64]

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
    citing = _weights(lists, snapshot.citing, config)
    first = replace(config, neighbours=min(CLOSEST, config.neighbours))
    scores = {
        "cites": citing @ graph.cites,
        "closest": _weights(lists, snapshot.citing, first) @ graph.cites,
        "counts": _ones(citing) @ graph.cites,
        "co": _co_cited(graph, snapshot, _weights(lists, snapshot.counts > 0, config)),
        "coupled": _coupled(graph, snapshot, citing),
    }
    for matrix in scores.values():
        matrix.sort_indices()
    return [
        _merged(
            {name: _row(matrix, i) for name, matrix in scores.items()},
            _best(rows, snapshot.citing, config),
            _best(rows, snapshot.counts > 0, config),
        )
        for i, rows in enumerate(lists)
    ]


def _best(rows: Rows, mask: Flags, config: ExpandConfig) -> Rows:
    """Return the first `config.neighbours` papers that the mask selects."""
    return rows[mask[rows]][: config.neighbours]


def _co_cited(graph: TemporalGraph, snapshot: GraphSnapshot, weights: Any) -> Any:
    """Return the weighted co-citations of each paper, without those with itself, shape (queries, papers)."""
    size = np.sqrt(np.maximum(snapshot.counts, 1))
    shared = _scaled(weights, 1 / size) @ graph.cited_by  # the papers that cite the neighbours
    shared.data[~snapshot.citing[shared.indices]] = 0
    shared.eliminate_zeros()
    return _others(_scaled(shared @ graph.cites, 1 / size), weights)


def _coupled(graph: TemporalGraph, snapshot: GraphSnapshot, weights: Any) -> Any:
    """Return the weighted coupling of each paper, without that with itself, shape (queries, papers)."""
    size = np.sqrt(np.maximum(np.diff(graph.cites.indptr), 1))
    both = _scaled((_scaled(weights, 1 / size) @ graph.cites) @ graph.cited_by, 1 / size)
    both.data[~snapshot.citing[both.indices]] = 0
    return _others(both, weights)


def _others(both: Any, weights: Any) -> Any:
    """Subtract the cosine of each neighbour with itself, which is 1."""
    rest = both - weights
    rest.data[rest.data < _LEAST] = 0
    rest.eliminate_zeros()
    return rest


def _weights(lists: Sequence[Rows], mask: Flags, config: ExpandConfig) -> Any:
    """Return the weights of the neighbours, a sparse matrix of shape (queries, papers)."""
    from scipy.sparse import csr_array

    positions = [np.flatnonzero(mask[rows])[: config.neighbours] for rows in lists]
    neighbours = [rows[of_query] for rows, of_query in zip(lists, positions, strict=True)]
    of_rank: Weights = 1 / (config.k0 + np.arange(1, max(map(len, lists), default=0) + 1))
    whole = (1 / (config.k0 + np.arange(1, config.neighbours + 1))).sum()
    data = of_rank[np.concatenate([*positions, np.zeros(0, np.int64)])] / whole
    ends = np.cumsum([0, *map(len, neighbours)])
    indices = np.concatenate([*neighbours, np.zeros(0, np.int32)])
    return csr_array((data, indices, ends), shape=(len(lists), len(mask)))


def _ones(matrix: Any) -> Any:
    """Return a sparse matrix with all its values replaced by 1."""
    other = matrix.copy()
    other.data[:] = 1
    return other


def _scaled(matrix: Any, by: Weights) -> Any:
    """Return a sparse matrix with each column scaled."""
    other = matrix.copy()
    other.data *= by[other.indices]
    return other


def _row(matrix: Any, i: int) -> tuple[Rows, Weights]:
    entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[entries].astype(np.int32), matrix.data[entries]


def _merged(
    scores: Mapping[str, tuple[Rows, Weights]], neighbours: Rows, cited_neighbours: Rows
) -> NeighbourScores:
    rows = reduce(np.union1d, (of_score for of_score, _ in scores.values()))
    columns: dict[str, Any] = {}
    for name, (of_score, values) in scores.items():
        columns[name] = np.zeros(len(rows), np.int32 if name == "counts" else np.float32)
        columns[name][np.searchsorted(rows, of_score)] = values
    return NeighbourScores(
        rows=rows, **columns, neighbours=neighbours, cited_neighbours=cited_neighbours
    )
