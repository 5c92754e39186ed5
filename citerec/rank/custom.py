"""User-defined learning-to-rank models: objects that score a matrix of features."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from citerec.config import ExpandConfig
from citerec.errors import ConfigError
from citerec.rank.features import NAMES, Matrix
from citerec.rank.probability import Calibration


class RankModel(Protocol):
    """Scores candidates by their features."""

    def score(self, features: Matrix) -> npt.NDArray[np.floating]:
        """Return the score of each paper, shape (papers,); a higher one is better.

        Args:
            features: Shape (papers, len(NAMES)), columns as `citerec.rank.features.NAMES`; NaN where a source is
                missing.
        """
        ...


class LtrModel(Protocol):
    """A learning-to-rank model with the properties that the pipeline reads, such as `Ranker` and `CustomRanker`."""

    @property
    def features(self) -> Sequence[str]:
        """The features that the model reads; some of the others are not computed."""
        ...

    @property
    def expand(self) -> ExpandConfig:
        """How the candidates of the model are expanded."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """Maps its scores to probabilities; None without a calibration."""
        ...

    @property
    def reads_reranker(self) -> bool:
        """Whether the model reads the probabilities of a reranker."""
        ...

    @property
    def rerankers(self) -> Collection[str]:
        """The sha256 of the weights of the rerankers that it was trained with; empty if they are unknown."""
        ...

    @property
    def cross_fitted(self) -> bool:
        """Whether train queries were reranked, by models that were not trained on them."""
        ...

    def score(self, matrix: Matrix) -> npt.NDArray[np.float32]:
        """Return the score of each paper, shape (papers,)."""
        ...

    def contributions(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return what each feature adds to each score, shape (papers, len(NAMES) + 1); the last is the base."""
        ...


@dataclass(frozen=True, slots=True)
class CustomRanker:
    """A user-defined model in place of a trained one. It reads no reranker and has no calibration."""

    model: RankModel
    expand: ExpandConfig = ExpandConfig()
    calibration: Calibration | None = None
    reads_reranker: bool = False
    rerankers: tuple[str, ...] = ()
    cross_fitted: bool = False
    features: Sequence[str] = NAMES

    def __str__(self) -> str:
        return str(getattr(self.model, "name", "") or type(self.model).__name__)

    def score(self, matrix: Matrix) -> npt.NDArray[np.float32]:
        """Return the score of each paper, shape (papers,).

        Raises:
            ConfigError: If the model does not return one finite number per paper.
        """
        scores = np.asarray(self.model.score(matrix), np.float32)
        if scores.shape != (len(matrix),) or not np.isfinite(scores).all():
            raise ConfigError(
                f"{self}.score must return {len(matrix)} finite numbers, one per paper, got shape {scores.shape}"
            )
        return scores

    def contributions(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return 0 for each contribution, because they are unknown; shape (papers, len(NAMES) + 1)."""
        return np.zeros((len(matrix), len(NAMES) + 1))
