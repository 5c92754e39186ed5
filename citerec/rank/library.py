"""The only import of lightgbm, which is slow."""

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


_OPTIONAL = (
    "pandas",
    "sklearn",
    "matplotlib",
    "graphviz",
    "dask",
)  # lightgbm imports them if they are installed


def load(*, hide_optional: bool = False) -> Any:
    """Import lightgbm.

    Args:
        hide_optional: Hide the optional libraries of lightgbm, whose import takes longer than its own. lightgbm does
            not use them until the process ends, so set it in a command only.
    """
    lightgbm = _import(hide_optional=hide_optional)
    lightgbm.register_logger(_Log())  # its default logger writes to stdout
    return lightgbm


class _Log:
    """Passes messages of LightGBM to the log of this module."""

    def info(self, message: str) -> None:
        """Log a message."""
        LOG.debug(message.strip())

    def warning(self, message: str) -> None:
        """Log a warning at level INFO, because it does not help the user of a recommendation."""
        LOG.info(message.strip())


def _import(*, hide_optional: bool) -> Any:
    if not hide_optional or not sys.modules.keys().isdisjoint({"lightgbm", *_OPTIONAL}):
        return import_module("lightgbm")
    hidden: dict[str, Any] = dict.fromkeys(_OPTIONAL)
    sys.modules.update(hidden)
    try:
        return import_module("lightgbm")
    finally:
        for name in _OPTIONAL:
            del sys.modules[name]


@dataclass(frozen=True, slots=True)
class Booster:
    """A model of boosted trees. It runs on one thread, which is fast enough for a candidate set."""

    model: Any  # a `lightgbm.Booster`

    def predict(self, inputs: Inputs) -> Inputs:
        """Return the score of each row, shape (rows,)."""
        return np.asarray(self.model.predict(inputs, num_threads=1), np.float64)

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Mask of the features that at least one tree reads, shape (features,)."""
        return np.asarray(self.model.feature_importance("split")) > 0

    def contributions(self, inputs: Inputs) -> Inputs:
        """Return what each feature adds to the score, shape (rows, features + 1); the last is the base."""
        return np.asarray(self.model.predict(inputs, pred_contrib=True, num_threads=1), np.float64)


def read_booster(file: Path, features: int) -> Booster:
    """Read a model that was saved as text.

    Raises:
        ModelError: If the file is not a valid model, or reads another number of features.
    """
    lightgbm = load()
    try:
        text = checked(read_record(file).decode("ascii"), features)
        model = lightgbm.Booster(model_str=text)
    except (OSError, ValueError, lightgbm.basic.LightGBMError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ModelError(f"{file} cannot be parsed ({reason}); train the ranker again") from error
    if model.num_feature() != features:
        raise ModelError(f"{file} reads {model.num_feature()} features, expected {features}")
    return Booster(model)
