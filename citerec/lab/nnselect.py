"""NNSelect, the first stage of Citeomatic: the nearest papers and what they cite, by similarity to the query.

Source: Bhagavatula et al., NAACL 2018, section 3.1, https://arxiv.org/abs/1802.08301.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.eligibility import within
from citerec.encode.encoder import Encoder
from citerec.evaluate.catalogue import System
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.index.dense.scan import pairwise
from citerec.rank.known import GraphSnapshot, TemporalGraph
from citerec.retrieve.dense import DenseRetriever
from citerec.types import Eligible, Hits, Query

Rows = npt.NDArray[np.int32]

NEAREST = 100  # papers whose citations are looked at


def nnselected(
    index: IndexFolder, task: EvalSet, setting: EvalConfig, encoder: Encoder | None
) -> list[Hits]:
    """Run NNSelect on an evaluation set; one list per query, in their order.

    Raises:
        ValueError: If there is no encoder.
    """
    if encoder is None:
        raise ValueError("NNSelect searches by vectors, so it needs the encoder of the index")
    dense = DenseRetriever(index, encoder, setting.dense)
    known = TemporalGraph(index, setting.known_graph)
    rules = task.eligible
    return nn_select(index, dense, encoder, known, task.queries, rules, k=setting.depth)


NNSELECT = System(search=nnselected, needs_vectors=True)


def nn_select(
    index: IndexFolder,
    dense: DenseRetriever,
    encoder: Encoder,
    known: TemporalGraph,
    queries: Sequence[Query],
    eligible: Sequence[Eligible],
    *,
    k: int,
    nearest: int = NEAREST,
) -> list[Hits]:
    """Return for each query the `k` most similar among its nearest papers and what those cite.

    Args:
        index: The index.
        dense: Finds the nearest.
        encoder: Whose vectors the index holds.
        known: Whose citations count, and of which year.
        queries: Any.
        eligible: One per query; nobody else is recommended, nor looked at for what it cites.
        k: Papers at most.
        nearest: Papers that are looked at.

    Raises:
        ValueError: If `k` or `nearest` is less than 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not queries:
        return []
    vectors, years = encoder.encode(queries), index.papers.years
    found = dense.search(vectors, eligible, nearest)
    chosen: list[Hits] = []
    snapshots = known.of(queries, eligible)
    for vector, hits, rule, then in zip(vectors, found, eligible, snapshots, strict=True):
        rows = with_cited(hits.rows, known.cites, then)
        rows = rows[within(rule, years, rows)]
        scores = pairwise(vector, dense.vectors(rows), encoder.spec.similarity)
        chosen.append(Hits.ordered(rows, scores, index.id_rank, k))
    return chosen


def with_cited(rows: Rows, cites: Any, known: GraphSnapshot) -> Rows:
    """Return papers and what those among them cite whose citations are known, rising, each once.

    Args:
        rows: The papers.
        cites: Who cites whom, a sparse matrix, shape (papers, papers).
        known: What is known at the query's time.
    """
    speaking = rows[known.citing[rows]]
    return np.union1d(rows, cites[speaking].indices).astype(np.int32)
