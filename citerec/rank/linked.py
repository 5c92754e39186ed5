"""The papers that the citation graph links with each candidate, and their similarity to a query.

Only citations that are known at the query's time count (`GraphSnapshot`). Of a paper with many links an even sample of
`MOST` is compared; of its citing papers, at most `citedby.MOST` are read.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.rules.known import Flags, GraphSnapshot, Rows, Scores, TemporalGraph
from citerec.types import QueryVector

Links = Any  # a sparse matrix of ones in CSR form, shape (candidates, papers)

MOST = 100  # links of one candidate


def citers(graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows) -> Links:
    """Return the papers that are known to cite each paper."""
    links = _links(*graph.citers.lists(rows), graph)
    return thinned(links, snapshot.is_citing(links.indices))


def references(graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows) -> Links:
    """Return the known references of each paper of an earlier year than the query's."""
    links = _links(*graph.index.graph.lists(rows), graph)
    is_known = np.repeat(snapshot.is_citing(rows), np.diff(links.indptr))
    return thinned(links, (graph.index.papers.years[links.indices] < snapshot.year) & is_known)


def _links(columns: Rows, lengths: npt.NDArray[np.int64], graph: TemporalGraph) -> Links:
    from scipy.sparse import csr_array

    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    shape = (len(lengths), len(graph.index.papers))
    return csr_array((np.ones(len(columns), np.float32), columns, ends), shape=shape)


def either(one: Links, other: Links) -> Links:
    """Return the links of two kinds together; a paper that both have counts once."""
    both = (one + other).tocsr()
    both.data[:] = 1
    both.sort_indices()
    return both


def thinned(links: Links, chosen: Flags) -> Links:
    """Return an even sample of at most `MOST` of the chosen links of each candidate.

    Args:
        links: The links to choose from.
        chosen: The links that may be in the sample, in the order of `links.indices`.
    """
    links = _only(links, chosen)
    sizes = np.diff(links.indptr)
    if sizes.max(initial=0) <= MOST:
        return links
    place = np.arange(len(links.indices)) - np.repeat(links.indptr[:-1], sizes)
    size = np.repeat(sizes, sizes)
    share = np.minimum(MOST, size)
    return _only(links, place * share // size != (place - 1) * share // size)


def _only(links: Links, chosen: Flags) -> Links:
    from scipy.sparse import csr_array

    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])[links.indptr]
    return csr_array((links.data[chosen], links.indices[chosen], ends), shape=links.shape)


def compact(links: Links) -> tuple[Rows, Links]:
    """Return the distinct linked papers, rising, and the links with their positions as columns."""
    from scipy.sparse import csr_array

    distinct, columns = np.unique(links.indices, return_inverse=True)
    shape = (links.shape[0], len(distinct))
    return distinct.astype(np.int32), csr_array((links.data, columns, links.indptr), shape=shape)


def centroid_similarity(query: QueryVector, links: Links) -> Scores:
    """Return the cosine of the query's vector and the mean direction of the linked papers, shape (candidates,).

    Rounded vectors are read where there are any. It is NaN for a candidate without links.

    Args:
        query: The vector of the query.
        links: Ones at the links of each candidate.
    """
    sums = query.summed(links.indptr, links.indices)
    if sums is None:
        distinct, links = compact(links)
        vectors = query.of_papers(distinct)
        links.data = links.data / _lengths(vectors)[links.indices]
        sums = links @ vectors
    return np.where(np.diff(links.indptr) > 0, unit(sums) @ unit(query.values), np.nan).astype(
        np.float32
    )


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return vectors of length 1."""
    return vectors / _lengths(vectors)[..., None]


def _lengths(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the length of each vector, at least 1e-9; no copy of the vectors is made."""
    return np.maximum(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)), np.float32(1e-9))
