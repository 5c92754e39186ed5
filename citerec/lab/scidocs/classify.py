"""Classification: a linear SVM on the vectors alone, judged by macro F1 (SPECTER §3.1, §4)."""

import os
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from citerec.errors import ModelError
from citerec.index.dense.library import Vectors
from citerec.lab.scidocs.library import load
from citerec.lab.scidocs.ranking import has_vector

CS = tuple(10.0**power for power in range(-4, 3))
"""The values of C that are tried: those of the published suite, 1e-4 to 100."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVectors:
    """Papers and their classes."""

    vectors: Vectors  # shape (n, dim); a row that is not finite stands for no vector
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.labels):
            raise ValueError(f"{len(self.vectors)} vectors, but {len(self.labels)} labels")


@dataclass(frozen=True, slots=True)
class ClassificationScore:
    """How well classes are told by vectors."""

    f1: float  # macro F1 of the test examples, in [0, 1]
    c: float  # the chosen C
    validation: Mapping[float, float]  # macro F1 of the validation examples by C


def classify(
    train: LabelledVectors, validation: LabelledVectors, test: LabelledVectors, *, seed: int = 0
) -> ClassificationScore:
    """Train a linear SVM for each C, keep that of the best validation F1, and judge it on the test examples.

    As the paper has it, C is chosen on a held-out validation set (the published code crosses folds of the train
    examples, and leaves the validation file unread); the SVM is not trained again with the validation examples.
    Of equal C the smallest is taken. Vectors go in as they are, neither scaled nor centred; a paper without a vector
    has a vector of zeros, as in the published suite. Squared hinge loss, one against the rest.

    Args:
        train: What it learns from; at least two classes.
        validation: What C is chosen by.
        test: What it is judged by.
        seed: Of the solver, where it draws: it does not while there are more examples than dimensions.

    Raises:
        ValueError: If the train examples are of one class only.
        ModelError: If none of them has a vector.
    """
    if len(set(train.labels)) < 2:
        raise ValueError(f"one class only, {train.labels[:1]}; a classifier needs two")
    if not has_vector(train.vectors).any():
        raise ModelError(
            f"none of {len(train.labels)} train papers has a vector; expected one for each"
        )
    machines = _fitted(train, seed)
    f1 = {c: macro_f1(validation.labels, _told(m, validation)) for c, m in machines.items()}
    best = max(CS, key=lambda c: (f1[c], -c))
    return ClassificationScore(macro_f1(test.labels, _told(machines[best], test)), best, f1)


def macro_f1(truth: Sequence[str], told: Sequence[str]) -> float:
    """Return the mean F1 of all classes that are true or told of an example."""
    return float(load("metrics").f1_score(truth, told, average="macro", zero_division=0.0))


def _fitted(train: LabelledVectors, seed: int) -> dict[float, Any]:
    """Train one SVM for each C; side by side where the solver draws nothing, so that order cannot matter."""
    vectors, draws_nothing = _filled(train.vectors), len(train.labels) > train.vectors.shape[1]

    def fit(c: float) -> Any:
        machine = load("svm").LinearSVC(C=c, dual=not draws_nothing, random_state=seed)
        return machine.fit(vectors, train.labels)

    threads = min(len(CS), os.cpu_count() or 1) if draws_nothing else 1
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        # A large C may stop at 1000 rounds: its validation F1 says what it is worth.
        warnings.simplefilter("ignore", load("exceptions").ConvergenceWarning)
        return dict(zip(CS, pool.map(fit, CS), strict=True))


def _told(machine: Any, examples: LabelledVectors) -> list[str]:
    return machine.predict(_filled(examples.vectors)).tolist()


def _filled(vectors: Vectors) -> Any:
    return np.where(has_vector(vectors)[:, None], vectors, 0).astype(np.float64)
