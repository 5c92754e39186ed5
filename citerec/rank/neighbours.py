"""What close papers say by their references: candidates from the citation graph, and a weight for each.

A close paper, a neighbour, weighs 1 / (k0 + rank), on a scale on which the best `neighbours` weigh 1 together. It
speaks for the papers that it cites (`cites`, and `closest` for the first few of them), for those that are cited
together with it (`co`), and for those that cite what it cites (`coupled`). Where nothing is known of a paper's
references, or of who cites it, it has nothing to say, and the next best is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import ExpandConfig
from citerec.rank.known import Counts, Flags, GraphSnapshot, Rows, Scores, TemporalGraph

Weights = npt.NDArray[np.float64]

CLOSEST = 10  # neighbours that speak for `closest`
_LEAST = 1e-6  # of a cosine: below it is what rounding leaves of none


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores:
    """What the neighbours of one query say."""

    rows: Rows
    cites: Scores  # share of the neighbours' weight that cites it, in [0, 1]
    closest: Scores  # likewise, of the first `CLOSEST`
    counts: Counts  # how many neighbours cite it
    co: Scores  # its cosines of co-citation with the neighbours, summed by their weight, in [0, 1]
    coupled: Scores  # likewise, of bibliographic coupling; 0 where its references are not known
    neighbours: Rows  # who was asked what they cite, closest first
    cited_neighbours: Rows  # those whose co-citations count, closest first

    @property
    def asked(self) -> int:
        """How many were asked."""
        return len(self.neighbours)

    def at(self, rows: Rows) -> Self:
        """Return the same of other rows, 0 where nothing is said; `self.rows` must rise."""
        place = np.searchsorted(self.rows, rows).clip(max=max(len(self.rows) - 1, 0))
        said = self.rows[place] == rows if len(self.rows) else np.zeros(len(rows), np.bool_)

        def of(values: Any) -> Any:
            mine = np.zeros(len(rows), values.dtype)
            mine[said] = values[place[said]]
            return mine

        columns = of(self.cites), of(self.closest), of(self.counts), of(self.co), of(self.coupled)
        return type(self)(rows, *columns, self.neighbours, self.cited_neighbours)


def neighbour_scores(
    known: TemporalGraph, snapshot: GraphSnapshot, lists: Sequence[Rows], config: ExpandConfig
) -> list[NeighbourScores]:
    """Ask the neighbours of queries that know the same citations.

    Co-citation of p and c is the cosine of who cites them: both / sqrt(cite p * cite c); coupling that of whom they
    cite. No matrix of all pairs is made: with W the weights, (W A^T) A and (W A) A^T.

    Args:
        known: The citation graph.
        snapshot: What these queries know of it.
        lists: For each query, the papers that the first stages found, best first.
        config: How many of these are neighbours, and what each weighs.

    Returns:
        One per query, in the order given, of all papers that anything is said of, rising.
    """
    citing = _weights(lists, snapshot.citing, config)
    first = replace(config, neighbours=min(CLOSEST, config.neighbours))
    said = {
        "cites": citing @ known.cites,
        "closest": _weights(lists, snapshot.citing, first) @ known.cites,
        "counts": _ones(citing) @ known.cites,
        "co": _co_cited(known, snapshot, _weights(lists, snapshot.counts > 0, config)),
        "coupled": _coupled(known, snapshot, citing),
    }
    for matrix in said.values():
        matrix.sort_indices()
    return [
        _merged(
            {name: _row(matrix, i) for name, matrix in said.items()},
            _best(rows, snapshot.citing, config),
            _best(rows, snapshot.counts > 0, config),
        )
        for i, rows in enumerate(lists)
    ]


def _best(rows: Rows, chosen: Flags, config: ExpandConfig) -> Rows:
    """Return the neighbours among some papers, the closest first: the first that are flagged."""
    return rows[chosen[rows]][: config.neighbours]


def _co_cited(known: TemporalGraph, snapshot: GraphSnapshot, weights: Any) -> Any:
    """Return the weighted co-citations of each paper, shape (queries, papers), none with itself."""
    size = np.sqrt(np.maximum(snapshot.counts, 1))
    shared = _scaled(weights, 1 / size) @ known.cited_by  # who cites the neighbours
    shared.data[~snapshot.citing[shared.indices]] = 0
    shared.eliminate_zeros()
    return _others(_scaled(shared @ known.cites, 1 / size), weights)


def _coupled(known: TemporalGraph, snapshot: GraphSnapshot, weights: Any) -> Any:
    """Return the weighted coupling of each paper, shape (queries, papers), none with itself."""
    size = np.sqrt(np.maximum(np.diff(known.cites.indptr), 1))
    both = _scaled((_scaled(weights, 1 / size) @ known.cites) @ known.cited_by, 1 / size)
    both.data[~snapshot.citing[both.indices]] = 0
    return _others(both, weights)


def _others(both: Any, weights: Any) -> Any:
    """Return cosines without those of each neighbour with itself, which are 1."""
    rest = both - weights
    rest.data[rest.data < _LEAST] = 0
    rest.eliminate_zeros()
    return rest


def _weights(lists: Sequence[Rows], able: Flags, config: ExpandConfig) -> Any:
    """Return what each neighbour weighs, a sparse matrix of shape (queries, papers)."""
    from scipy.sparse import csr_array

    places = [np.flatnonzero(able[rows])[: config.neighbours] for rows in lists]
    chosen = [rows[mine] for rows, mine in zip(lists, places, strict=True)]
    of_rank: Weights = 1 / (config.k0 + np.arange(1, max(map(len, lists), default=0) + 1))
    whole = (1 / (config.k0 + np.arange(1, config.neighbours + 1))).sum()
    data = of_rank[np.concatenate([*places, np.zeros(0, np.int64)])] / whole
    ends = np.cumsum([0, *map(len, chosen)])
    indices = np.concatenate([*chosen, np.zeros(0, np.int32)])
    return csr_array((data, indices, ends), shape=(len(lists), len(able)))


def _ones(matrix: Any) -> Any:
    other = matrix.copy()
    other.data[:] = 1
    return other


def _scaled(matrix: Any, by: Weights) -> Any:
    """Return a sparse matrix with each column scaled."""
    other = matrix.copy()
    other.data *= by[other.indices]
    return other


def _row(matrix: Any, i: int) -> tuple[Rows, Weights]:
    mine = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[mine].astype(np.int32), matrix.data[mine]


def _merged(
    said: Mapping[str, tuple[Rows, Weights]], neighbours: Rows, cited_neighbours: Rows
) -> NeighbourScores:
    rows = reduce(np.union1d, (mine for mine, _ in said.values()))
    columns: dict[str, Any] = {}
    for name, (mine, values) in said.items():
        columns[name] = np.zeros(len(rows), np.int32 if name == "counts" else np.float32)
        columns[name][np.searchsorted(rows, mine)] = values
    return NeighbourScores(
        rows=rows, **columns, neighbours=neighbours, cited_neighbours=cited_neighbours
    )
