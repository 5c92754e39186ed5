"""Platt scaling: the scale and offset that turn scores into probabilities, fitted on the dev queries."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating]
LEAST_SCALE = 1e-3  # above 0, so that a model worse than chance is not inverted


def platt(scores: Numbers, cited: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Fit sigmoid(scale * score + offset) to what is cited.

    Args:
        scores: Shape (papers,).
        cited: Shape (papers,).

    Returns:
        Scale (above 0) and offset; (1, 0) if all papers or none are cited. The targets are smoothed as in the source.

    Source: Platt, Advances in Large Margin Classifiers, 1999.
    """
    from scipy.optimize import minimize

    positives = int(cited.sum())
    negatives = len(cited) - positives
    if not positives or not negatives:
        return 1.0, 0.0
    spread = max(float(np.std(scores)), 1e-6)
    centre = float(np.mean(scores))
    x = (scores.astype(np.float64) - centre) / spread
    targets = np.where(cited, (positives + 1) / (positives + 2), 1 / (negatives + 2))

    def loss(at: Numbers) -> tuple[float, Numbers]:
        z = at[0] * x + at[1]
        gap = 0.5 * (1 + np.tanh(z / 2)) - targets
        value = np.mean(np.logaddexp(0, z) - targets * z)
        return float(value), np.array([np.mean(gap * x), np.mean(gap)])

    start = np.array([1.0, np.log(positives / negatives)])
    bounds = [(LEAST_SCALE, None), (None, None)]
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    scale = float(solution[0]) / spread
    return scale, float(solution[1]) - scale * centre
