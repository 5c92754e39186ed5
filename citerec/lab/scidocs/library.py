"""The only module that imports scikit-learn, which is slow to import and untyped."""

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a part of scikit-learn, such as `svm`."""
    return import_module(f"sklearn.{module}")


def one_thread() -> Any:
    """Return a context with one OpenMP thread: sums have a fixed order, so results are reproducible."""
    return import_module("threadpoolctl").threadpool_limits(1, user_api="openmp")
