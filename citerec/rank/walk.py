"""Personalised PageRank of two steps: the papers around the best candidates of a query.

A walker starts at one of the best candidates and follows a known citation at each step, from the citing to the cited
paper or back. It goes on with probability `DAMPING`, for two steps at most.

Source: Page et al. 1999, The PageRank citation ranking, http://ilpubs.stanford.edu:8090/422/.
"""

from typing import Any

import numpy as np

from citerec.config import RRF_K0
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph

SEEDS = 10  # best candidates at which a walk starts
DAMPING = 0.85  # probability of each further step
STEPS = 2


def walk(graph: TemporalGraph, snapshot: GraphSnapshot, best: Rows) -> Any:
    """Return how often a walk visits each paper after its start, a sparse matrix of shape (1, papers).

    Args:
        graph: The citation graph.
        snapshot: The known citations.
        best: The best candidates of one query; the first `SEEDS` with a known citation are the starts, weighted by
            1 / (`RRF_K0` + rank).
    """
    from scipy.sparse import csr_array

    starts = best[snapshot.is_citing(best) | (snapshot.citations(best) > 0)][:SEEDS]
    weights = 1 / (RRF_K0 + np.arange(1, len(starts) + 1))
    weights /= max(weights.sum(), 1e-9)
    shape = (1, len(graph.index.papers))
    here = csr_array((weights, (np.zeros(len(starts), np.int32), starts)), shape=shape)
    visits = csr_array(shape, dtype=np.float64)
    for step in range(1, STEPS + 1):
        here = _step(graph, snapshot, here)
        visits = visits + (1 - DAMPING) * DAMPING**step * here
    return visits


def _step(graph: TemporalGraph, snapshot: GraphSnapshot, here: Any) -> Any:
    """Return the probability of each paper after one more step."""
    at, cites = here.indices, graph.cites
    is_citing = snapshot.is_citing(at)
    known = np.where(is_citing, cites.indptr[at + 1] - cites.indptr[at], 0)
    leaving = here.copy()
    leaving.data = leaving.data / np.maximum(known + snapshot.citations(at), 1)
    citing = leaving.copy()
    citing.data = np.where(is_citing, leaving.data, 0)
    back = leaving @ graph.cited_by
    back.data[~snapshot.is_citing(back.indices)] = 0
    return citing @ cites + back
