"""The one door to scikit-learn, which is slow to import and comes without types."""

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a part of scikit-learn, such as `svm`."""
    return import_module(f"sklearn.{module}")


def one_thread() -> Any:
    """Return a context in which OpenMP has one thread: sums come in one order, so results are the same each time."""
    return import_module("threadpoolctl").threadpool_limits(1, user_api="openmp")
