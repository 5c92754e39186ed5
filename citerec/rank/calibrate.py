"""Calibration: maps the scores of a ranker to probabilities that a paper is cited.

A ranker's scores order the papers of one query. Their level differs between queries and corpora, so the mean of the
best `TOP` scores of the list is subtracted. The probability is sigmoid(scale * (score - mean) + offset); Platt,
Advances in Large Margin Classifiers, 1999. It rises strictly with the score, so both give the same order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.retrieve.fuse import sigmoid
from citerec.rules.known import Scores

TOP = 100  # best scores of a list: their mean is subtracted, and the calibration is fitted on them


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Turns the scores of one list into probabilities."""

    scale: float  # above 0
    offset: float

    def __post_init__(self) -> None:
        if not (isfinite(self.scale) and isfinite(self.offset) and self.scale > 0):
            raise ValueError(
                f"a calibration needs a scale above 0 and a finite offset, got {self.scale} and {self.offset}"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read the JSON values of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: If `content` is not of this form.
        """
        if content["top"] != TOP:
            raise ValueError(f"a calibration reads the best {TOP} scores, got {content['top']}")
        return cls(scale=float(content["scale"]), offset=float(content["offset"]))

    def to_json(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        return {"top": TOP, "scale": self.scale, "offset": self.offset}

    def probabilities(self, scores: Scores) -> npt.NDArray[np.float64]:
        """Return the probability of each paper, shape (papers,); `scores` are those of one whole list, in any order."""
        return sigmoid(self.scale * relative(scores) + self.offset)


def relative(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Subtract the mean of the best `TOP` scores of one whole list, in any order; shape (papers,)."""
    wide = scores.astype(np.float64)
    return wide - np.sort(wide)[-TOP:].mean() if len(wide) else wide
