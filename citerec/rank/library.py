"""The one door to lightgbm, which is slow to import."""

import logging
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.entries import read_record
from citerec.errors import ModelError
from citerec.rank.treetext import checked

LOG = logging.getLogger(__name__)

Inputs = npt.NDArray[np.float64]  # shape (rows, features); NaN where a value is missing


_NEEDLESS = (
    "pandas",
    "sklearn",
    "matplotlib",
    "graphviz",
    "dask",
)  # lightgbm takes them if it finds them


def load(*, alone: bool = False) -> Any:
    """Import lightgbm.

    Args:
        alone: Without the libraries that it can work with, which take longer to import than itself. It will not
            know them for as long as the process lives: for a command, not for a library.
    """
    lightgbm = _import(alone=alone)
    lightgbm.register_logger(_Log())  # by itself it writes to stdout
    return lightgbm


class _Log:
    """Takes what LightGBM has to say to the log of this module."""

    def info(self, message: str) -> None:
        """Log a message."""
        LOG.debug(message.strip())

    def warning(self, message: str) -> None:
        """Log a warning: of no use to who recommends, so it is not shown."""
        LOG.info(message.strip())


def _import(*, alone: bool) -> Any:
    if not alone or not sys.modules.keys().isdisjoint({"lightgbm", *_NEEDLESS}):
        return import_module("lightgbm")
    hidden: dict[str, Any] = dict.fromkeys(_NEEDLESS)
    sys.modules.update(hidden)
    try:
        return import_module("lightgbm")
    finally:
        for name in _NEEDLESS:
            del sys.modules[name]


@dataclass(frozen=True, slots=True)
class Booster:
    """A model of boosted trees, which runs on one thread: a pool is scored in a moment."""

    model: Any  # of lightgbm

    def predict(self, inputs: Inputs) -> Inputs:
        """Return the score of each row, shape (rows,)."""
        return np.asarray(self.model.predict(inputs, num_threads=1), np.float64)

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Which features any tree asks for, shape (features,)."""
        return np.asarray(self.model.feature_importance("split")) > 0

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
        text = checked(read_record(file).decode("ascii"), features)
        model = lightgbm.Booster(model_str=text)
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelError(f"{file} cannot be made out ({reason}); train the ranker again") from error
    if model.num_feature() != features:
        raise ModelError(f"{file} reads {model.num_feature()} features, expected {features}")
    return Booster(model)
