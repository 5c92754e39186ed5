"""Measures of a ranking on dev queries: F1 and reciprocal rank, and the calibration of its scores."""

import numpy as np
import numpy.typing as npt

from citerec.retrieve.fuse import sigmoid

F1_DEPTH = 20
LEAST_SCALE = 1e-3  # above 0, so that a model worse than chance is not inverted

Scores = npt.NDArray[np.floating]


def f1_and_reciprocal_rank(
    scores: Scores,
    cited: npt.NDArray[np.bool_],
    gold: int,
    depth: int = F1_DEPTH,
) -> tuple[float, float]:
    """Return F1 at `depth` and 1 / rank of the first cited candidate, both in [0, 1]; 0 where none is cited.

    F1 is 2 * cited candidates among the first `depth` / (`depth` + `gold`). Of equal scores, those of cited candidates
    come last: a model that tells no candidates apart gains nothing.

    Args:
        scores: Of the candidates of one query, shape (candidates,); higher is better.
        cited: Whether the query cites each candidate, same shape.
        gold: How many papers the query cites, whether or not they are candidates; at least 0.
        depth: Ranks that F1 reads.
    """
    ranked = cited[np.lexsort((cited, -scores))]
    f1 = 2 * int(ranked[:depth].sum()) / (depth + gold)
    return f1, 1 / (int(ranked.argmax()) + 1) if ranked.any() else 0.0


def platt(scores: Scores, cited: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Fit the probability sigmoid(scale * score + offset) to what is cited (Platt scaling).

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

    def loss(at: Scores) -> tuple[float, Scores]:
        z = at[0] * x + at[1]
        gap = sigmoid(z) - targets
        value = np.mean(np.logaddexp(0, z) - targets * z)
        return float(value), np.array([np.mean(gap * x), np.mean(gap)])

    start = np.array([1.0, np.log(positives / negatives)])
    bounds = [(LEAST_SCALE, None), (None, None)]
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    scale = float(solution[0]) / spread
    return scale, float(solution[1]) - scale * centre
