"""The functions of a BERT between its matrices, in float32."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.float32]  # shape (tokens, hidden)
Activation = Callable[[States], States]

# erf(x) = x * P(x^2) / Q(x^2) for |x| < 3.75, beyond which it is 1 in float32; highest power first.
# Error below 1e-6 of erf. Source: Eigen, generic_fast_erf (https://gitlab.com/libeigen/eigen).
_ERF_END = 3.7439211627767994
_ERF_P = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_ERF_Q = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885),
    *(0.014070470171167667, 0.11098505178285362, 0.49746925110067538, 1.0),
)
_ROWS = 16  # computed at a time; of the widest matrix of MiniLM about 100 KB


def softmax(scores: States) -> States:
    """Return the softmax over the last axis; the scores are overwritten."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def erf(values: States) -> States:
    """Return the error function of each value, in float32; the values are overwritten."""
    np.clip(values, -_ERF_END, _ERF_END, out=values)
    square = values * values
    values *= _polynomial(square, _ERF_P)
    values /= _polynomial(square, _ERF_Q)
    return values


def _polynomial(values: States, coefficients: tuple[float, ...]) -> States:
    total = np.full_like(values, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= values
        total += np.float32(coefficient)
    return total


def gelu(values: States) -> States:
    """Return x * Phi(x) for each value, Phi being the normal distribution's; the values are overwritten.

    Rows are computed a few at a time: arrays of a megabyte come from the system anew each time, which takes longer
    than the arithmetic.
    """
    for start in range(0, len(values), _ROWS):
        rows = values[start : start + _ROWS]
        phi = erf(rows * np.float32(1 / sqrt(2)))
        phi += 1
        rows *= np.float32(0.5)
        rows *= phi
    return values


def relu(values: States) -> States:
    """Return the positive part of each value; the values are overwritten."""
    return np.maximum(values, 0, out=values)


ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": relu}
