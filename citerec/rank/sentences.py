"""What the title and the single sentences of a query say about each candidate.

Scores of different sentences have different scales, so each sentence's are standardised over the candidates: mean 0,
standard deviation 1.
"""

import numpy as np
import numpy.typing as npt

from citerec.config import RRF_K0
from citerec.rank.linked import unit
from citerec.rules.known import Scores

Table = npt.NDArray[np.float32]  # shape (sentences, candidates)

NEAR = 20  # closest candidates of a sentence, as many as a list of references shows
_LEAST = np.float32(1e-6)  # least standard deviation; smaller values are rounding errors


def cosines(sentences: npt.NDArray[np.float32], papers: npt.NDArray[np.float32]) -> Table:
    """Return the cosine of each sentence's vector and each paper's.

    Args:
        sentences: Shape (sentences, dim).
        papers: Shape (candidates, dim).
    """
    return unit(sentences) @ unit(papers).T


def reciprocal_ranks(table: Table) -> Table:
    """Return 1 / (60 + rank) of each candidate for each sentence, 0 for a score of 0; ties are in the given order."""
    order = np.argsort(-table, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, 1 + table.shape[1])[None], axis=1)
    return np.where(table > 0, 1 / (RRF_K0 + ranks), 0).astype(np.float32)


def standardised(table: Table) -> Table:
    """Scale the scores of each sentence to mean 0 and standard deviation 1; all 0 if they are equal."""
    spread = table.std(axis=1, keepdims=True)
    return (table - table.mean(axis=1, keepdims=True)) / np.maximum(spread, _LEAST)


def highest(table: Table) -> Scores:
    """Return each candidate's highest score for any sentence, shape (candidates,)."""
    return table.max(axis=0)


def near(table: Table) -> Scores:
    """Return of how many sentences each candidate is among the `NEAR` closest, shape (candidates,)."""
    best = np.argsort(-table, axis=1, kind="stable")[:, :NEAR]
    return np.bincount(best.ravel(), minlength=table.shape[1]).astype(np.float32)
