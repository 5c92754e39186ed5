"""NNSelect, the first stage of Citeomatic: the nearest papers and their references, ranked by similarity.

Source: Bhagavatula et al., NAACL 2018, section 3.1, https://arxiv.org/abs/1802.08301.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.encode.encoder import Encoder
from citerec.evaluate.catalogue import System
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.index.dense.scan import pairwise
from citerec.retrieve.dense import DenseRetriever
from citerec.rules.eligible import within
from citerec.rules.known import GraphSnapshot, TemporalGraph
from citerec.types import Eligibility, Hits, Query

Rows = npt.NDArray[np.int32]

NEAREST = 100  # nearest papers whose references are candidates


def nnselected(
    index: IndexFolder, eval_set: EvalSet, config: EvalConfig, encoder: Encoder | None
) -> list[Hits]:
    """Run NNSelect on an evaluation set; one list per query, in their order.

    Raises:
        ValueError: If there is no encoder.
    """
    if encoder is None:
        raise ValueError("NNSelect needs the encoder of the index")
    dense = DenseRetriever(index, encoder, config.dense)
    graph = TemporalGraph(index, config.known_graph)
    rules = eval_set.eligible
    return nn_select(index, dense, encoder, graph, eval_set.queries, rules, k=config.depth)


NNSELECT = System(search=nnselected, needs_vectors=True)


def nn_select(
    index: IndexFolder,
    dense: DenseRetriever,
    encoder: Encoder,
    graph: TemporalGraph,
    queries: Sequence[Query],
    eligible: Sequence[Eligibility],
    *,
    k: int,
    nearest: int = NEAREST,
) -> list[Hits]:
    """Return for each query the `k` most similar among its nearest papers and their references.

    Args:
        index: The index.
        dense: Retrieves the nearest papers.
        encoder: The encoder of the index.
        graph: The citation graph.
        queries: The queries.
        eligible: One per query; other papers are neither recommended nor expanded.
        k: Papers at most.
        nearest: Papers that are expanded.

    Raises:
        ValueError: If `k` or `nearest` is less than 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not queries:
        return []
    vectors, years = encoder.encode(queries), index.papers.years
    neighbours = dense.search(vectors, eligible, nearest)
    chosen: list[Hits] = []
    snapshots = graph.snapshots(queries, eligible)
    for vector, hits, rule, snapshot in zip(vectors, neighbours, eligible, snapshots, strict=True):
        rows = with_cited(hits.rows, graph.index.graph, snapshot)
        rows = rows[within(rule, years, rows)]
        scores = pairwise(vector, dense.vectors(rows), encoder.spec.similarity)
        chosen.append(Hits.ordered(rows, scores, index.id_rank, k))
    return chosen


def with_cited(rows: Rows, graph: Graph, snapshot: GraphSnapshot) -> Rows:
    """Return papers and the known references of those among them, rising, without duplicates.

    Args:
        rows: The papers.
        graph: The citations of the corpus.
        snapshot: The citations that are known for the query.
    """
    cited, _ = graph.lists(rows[snapshot.is_citing(rows)])
    return np.union1d(rows, cited).astype(np.int32)
