"""The papers that the citation graph links with each candidate, and their similarity to a query.

Only citations that are known at the query's time count (`GraphSnapshot`). Of a paper with many links an even sample of
`MOST` is read, so that the time per query does not grow with the citations of the corpus.
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
    return sampled(graph.cited_by[rows], snapshot.citing)


def references(graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows) -> Links:
    """Return the known references of each paper of an earlier year than the query's."""
    cited = graph.cites[rows]
    is_known = np.repeat(snapshot.citing[rows], np.diff(cited.indptr))
    return sampled(cited, graph.index.papers.years < snapshot.year, is_known)


def either(one: Links, other: Links) -> Links:
    """Return the links of two kinds together; a paper that both have counts once."""
    both = (one + other).tocsr()
    both.data[:] = 1
    both.sort_indices()
    return both


def sampled(links: Links, mask: Flags, keep: Flags | None = None) -> Links:
    """Return an even sample of at most `MOST` links of each candidate.

    Args:
        links: The links to choose from.
        mask: The papers that may be linked, shape (papers,).
        keep: The links that may be chosen, in the order of `links.indices`; None for all.
    """
    chosen = mask[links.indices] if keep is None else mask[links.indices] & keep
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
    """Return the cosine of the query's vector and the mean vector of the linked papers, shape (candidates,).

    It is NaN for a candidate without links.
    """
    distinct, links = compact(links)
    sums = links @ _unit(query.of_papers(distinct))
    return np.where(np.diff(links.indptr) > 0, _unit(sums) @ _unit(query.values), np.nan).astype(
        np.float32
    )


def closest_similarity(query: QueryVector, links: Links) -> Scores:
    """Return the highest cosine of the query's vector and that of a linked paper, shape (candidates,); NaN without."""
    distinct, links = compact(links)
    cosines = _unit(query.of_papers(distinct)) @ _unit(query.values)
    best = np.full(links.shape[0], np.nan, np.float32)
    has_link = np.diff(links.indptr) > 0
    if has_link.any():
        best[has_link] = np.maximum.reduceat(cosines[links.indices], links.indptr[:-1][has_link])
    return best


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return vectors of length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
