"""Tests whether a tuned setting is better than the default: cross-validation over the queries, then a paired test.

The best of many settings looks better on the queries that selected it than on others. Therefore each query is measured
with the setting that is best on the other folds, and the default is compared with these values by Fisher's
randomisation test. The folds share the queries that they select by, so the test is approximate.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from citerec.evaluate.significance import ALPHA, Floats, randomisation_test

FOLDS = 10  # fewer where there are fewer queries
_EQUAL = 1e-12  # means closer than this are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """The default against tuning, by a metric in [0, 1]."""

    default: float  # mean over the queries
    tuned: float  # mean over the queries, each measured with the best setting of the other folds
    p: float  # two-sided, in (0, 1]
    queries: int
    folds: int

    @property
    def is_better(self) -> bool:
        """Whether tuning is significantly better than the default."""
        return self.tuned > self.default and self.p < ALPHA

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON values."""
        return {
            "default": self.default,
            "cross_validated": self.tuned,
            "p": self.p,
            "queries": self.queries,
            "folds": self.folds,
            "kept": self.is_better,
        }


def best_of(table: Floats, default: int) -> int:
    """Return the setting with the highest mean: the default if none is higher, otherwise the first of equal ones.

    Args:
        table: The metric of each query, shape (settings, queries).
        default: The row of the default.
    """
    means = table.mean(1) if table.shape[1] else np.zeros(len(table))
    if means[default] >= means.max() - _EQUAL:
        return default
    return int(np.argmax(means))


def cross_validate(table: Floats, default: int, *, seed: int = 0) -> CrossValidation:
    """Compare the default with tuning, each query measured with settings selected on other queries.

    Args:
        table: The metric of each query, shape (settings, queries); at least one query.
        default: The row of the default.
        seed: Of the folds and of the test.
    """
    queries = table.shape[1]
    folds = min(FOLDS, queries)
    rng = np.random.default_rng([seed, 12])
    fold = rng.permutation(np.arange(queries) % folds)
    tuned = np.empty(queries)
    for k in range(folds):
        held_out = fold == k
        tuned[held_out] = table[best_of(table[:, ~held_out], default), held_out]
    [p] = randomisation_test(tuned[:, None], table[default][:, None], lambda means: means, rng=rng)
    return CrossValidation(
        default=float(table[default].mean()),
        tuned=float(tuned.mean()),
        p=float(p),
        queries=queries,
        folds=folds,
    )
