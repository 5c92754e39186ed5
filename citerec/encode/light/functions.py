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


def softmax(scores: States) -> States:
    """Return the softmax over the last axis."""
    powers = scores - scores.max(-1, keepdims=True)
    np.exp(powers, out=powers)
    powers /= powers.sum(-1, keepdims=True)
    return powers


def erf(values: States) -> States:
    """Return the error function of each value, in float32."""
    short = values.clip(-_ERF_END, _ERF_END)
    square = short * short
    return short * _polynomial(square, _ERF_P) / _polynomial(square, _ERF_Q)


def _polynomial(values: States, coefficients: tuple[float, ...]) -> States:
    total = np.full_like(values, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= values
        total += np.float32(coefficient)
    return total


def gelu(values: States) -> States:
    """Return x * Phi(x) for each value, Phi being the normal distribution's."""
    return values * np.float32(0.5) * (1 + erf(values * np.float32(1 / sqrt(2))))


def relu(values: States) -> States:
    """Return the positive part of each value."""
    return np.maximum(values, 0)


ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": relu}
