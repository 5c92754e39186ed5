"""Personalised PageRank of two steps: the papers around the best candidates of a query.

A walker starts at one of the best candidates and follows a known citation at each step, from the citing to the cited
paper or back. It goes on with probability `DAMPING`, for two steps at most.

Source: Page et al. 1999, The PageRank citation ranking, http://ilpubs.stanford.edu:8090/422/.
"""

from dataclasses import replace

import numpy as np

from citerec.config import RRF_K0
from citerec.rank.product import SparseVector
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph

SEEDS = 10  # best candidates at which a walk starts
DAMPING = 0.85  # probability of each further step
STEPS = 2


def walk(graph: TemporalGraph, snapshot: GraphSnapshot, best: Rows) -> SparseVector:
    """Return how often a walk visits each paper after its start; papers that it does not visit are left out.

    Args:
        graph: The citation graph.
        snapshot: The known citations.
        best: The best candidates of one query; the first `SEEDS` with a known citation are the starts, weighted by
            1 / (`RRF_K0` + rank).
    """
    starts = best[snapshot.is_citing(best) | (snapshot.citations(best) > 0)][:SEEDS]
    weights = 1 / (RRF_K0 + np.arange(1, len(starts) + 1))
    here = SparseVector(starts, weights / max(weights.sum(), 1e-9))
    visits = SparseVector(starts[:0], weights[:0])
    for step in range(1, STEPS + 1):
        here = _step(graph, snapshot, here)
        visits = visits.plus(here.scaled((1 - DAMPING) * DAMPING**step), graph.scratch)
    return visits


def _step(graph: TemporalGraph, snapshot: GraphSnapshot, here: SparseVector) -> SparseVector:
    """Return the probability of each paper after one more step."""
    at, citations = here.rows, graph.index.graph
    is_citing = snapshot.is_citing(at)
    links = np.where(is_citing, citations.degrees(at), 0) + snapshot.citations(at)
    leaving = replace(here, weights=here.weights / np.maximum(links, 1))
    cited = leaving.only(is_citing).times(citations.lists, graph.scratch)
    citing = leaving.times(graph.citers.lists, graph.scratch)
    return cited.plus(citing.only(snapshot.is_citing(citing.rows)), graph.scratch)
