"""Neighbours in an embedding of the citation graph, as SciNCL samples them.

Source: Ostendorff et al., EMNLP 2022, https://arxiv.org/abs/2202.06671; its embedding of the graph is of another
kind (PyTorch-BigGraph), ours a truncated singular value decomposition.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists

BLOCK = 1024  # queries compared with every paper at once


def neighbours(data: TrainingData, first: int, last: int, *, dim: int, seed: int) -> Lists:
    """Return for each query its neighbours of rank `first` to `last`, nearest first.

    Ranked are the papers of the pool that are of no later year than the query and that the graph knows.

    Args:
        data: The queries and the graph of their citations.
        first: The first rank, from 1.
        last: The last.
        dim: Of the embedding.
        seed: Where the decomposition begins.
    """
    vectors = graph_vectors(data, dim=dim, seed=seed)
    linked: Flags = np.any(vectors, axis=1)
    known = np.flatnonzero(data.pool & linked).astype(np.int32)
    parts: list[Lists] = []
    for start in range(0, len(data.queries), BLOCK):
        rows = data.queries[start : start + BLOCK]
        scores = vectors[rows] @ vectors[known].T
        itself = np.equal(rows[:, None], known[None, :])
        out = ~data.eligible(rows[:, None], known[None, :]) | itself
        out[~linked[rows]] = True
        scores[out] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, first - 1 : last]
        there = np.isfinite(np.take_along_axis(scores, order, 1))
        owners, places = np.nonzero(there)
        parts.append(Lists.of(owners, known[order[owners, places]], len(rows)))
    return Lists.joined(parts)


def graph_vectors(data: TrainingData, *, dim: int, seed: int) -> npt.NDArray[np.float32]:
    """Embed the citation graph, shape (papers, dim): vectors of unit length, 0 for a paper without a link.

    They are the leading eigenvectors, weighted by their values, of the symmetric adjacency D^-1/2 (A + A^T) D^-1/2.
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
