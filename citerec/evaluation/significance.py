"""Uncertainty of means over queries: bootstrap intervals and paired tests.

All functions take an (n, m) table, one row per query and one column per measure, and a `Statistic` that computes
values from column means: the identity, or an F1 of mean precision and mean recall.

The tests of ranx are not used: its randomisation test draws in parallel threads, so a seed does not fix the result; it
can return p = 0; and it supports plain means only. SciPy's `permutation_test` resamples for each metric; the function
here tests all metrics at once and is tested against SciPy.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.files.arrays import Floats

Statistic = Callable[[Floats], Floats]
"""Maps (..., m) column means to (..., figures)."""

ALPHA = 0.05  # a p below it, corrected for the number of tests, is significant
RESAMPLES = 10_000
FOLDS = 10  # of a cross-validation; fewer where there are fewer queries
_CELLS = 2_000_000  # resamples x queries held at once: 16 MB in each array
# differences of scores in [0, 1] closer than this are equal but for rounding
_EQUAL = 1e-12


def bootstrap_interval(
    table: Floats,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Return a 95 % bootstrap confidence interval of each figure: queries are resampled with replacement.

    Returns (2, figures): lower and upper bound, percentiles of the resampled figures; n is at least 1.

    Source: Efron, Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    n = len(table)
    figures = list[Floats]()
    for size in _chunks(n):
        drawn = rng.integers(n, size=(size, n), dtype=np.int32)
        drawn += (np.arange(size, dtype=np.int32) * n)[:, None]
        # of each query
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        figures.append(statistic(counts.astype(np.float64) @ table / n))
    tail = (1 - 0.95) / 2
    return np.quantile(np.concatenate(figures), [tail, 1 - tail], axis=0)


def randomisation_test(
    a: Floats,
    b: Floats,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Test whether two systems differ, by swapping their scores query by query.

    p is the share of swaps with a difference at least as large as the observed one, in either direction. All swaps are
    tried if there are at most `RESAMPLES` of them; otherwise so many are drawn, and the observed one is counted among
    them, so that p is never 0.

    `a` and `b` are the (n, m) scores of the systems for the same queries. Returns p for each figure, in (0, 1]; 1 if
    the systems do not differ.

    Source: Fisher's test as in Smucker et al., CIKM 2007, https://doi.org/10.1145/1321440.1321528;
    counting the observed: Phipson, Smyth 2010, https://doi.org/10.2202/1544-6115.1585.
    """
    n = len(a)
    exact = 2**n <= RESAMPLES
    total = (a + b).mean(axis=0)
    difference = a - b

    def gap(signs: Floats) -> Floats:
        swapped = signs @ difference / n
        return np.abs(
            statistic((total + swapped) / 2) - statistic((total - swapped) / 2)
        )

    def swaps() -> Iterator[
        npt.NDArray[np.integer[Any]]
    ]:  # shape (swaps, n), 1 to swap a query
        if exact:
            yield np.arange(2**n)[:, None] >> np.arange(n) & 1
            return
        for size in _chunks(n):
            drawn = np.frombuffer(rng.bytes(size * n // 8 + 1), np.uint8)
            yield np.unpackbits(drawn, count=size * n).reshape(size, n)

    observed = gap(np.ones((1, n)))
    as_far = np.array(0)
    for bits in swaps():
        signs = 1.0 - 2.0 * bits.astype(np.float64)
        as_far = as_far + (gap(signs) >= observed - _EQUAL).sum(axis=0)
    return as_far / 2**n if exact else (as_far + 1) / (RESAMPLES + 1)


def best_of(table: Floats) -> int:
    """Return the setting with the highest mean: the first if none is higher, otherwise the first of equal ones.

    `table` holds the metric of each query, shape (settings, queries).
    """
    means = table.mean(1) if table.shape[1] else np.zeros(len(table))
    return 0 if means[0] >= means.max() - _EQUAL else int(np.argmax(means))


def cross_validate(table: Floats) -> tuple[float, float]:
    """Compare the first setting, the default, with settings that are selected on queries.

    The best of many settings looks better on the queries that selected it than on others. Therefore each query is
    measured with the setting that is best on the other folds. The folds share the queries that they select by, so the
    test is approximate.

    Args:
        table: As for `best_of`, with at least one query.

    Returns:
        The mean gain over the default, and p of Fisher's randomisation test.
    """
    queries = table.shape[1]
    folds = min(FOLDS, queries)
    rng = np.random.default_rng([0, 12])
    fold = rng.permutation(np.arange(queries) % folds)
    selected = np.empty(queries)
    for k in range(folds):
        held_out = fold == k
        selected[held_out] = table[best_of(table[:, ~held_out]), held_out]
    [p] = randomisation_test(
        selected[:, None], table[0][:, None], lambda means: means, rng=rng
    )
    return float(selected.mean() - table[0].mean()), float(p)


def student_test(a: Floats, b: Floats) -> float:
    """Test whether the means of two systems differ, by Student's paired t-test.

    Returns the two-sided p for the scores of the same queries, both of shape (n,); 1 if the systems do not differ or
    there is only one query.
    """
    if len(a) < 2 or np.array_equal(a, b):
        return 1.0
    from scipy import stats as untyped  # pyright: ignore[reportMissingTypeStubs]

    stats: Any = untyped
    with warnings.catch_warnings():
        # If the difference is the same for every query, the variance is 0: p is 0, and SciPy warns.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ttest_rel(a, b).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for multiple tests.

    The smallest of m values is multiplied by m, the next by m - 1, and so on; the results do not fall and are at most
    1.

    Source: Holm, Scandinavian Journal of Statistics 6(2), 1979.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in corrected]


def _chunks(n: int) -> Iterator[int]:
    step = max(1, _CELLS // n)
    for start in range(0, RESAMPLES, step):
        yield min(step, RESAMPLES - start)
