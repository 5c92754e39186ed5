"""Fits the calibration of a learning-to-rank model on queries that it was not trained on, and measures calibrations.

The calibration is fitted on the best `TOP` papers of each complete candidate set, as users see them. The sampled lists
of the training have a much larger share of cited papers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.evaluate.calibration import Reliability, reliability
from citerec.rank.calibrate import TOP, Calibration, relative
from citerec.retrieve.fuse import sigmoid
from citerec.train.measures import F1_DEPTH, platt
from citerec.train.ranker.ablation import DevEvaluation
from citerec.train.ranker.examples import RankerExamples

LEAST = 20  # cited papers that a fit needs

Scores = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TopLists:
    """The best papers of several queries by a model, one list after the other."""

    scores: Scores  # relative to their list, see `relative`, shape (papers,)
    cited: Flags  # shape (papers,)

    @classmethod
    def of(cls, examples: RankerExamples, scores: Scores, top: int) -> "TopLists":
        """Take the best `top` papers of each query.

        Args:
            examples: Complete candidate sets.
            scores: Of each of their papers, by the model.
            top: The number of papers per query.
        """
        ends = np.cumsum(examples.sizes)[:-1]
        chosen = [np.zeros(0)]
        cited = [np.zeros(0, np.bool_)]
        pairs = zip(np.split(scores, ends), np.split(examples.cited, ends), strict=True)
        for values, flags in pairs if len(examples) else ():
            best = np.argsort(-values, kind="stable")[:top]
            chosen.append(relative(values)[best])
            cited.append(flags[best])
        return cls(np.concatenate(chosen), np.concatenate(cited))


def calibrated(evaluations: Sequence[DevEvaluation]) -> Calibration | None:
    """Fit a calibration.

    Args:
        evaluations: Models, each with complete candidate sets of queries that it was not trained on.

    Returns:
        The calibration; None if fewer than `LEAST` of the papers are cited.
    """
    lists = [
        TopLists.of(evaluation.dev, evaluation.trees.scores(evaluation.dev.matrix), TOP)
        for evaluation in evaluations
    ]
    return fitted(lists)


def fitted(lists: Sequence[TopLists]) -> Calibration | None:
    """Fit a calibration to lists of scores; None if too few papers are cited."""
    scores = np.concatenate([np.zeros(0), *(top.scores for top in lists)])
    cited = np.concatenate([np.zeros(0, np.bool_), *(top.cited for top in lists)])
    if cited.sum() < LEAST or cited.all():
        return None
    scale, offset = platt(scores, cited)
    return Calibration(scale=scale, offset=offset)


def measured_at_top(
    calibration: Calibration, examples: RankerExamples, scores: Scores, top: int = F1_DEPTH
) -> Reliability:
    """Measure a calibration on the best `top` papers of each query, which users see."""
    lists = TopLists.of(examples, scores, top)
    z = calibration.scale * lists.scores.astype(np.float64) + calibration.offset
    return reliability(sigmoid(z), lists.cited)
