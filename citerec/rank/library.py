"""The one door to lightgbm, which is slow to import."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ModelError

Inputs = npt.NDArray[np.float64]  # shape (rows, features); NaN where a value is missing


def load() -> Any:
    """Import lightgbm."""
    return import_module("lightgbm")


@dataclass(frozen=True, slots=True)
class Booster:
    """A model of boosted trees, which runs on one thread: a pool is scored in a moment."""

    model: Any  # of lightgbm

    def predict(self, inputs: Inputs) -> Inputs:
        """Return the score of each row, shape (rows,)."""
        return np.asarray(self.model.predict(inputs, num_threads=1), np.float64)

    def contributions(self, inputs: Inputs) -> Inputs:
        """Return what each feature adds to the score, shape (rows, features + 1); the last is the base."""
        return np.asarray(self.model.predict(inputs, pred_contrib=True, num_threads=1), np.float64)


def read_booster(file: Path, features: int) -> Booster:
    """Read a model that was saved as text.

    Raises:
        ModelError: If it cannot be made out, or does not read so many features.
    """
    lightgbm = load()
    try:
        model = lightgbm.Booster(model_str=file.read_text(encoding="utf-8"))
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        raise ModelError(f"{file} cannot be made out; train the ranker again") from error
    if model.num_feature() != features:
        raise ModelError(f"{file} reads {model.num_feature()} features, expected {features}")
    return Booster(model)
