"""What the title and the single sentences of a query say about each candidate.

Scores of different sentences have different scales, so each sentence's are standardised over the candidates: mean 0,
standard deviation 1.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from citerec.config import RRF_K0
from citerec.fuse import ranks_and_scores
from citerec.rank.linked import unit
from citerec.rules.known import Rows, Scores
from citerec.types import Hits

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


def found(hits_by_sentence: Sequence[Hits], rows: Rows) -> tuple[Table, Table]:
    """Return the score of each candidate among the hits of each sentence, and 1 / (60 + rank); 0 where not found."""
    pairs = [ranks_and_scores(hits, rows) for hits in hits_by_sentence]
    ranks = np.array([ranks for ranks, _ in pairs])
    scores = np.nan_to_num(np.array([scores for _, scores in pairs], np.float32))
    return scores, np.where(ranks > 0, 1 / (RRF_K0 + ranks), 0).astype(np.float32)


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
