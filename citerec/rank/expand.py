"""What close papers say by their references: candidates from the citation graph, and a weight for each.

A close paper, a neighbour, weighs 1 / (k0 + rank), on a scale on which the best `neighbours` weigh 1 together. It
speaks for the papers that it cites (`cites`), and for those that are cited together with it (`co`). Where nothing is
known of a paper's references, or of who cites it, it has nothing to say, and the next best is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import ExpandConfig
from citerec.rank.known import AsOf, Counts, Flags, KnownCitations, Rows, Scores

Weights = npt.NDArray[np.float64]

_LEAST = 1e-6  # of a co-citation: below it is what rounding leaves of none


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the neighbours of one query say."""

    rows: Rows
    cites: Scores  # share of the neighbours' weight that cites it, in [0, 1]
    counts: Counts  # how many neighbours cite it
    co: Scores  # its cosines of co-citation with the neighbours, summed by their weight, in [0, 1]
    asked: int  # how many neighbours were asked what they cite

    def at(self, rows: Rows) -> Self:
        """Return the same of other rows, 0 where nothing is said; `self.rows` must rise."""
        place = np.searchsorted(self.rows, rows).clip(max=max(len(self.rows) - 1, 0))
        said = self.rows[place] == rows if len(self.rows) else np.zeros(len(rows), np.bool_)

        def of(values: Any) -> Any:
            mine = np.zeros(len(rows), values.dtype)
            mine[said] = values[place[said]]
            return mine

        return type(self)(rows, of(self.cites), of(self.counts), of(self.co), self.asked)


def evidence(
    known: KnownCitations, as_of: AsOf, lists: Sequence[Rows], config: ExpandConfig
) -> list[Evidence]:
    """Ask the neighbours of queries that know the same citations.

    Co-citation of p and c is the cosine of who cites them: both / sqrt(cite p * cite c). No matrix of all pairs is
    made: with W the weights, (W A^T) A.

    Args:
        known: The citation graph.
        as_of: What these queries know of it.
        lists: For each query, the papers that the first stages found, best first.
        config: How many of these are neighbours, and what each weighs.

    Returns:
        One per query, in the order given, of all papers that anything is said of, rising.
    """
    citing = _weights(lists, as_of.citing, config)
    cites, counts = citing @ known.cites, _ones(citing) @ known.cites
    cited = _weights(lists, as_of.counts > 0, config)
    co = _co_cited(known, as_of, cited)
    for matrix in (cites, counts, co):
        matrix.sort_indices()
    asked = np.diff(citing.indptr).tolist()
    return [
        _merged(_row(cites, i), _row(counts, i), _row(co, i), asked[i]) for i in range(len(lists))
    ]


def _co_cited(known: KnownCitations, as_of: AsOf, weights: Any) -> Any:
    """Return the weighted co-citations of each paper, shape (queries, papers), none with itself."""
    size = np.sqrt(np.maximum(as_of.counts, 1))
    shared = _scaled(weights, 1 / size) @ known.cited_by  # who cites the neighbours
    shared.data[~as_of.citing[shared.indices]] = 0
    shared.eliminate_zeros()
    both = _scaled(shared @ known.cites, 1 / size) - weights  # of which each is 1 with itself
    both.data[both.data < _LEAST] = 0
    both.eliminate_zeros()
    return both


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
    cites: tuple[Rows, Weights],
    counts: tuple[Rows, Weights],
    co: tuple[Rows, Weights],
    asked: int,
) -> Evidence:
    rows = np.union1d(cites[0], co[0])
    columns = [np.zeros(len(rows)) for _ in range(3)]
    for column, (at, values) in zip(columns, (cites, counts, co), strict=True):
        column[np.searchsorted(rows, at)] = values
    shares, numbers, cosines = columns
    return Evidence(
        rows,
        shares.astype(np.float32),
        numbers.astype(np.int32),
        cosines.astype(np.float32),
        asked,
    )
