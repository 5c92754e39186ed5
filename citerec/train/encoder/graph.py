"""Positives and hard negatives of the train queries from the citation graph, and from an embedding of it.

Source of the neighbours: Ostendorff et al., EMNLP 2022 (SciNCL), https://arxiv.org/abs/2202.06671. SciNCL embeds the
graph by PyTorch-BigGraph; citerec uses a truncated singular value decomposition.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.train.data import CHUNK, TrainingData
from citerec.train.encoder.counts import MAX_HARD, GradedLists, grades
from citerec.train.encoder.mine import MINE_FROM, MINE_TO
from citerec.train.lists import Flags, Lists

NEAREST = 5  # neighbours that are positives
GRAPH_DIM = 64  # dimensions of the embedding
BLOCK = 1024  # queries compared with every paper at once


def neighbours(
    data: TrainingData, first: int, last: int, *, seed: int, dim: int = GRAPH_DIM
) -> Lists:
    """Return for each query its neighbours of rank `first` to `last`, nearest first.

    Candidates are the papers of the pool that are of no later year and have a citation link.

    Args:
        data: The queries and the graph of their citations.
        first: The first rank, from 1.
        last: The last rank.
        seed: Of the start vector of the decomposition.
        dim: The dimensions of the embedding.
    """
    vectors = graph_vectors(data, dim=dim, seed=seed)
    linked: Flags = np.any(vectors, axis=1)
    candidates = np.flatnonzero(data.pool & linked).astype(np.int32)
    parts: list[Lists] = []
    for start in range(0, len(data.queries), BLOCK):
        rows = data.queries[start : start + BLOCK]
        scores = vectors[rows] @ vectors[candidates].T
        itself = np.equal(rows[:, None], candidates[None, :])
        excluded = ~data.eligible(rows[:, None], candidates[None, :]) | itself
        excluded[~linked[rows]] = True
        scores[excluded] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, first - 1 : last]
        finite = np.isfinite(np.take_along_axis(scores, order, 1))
        segment_ids, columns = np.nonzero(finite)
        parts.append(Lists.of(segment_ids, candidates[order[segment_ids, columns]], len(rows)))
    return Lists.joined(parts)


def distant_neighbours(data: TrainingData, *, seed: int) -> Lists:
    """Return the neighbours of rank `MINE_FROM` to `MINE_TO` of each query, without its references."""
    candidates = neighbours(data, MINE_FROM, MINE_TO, seed=seed)
    forbidden = data.forbidden(data.gold)
    return candidates.where(
        ~forbidden.holds(data.queries[candidates.segment_ids], candidates.indices)
    )


def graph_vectors(data: TrainingData, *, dim: int, seed: int) -> npt.NDArray[np.float32]:
    """Embed the citation graph, shape (papers, dim): unit vectors, or 0 for a paper without a link.

    The vectors are the leading singular vectors of the symmetric adjacency D^-1/2 (A + A^T) D^-1/2, times their values.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import svds

    links: Any = data.links
    both = ((links + links.T) > 0).astype(np.float64)
    degrees = np.asarray(both.sum(1)).ravel()
    scale = diags_array(np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1)), 0.0))
    adjacency = scale @ both @ scale
    start = np.random.default_rng([seed, 2]).standard_normal(data.papers)
    left, values, _ = svds(adjacency, k=min(dim, data.papers - 1), v0=start)
    vectors = left * values
    lengths = np.linalg.norm(vectors, axis=1)
    near_zero = (degrees == 0) | (lengths < 1e-9)
    vectors = vectors / np.where(near_zero, 1, lengths)[:, None]
    vectors[near_zero] = 0
    return vectors.astype(np.float32)


def cited_by_cited(data: TrainingData, *, most: int | None = MAX_HARD, seed: int = 0) -> Lists:
    """Return for each query the references of its references, without its own references and itself.

    Args:
        data: The queries; only references that are train queries have references themselves.
        most: Longer lists are cut to a random sample of this size; None for no limit.
        seed: Of the samples.

    Source: Cohan et al., ACL 2020, section 2.4, https://arxiv.org/abs/2004.07180.
    """
    rng = np.random.default_rng([seed, 1])
    parts: list[Lists] = []
    forbidden = data.forbidden(data.gold)
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        second_order = (data.links[rows] @ data.links).tocsr()
        second_order.sort_indices()
        lists = Lists(second_order.indptr.astype(np.int64), second_order.indices.astype(np.int32))
        lists = lists.where(~forbidden.holds(rows[lists.segment_ids], lists.indices))
        parts.append(lists if most is None else lists.shortened(most, rng))
    return Lists.joined(parts)


def co_cited(data: TrainingData, *, most: int | None = MAX_HARD, seed: int = 0) -> GradedLists:
    """Return for each query the papers that train queries cite together with it, graded by the number of co-citations.

    The papers are in the pool and of no later year; the most co-cited come first.

    Args:
        data: The queries.
        most: Longer lists of seldom co-cited papers are cut to a random sample of this size; None for no limit.
        seed: Of the samples.
    """
    rng = np.random.default_rng([seed, 4])
    parts: list[GradedLists] = []
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        counts = (data.links.T.tocsr()[rows] @ data.links).tocoo()
        order = np.lexsort((counts.col, -counts.data, counts.row))
        segment_ids, others = counts.row[order], counts.col[order].astype(np.int32)
        query_rows = rows[segment_ids]
        selected = data.pool[others] & (others != query_rows) & data.eligible(query_rows, others)
        segment_ids, others = segment_ids[selected], others[selected]
        often, seldom = grades(segment_ids, counts.data[order][selected], len(rows))
        least = Lists.of(segment_ids[seldom], others[seldom], len(rows))
        parts.append(
            GradedLists(
                Lists.of(segment_ids[often], others[often], len(rows)),
                least if most is None else least.shortened(most, rng),
            )
        )
    return GradedLists.joined(parts)
