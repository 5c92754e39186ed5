"""Neighbours in an embedding of the citation graph, as SciNCL samples them.

Source: Ostendorff et al., EMNLP 2022, https://arxiv.org/abs/2202.06671. SciNCL embeds the graph by PyTorch-BigGraph;
citerec uses a truncated singular value decomposition.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists

BLOCK = 1024  # queries compared with every paper at once


def neighbours(data: TrainingData, first: int, last: int, *, dim: int, seed: int) -> Lists:
    """Return for each query its neighbours of rank `first` to `last`, nearest first.

    Candidates are the papers of the pool that are of no later year and have a citation link.

    Args:
        data: The queries and the graph of their citations.
        first: The first rank, from 1.
        last: The last rank.
        dim: The dimensions of the embedding.
        seed: Of the start vector of the decomposition.
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
