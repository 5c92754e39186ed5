"""Calibration: the share of cited papers by score and by rank, and the reliability of probabilities.

Scores of different systems, and of different queries of one system, have different scales. Therefore scores are first
scaled to [0, 1] within each ranking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from citerec.config import RANKING_DEPTH
from citerec.evaluate.significance import Floats
from citerec.run import Qrels, Run
from citerec.types import Ranking

SCORE_BINS = 10  # of equal width
RANKS = (
    1,
    2,
    4,
    6,
    11,
    21,
    51,
    101,
    201,
    501,
)  # first rank of each band; the last band ends at RANKING_DEPTH


@dataclass(frozen=True, slots=True)
class Band:
    """The papers within a band of scores or ranks, over all queries."""

    label: str
    papers: int  # at least 1
    cited: int
    at: float  # mean normalised score in [0, 1], or mean rank from 1

    @property
    def share(self) -> float:
        """The share of the papers that are cited, in [0, 1]."""
        return self.cited / self.papers


@dataclass(frozen=True, slots=True)
class CalibrationBands:
    """The share of cited papers of one system, by score and by rank."""

    scores: tuple[Band, ...] = ()  # by rising normalised score; empty bins are left out
    ranks: tuple[Band, ...] = ()  # by rising rank; empty bands are left out


@dataclass(frozen=True, slots=True)
class Reliability:
    """The agreement of probabilities and citations."""

    papers: int
    cited: float  # share of the papers that are cited, in [0, 1]
    mean: float  # of the probabilities, in [0, 1]
    ece: float  # expected calibration error, in [0, 1]; 0 is best
    brier: float  # mean squared difference of probability and outcome, in [0, 1]; 0 is best


def reliability(
    probabilities: Floats, cited: npt.NDArray[np.bool_], bins: int = SCORE_BINS
) -> Reliability:
    """Measure probabilities against citations; all values are 0 without a paper.

    The expected calibration error is the mean, over bins with equally many papers, of the difference between the mean
    probability and the share of cited papers.

    Args:
        probabilities: Shape (papers,).
        cited: Shape (papers,).
        bins: The number of bins.

    Source: Naeini et al., AAAI 2015, https://doi.org/10.1609/aaai.v29i1.9602.
    """
    if not len(cited):
        return Reliability(0, 0.0, 0.0, 0.0, 0.0)
    parts = np.array_split(np.argsort(probabilities, kind="stable"), min(bins, len(cited)))
    gaps = [abs(probabilities[part].mean() - cited[part].mean()) * len(part) for part in parts]
    return Reliability(
        papers=len(cited),
        cited=float(cited.mean()),
        mean=float(probabilities.mean()),
        ece=float(sum(gaps)) / len(cited),
        brier=float(((probabilities - cited) ** 2).mean()),
    )


def calibrate(run: Run, qrels: Qrels) -> CalibrationBands:
    """Count the papers and the cited papers at each score and rank, over the queries of `qrels`.

    Queries with an empty ranking are left out.
    """
    lists = [(ranking, qrels[qid]) for qid, ranking in run.rankings.items() if qid in qrels]
    lists = [(ranking, gold) for ranking, gold in lists if len(ranking)]
    if not lists:
        return CalibrationBands()
    is_cited = np.concatenate([_cited(ranking, gold) for ranking, gold in lists])
    score = np.concatenate([normalised(ranking.scores[:RANKING_DEPTH]) for ranking, _ in lists])
    rank = np.concatenate([np.arange(1, min(len(one), RANKING_DEPTH) + 1) for one, _ in lists])
    score_bin = np.minimum((score * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)
    rank_bin = np.searchsorted(RANKS, rank, side="right") - 1
    return CalibrationBands(
        _bands(score_bin, score, is_cited, _score_labels()),
        _bands(rank_bin, rank, is_cited, _rank_labels()),
    )


def normalised(scores: Sequence[float]) -> Floats:
    """Scale falling scores to [0, 1]: the first to 1, the last to 0; equal scores are all 1."""
    array = np.asarray(scores, np.float64)
    width = array[0] - array[-1]
    return (array - array[-1]) / width if width > 0 else np.ones_like(array)


def _cited(ranking: Ranking, gold: frozenset[str]) -> npt.NDArray[np.bool_]:
    return np.array([docid in gold for docid in ranking.ids[:RANKING_DEPTH]])


def _bands(
    number: npt.NDArray[np.int64],
    values: npt.NDArray[np.floating | np.integer],
    is_cited: npt.NDArray[np.bool_],
    labels: Sequence[str],
) -> tuple[Band, ...]:
    papers = np.bincount(number, minlength=len(labels)).tolist()
    cited = np.bincount(number[is_cited], minlength=len(labels)).tolist()
    total = np.bincount(number, weights=values, minlength=len(labels)).tolist()
    return tuple(
        Band(label, n, hits, sum_at / n)
        for label, n, hits, sum_at in zip(labels, papers, cited, total, strict=True)
        if n
    )


def _score_labels() -> list[str]:
    edges = [f"{edge / SCORE_BINS:.1f}" for edge in range(SCORE_BINS + 1)]
    return [f"{low}-{high}" for low, high in pairwise(edges)]


def _rank_labels() -> list[str]:
    ends = [start - 1 for start in RANKS[1:]] + [RANKING_DEPTH]
    return [str(a) if a == b else f"{a}-{b}" for a, b in zip(RANKS, ends, strict=True)]
