"""F1 and the reciprocal rank of one query's ranked candidates, in NumPy: the trainings select models by their means."""

import numpy as np
import numpy.typing as npt

F1_DEPTH = 20


def f1_and_reciprocal_rank(
    scores: npt.NDArray[np.floating],
    cited: npt.NDArray[np.bool_],
    gold: int,
    depth: int = F1_DEPTH,
) -> tuple[float, float]:
    """Return F1 at `depth` and 1 / rank of the first cited candidate, both in [0, 1]; 0 where none is cited.

    F1 is 2 * cited candidates among the first `depth` / (`depth` + `gold`). Equal scores keep the order of the
    candidates.

    Args:
        scores: Of the candidates of one query, shape (candidates,); higher is better.
        cited: Whether the query cites each candidate, same shape.
        gold: How many papers the query cites, whether or not they are candidates; at least 0.
        depth: Ranks that F1 reads.
    """
    ranked = cited[np.argsort(-scores, kind="stable")]
    f1 = 2 * int(ranked[:depth].sum()) / (depth + gold)
    return f1, 1 / (int(ranked.argmax()) + 1) if ranked.any() else 0.0
