"""How far a mean over queries can be trusted: bootstrap intervals and paired tests.

Everything here takes an (n, m) table, one row per query and one column per measure, and a `Statistic`
that makes figures of column means: the identity, or an F1 of mean precision and mean recall.

ranx has these tests, too, but its randomisation test draws inside parallel threads, so that a seed
does not fix the result, can answer p = 0, and knows only plain means. SciPy's `permutation_test` draws
anew for each metric; the one here serves all metrics at once and is tested against SciPy's.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Makes (..., figures) of (..., m) column means."""

RESAMPLES = 10_000
_CELLS = 2_000_000  # resamples x queries held at once: 16 MB in each array
_EQUAL = 1e-12  # differences of scores in [0, 1] closer than this are equal but for rounding


def bootstrap_interval(
    table: Floats,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Floats:
    """Estimate where each figure would lie with other queries: resample queries with replacement.

    Args:
        table: (n, m), with n at least 1.
        statistic: From m column means to figures.
        rng: What draws the resamples; the same state gives the same interval.
        resamples: How often.
        level: The share of resampled figures between the bounds.

    Returns:
        (2, figures): lower and upper bound, percentiles of the resampled figures.

    Source: Efron, Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    n = len(table)
    figures = [statistic(_draw_counts(rng, size, n) @ table / n) for size in _chunks(resamples, n)]
    tail = (1 - level) / 2
    return np.quantile(np.concatenate(figures), [tail, 1 - tail], axis=0)


def randomisation_test(
    a: Floats,
    b: Floats,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Floats:
    """Test whether two systems differ, by swapping their scores query by query.

    p is how often a swapped pair lies as far apart as the real one, to either side. Every way of
    swapping is tried where there are at most `resamples` of them, else `resamples` are drawn, and the
    one observed counts among them, so that p is never 0.

    Args:
        a: (n, m) scores of one system.
        b: (n, m) scores of the other, for the same queries.
        statistic: From m column means to figures.
        rng: What draws the swaps.
        resamples: How many.

    Returns:
        p for each figure, in (0, 1]; 1 where the systems do not differ.

    Source: Fisher's test as in Smucker et al., CIKM 2007, https://doi.org/10.1145/1321440.1321528;
    counting the observed: Phipson, Smyth 2010, https://doi.org/10.2202/1544-6115.1585.
    """
    n = len(a)
    exact = 2**n <= resamples
    total, difference = (a + b).mean(axis=0), a - b

    def gap(signs: Floats) -> Floats:
        swapped = signs @ difference / n
        return np.abs(statistic((total + swapped) / 2) - statistic((total - swapped) / 2))

    observed = gap(np.ones((1, n)))
    swaps = _all_signs(n) if exact else _drawn_signs(rng, resamples, n)
    as_far = sum(((gap(signs) >= observed - _EQUAL).sum(axis=0) for signs in swaps), np.array(0))
    return as_far / 2**n if exact else (as_far + 1) / (resamples + 1)


def student_test(a: Floats, b: Floats) -> float:
    """Test whether two systems' means differ, by Student's paired t-test.

    Args:
        a: (n,) scores of one system.
        b: (n,) scores of the other, for the same queries.

    Returns:
        The two-sided p; 1 where the systems do not differ or there is one query only.
    """
    if len(a) < 2 or np.array_equal(a, b):
        return 1.0
    from scipy import stats as untyped  # pyright: ignore[reportMissingTypeStubs]

    stats: Any = untyped
    with warnings.catch_warnings():
        # The same difference for every query has no variance: p is 0, and SciPy warns.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ttest_rel(a, b).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for having been given several chances.

    The smallest is multiplied by their number m, the next by m - 1, and so on; none may fall below
    one before it, or rise above 1.

    Source: Holm, Scandinavian Journal of Statistics 6(2), 1979.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in corrected]


def _chunks(resamples: int, n: int) -> Iterator[int]:
    step = max(1, _CELLS // n)
    for start in range(0, resamples, step):
        yield min(step, resamples - start)


def _draw_counts(rng: np.random.Generator, size: int, n: int) -> Floats:
    """Draw `n` of n queries `size` times; return (size, n), how often each was drawn."""
    drawn = rng.integers(n, size=(size, n), dtype=np.int32)
    drawn += (np.arange(size, dtype=np.int32) * n)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=size * n)
    return counts.reshape(size, n).astype(np.float64)


def _drawn_signs(rng: np.random.Generator, resamples: int, n: int) -> Iterator[Floats]:
    for size in _chunks(resamples, n):
        bits = np.unpackbits(np.frombuffer(rng.bytes(size * n // 8 + 1), np.uint8), count=size * n)
        yield _signs(bits.reshape(size, n))


def _all_signs(n: int) -> Iterator[Floats]:
    patterns = np.arange(2**n, dtype=np.int64)
    yield _signs(np.stack([patterns >> bit & 1 for bit in range(n)], axis=1))


def _signs(bits: npt.NDArray[np.integer[Any]]) -> Floats:
    return 1.0 - 2.0 * bits.astype(np.float64)
