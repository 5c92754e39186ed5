"""What a score or a rank is worth: how often the papers that stand there are truly cited.

Scores of two systems, and of two queries of one system, share no scale. So a score is first put between the best of
its query's list (1) and the last (0).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from citerec.evaluate.significance import Floats
from citerec.run import Qrels, Run
from citerec.types import Ranking

DEPTH = 1000  # ranks that are read
SCORE_BINS = 10  # of equal width
RANKS = (1, 2, 4, 6, 11, 21, 51, 101, 201, 501)  # where each band starts; the last ends at DEPTH


@dataclass(frozen=True, slots=True)
class Band:
    """The papers that stand at some scores or ranks, over all queries."""

    label: str
    papers: int  # at least 1
    cited: int
    at: float  # where they stand in the mean: a normalised score in [0, 1], or a rank from 1

    @property
    def share(self) -> float:
        """The share of them that their query cites, in [0, 1]."""
        return self.cited / self.papers


@dataclass(frozen=True, slots=True)
class CalibrationBands:
    """How often what one system puts somewhere is cited."""

    scores: tuple[Band, ...] = ()  # by rising normalised score; a bin without papers is left out
    ranks: tuple[Band, ...] = ()  # by rising rank; likewise


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well probabilities agree with what is cited."""

    papers: int
    cited: float  # share of the papers that are cited, in [0, 1]
    mean: float  # of the probabilities, in [0, 1]
    ece: float  # expected calibration error, in [0, 1]; 0 is best
    brier: float  # mean squared difference of probability and outcome, in [0, 1]; 0 is best


def reliability(
    probabilities: Floats, cited: npt.NDArray[np.bool_], bins: int = SCORE_BINS
) -> Reliability:
    """Measure probabilities against what is cited; all figures are 0 without a paper.

    The expected calibration error is the mean, over bins that hold equally many papers, of the difference between the
    mean probability and the share that is cited.

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
    """Count, over the queries of `qrels`, what stands at each score and at each rank, and is cited.

    A query that the run finds nothing for counts nowhere: nothing stands there.
    """
    lists = [(ranking, qrels[qid]) for qid, ranking in run.rankings.items() if qid in qrels]
    lists = [(ranking, gold) for ranking, gold in lists if len(ranking)]
    if not lists:
        return CalibrationBands()
    is_cited = np.concatenate([_cited(ranking, gold) for ranking, gold in lists])
    score = np.concatenate([normalised(ranking.scores[:DEPTH]) for ranking, _ in lists])
    rank = np.concatenate([np.arange(1, min(len(one), DEPTH) + 1) for one, _ in lists])
    score_bin = np.minimum((score * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)
    rank_bin = np.searchsorted(RANKS, rank, side="right") - 1
    return CalibrationBands(
        _bands(score_bin, score, is_cited, _score_labels()),
        _bands(rank_bin, rank, is_cited, _rank_labels()),
    )


def normalised(scores: Sequence[float]) -> Floats:
    """Put falling scores between the first, 1, and the last, 0; equal ones are all 1."""
    array = np.asarray(scores, np.float64)
    width = array[0] - array[-1]
    return (array - array[-1]) / width if width > 0 else np.ones_like(array)


def _cited(ranking: Ranking, gold: frozenset[str]) -> npt.NDArray[np.bool_]:
    return np.array([docid in gold for docid in ranking.ids[:DEPTH]])


def _bands(
    number: npt.NDArray[np.int64],
    place: npt.NDArray[np.floating | np.integer],
    is_cited: npt.NDArray[np.bool_],
    labels: Sequence[str],
) -> tuple[Band, ...]:
    papers = np.bincount(number, minlength=len(labels)).tolist()
    cited = np.bincount(number[is_cited], minlength=len(labels)).tolist()
    total = np.bincount(number, weights=place, minlength=len(labels)).tolist()
    return tuple(
        Band(label, n, hits, together / n)
        for label, n, hits, together in zip(labels, papers, cited, total, strict=True)
        if n
    )


def _score_labels() -> list[str]:
    edges = [f"{edge / SCORE_BINS:.1f}" for edge in range(SCORE_BINS + 1)]
    return [f"{low}-{high}" for low, high in pairwise(edges)]


def _rank_labels() -> list[str]:
    ends = [start - 1 for start in RANKS[1:]] + [DEPTH]
    return [str(a) if a == b else f"{a}-{b}" for a, b in zip(RANKS, ends, strict=True)]
