"""Classification: a linear SVM on the vectors, measured by macro F1 (SPECTER, sections 3.1 and 4).

The only module that imports scikit-learn, which is slow to import and untyped.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from citerec.errors import ModelError, extra
from citerec.files.arrays import Vectors
from citerec.lab.scidocs.ranking import has_vector


def load(module: str) -> Any:
    """Import a part of scikit-learn, such as `svm`; MissingExtraError if it is not installed."""
    with extra("lab"):
        return import_module(f"sklearn.{module}")


def one_thread() -> Any:
    """Return a context with one OpenMP thread: sums have a fixed order, so results are reproducible."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="openmp")


CS = tuple(10.0**power for power in range(-4, 3))
"""The values of C in the grid: those of the published suite, 1e-4 to 100."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVectors:
    """Vectors of papers and their classes."""

    vectors: Vectors  # shape (n, dim); a row that is not finite means no vector
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.labels):
            raise ValueError(
                f"{len(self.vectors)} vectors, but {len(self.labels)} labels"
            )


@dataclass(frozen=True, slots=True)
class ClassificationScore:
    """The score of a classification task."""

    f1: float  # macro F1 of the test examples, in [0, 1]
    c: float  # the chosen C
    validation: Mapping[float, float]  # macro F1 of the validation examples by C


def classify(
    train: LabelledVectors,
    validation: LabelledVectors,
    test: LabelledVectors,
    *,
    seed: int = 0,
) -> ClassificationScore:
    """Train a linear SVM for each C, select the best by validation F1, and measure it on the test examples.

    As in the paper, C is selected on a held-out validation set (the published code cross-validates on the train
    examples instead); the SVM is not trained again with the validation examples. Of equal values of C the smallest is
    selected. Vectors are neither scaled nor centred; a missing vector is zero, as in the published suite. Squared hinge
    loss, one against the rest.

    Args:
        train: The training examples, of at least two classes.
        validation: Selects C.
        test: The test examples.
        seed: Of the solver; it draws only if there are not more examples than dimensions.

    Raises:
        ValueError: If the train examples have only one class.
        ModelError: If no train example has a vector.
    """
    if len(set(train.labels)) < 2:
        raise ValueError(f"one class only, {train.labels[:1]}; a classifier needs two")
    if not has_vector(train.vectors).any():
        raise ModelError(
            f"none of {len(train.labels)} train papers has a vector; expected one for each"
        )
    machines = _fitted(train, seed)
    f1 = {
        c: macro_f1(validation.labels, _predicted(m, validation))
        for c, m in machines.items()
    }
    best = max(CS, key=lambda c: (f1[c], -c))
    return ClassificationScore(
        macro_f1(test.labels, _predicted(machines[best], test)), best, f1
    )


def macro_f1(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the mean F1 over all true and predicted classes."""
    return float(
        load("metrics").f1_score(truth, predicted, average="macro", zero_division=0.0)
    )


def _fitted(train: LabelledVectors, seed: int) -> dict[float, Any]:
    """Train one SVM for each C; in parallel if the solver draws nothing, so that the order does not matter."""
    vectors = _filled(train.vectors)
    draws_nothing = len(train.labels) > train.vectors.shape[1]

    def fit(c: float) -> Any:
        machine = load("svm").LinearSVC(C=c, dual=not draws_nothing, random_state=seed)
        return machine.fit(vectors, train.labels)

    threads = min(len(CS), os.cpu_count() or 1) if draws_nothing else 1
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        # A large C may stop at 1000 iterations; its validation F1 is measured anyway.
        warnings.simplefilter("ignore", load("exceptions").ConvergenceWarning)
        return dict(zip(CS, pool.map(fit, CS), strict=True))


def _predicted(machine: Any, examples: LabelledVectors) -> list[str]:
    return machine.predict(_filled(examples.vectors)).tolist()


def _filled(vectors: Vectors) -> Any:
    return np.where(has_vector(vectors)[:, None], vectors, 0).astype(np.float64)
