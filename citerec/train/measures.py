"""Measures of a training on dev queries: F1, reciprocal rank, calibration, the history and its best point."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from citerec.retrieve.fuse import sigmoid

F1_DEPTH = 20
LEAST_SCALE = 1e-3  # above 0, so that a model worse than chance is not inverted
RATE = "examples_per_second"  # in the log

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


class Unit(NamedTuple):
    """The names in the history of one kind of model."""

    point: str  # what a point is called, and its field: epoch or step
    start: str  # what point 0 is
    item: str  # whose rate is measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The measures after a number of updates; point 0 is before the training."""

    step: int
    epoch: float
    loss: float | None = None  # mean over the updates since the previous point
    dev_loss: float | None = None
    dev_mrr: float | None = None
    dev_f1: float | None = None
    dev_mixed: float | None = None
    items_per_second: float | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Point":
        """Read the measures from an entry of the log of transformers' Trainer."""
        return cls(
            step=entry["step"],
            epoch=round(entry["epoch"], 3),
            loss=entry.get("epoch_loss"),
            dev_loss=entry.get("eval_loss"),
            dev_mrr=entry.get("eval_mrr"),
            dev_f1=entry.get("eval_f1"),
            dev_mixed=entry.get("eval_mixed"),
            items_per_second=entry[RATE],
        )

    @classmethod
    def before(cls, measures: Mapping[str, float]) -> "Point":
        """Return the point before the training, with some measures."""
        return cls(step=0, epoch=0.0, **{f"dev_{name}": value for name, value in measures.items()})

    def number(self, unit: Unit) -> int:
        """Return the epoch or the update of the point."""
        return round(getattr(self, unit.point))

    def quality(self, metric: str) -> float | None:
        """Return a selection metric; higher is better. None if it was not measured."""
        return getattr(self, f"dev_{metric}")

    def text(self, unit: Unit) -> str:
        """Return the point as a line of a log."""
        measures = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "mixed": self.dev_mixed,
            f"{unit.item}/s": self.items_per_second,
        }
        figures = [f"{name} {value:.4g}" for name, value in measures.items() if value is not None]
        point = f"{unit.point} {self.number(unit)}" if self.step else unit.start
        return f"{point}: {', '.join(figures) or 'done'}"

    def to_json(self, unit: Unit) -> dict[str, Any]:
        """Return the measures as JSON values."""
        values = asdict(self)
        return values | {f"{unit.item}_per_second": values.pop("items_per_second")}


def first_best(qualities: Sequence[float]) -> int:
    """Return the position of the highest value, the first of equal ones; 0 if there is none."""
    return max(range(len(qualities)), key=lambda i: qualities[i], default=0)


def best_point(history: Sequence[Point], metric: str) -> Point | None:
    """Return the point of the saved weights: the one with the best measure, or the last one if nothing was measured.

    The point before the training does not count; None if there is no other.
    """
    trained = [point for point in history if point.step]
    measured = [point for point in trained if point.quality(metric) is not None]
    if measured:
        return measured[first_best([point.quality(metric) or 0.0 for point in measured])]
    return trained[-1] if trained else None
