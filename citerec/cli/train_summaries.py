"""What the training commands print when they are done."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from citerec.train.job import TrainingReport
    from citerec.train.measures import Point
    from citerec.train.ranker.train import RankerReport


def summary(report: "TrainingReport") -> str:
    """Return the summary of the training of an encoder."""
    lines = [
        f"{report.output}",
        f"{report.queries:>12,}  train queries",
        f"{report.examples:>12,}  examples an epoch",
    ]
    points = {round(point.epoch): point for point in report.history}
    first, best = points.get(0), points.get(report.best)
    if first and best:
        lines += _changes(first, best, f"epoch {report.best}", "before training")
    return "\n".join(lines)


def _changes(first: "Point", best: "Point", place: str, compared: str) -> list[str]:
    """Return a line for each measure on dev, of the saved weights and of what they are compared with."""
    return [
        f"{getattr(best, name):>12.4f}  {shown} ({place}); {getattr(first, name):.4f} {compared}"
        for name, shown in (("dev_f1", "dev F1@20"), ("dev_mrr", "dev MRR"))
    ]


def reranker_summary(report: "TrainingReport") -> str:
    """Return the summary of the training of a reranker."""
    lines = [
        f"{report.output}",
        f"{report.queries:>12,}  train queries",
        f"{report.examples:>12,}  examples an epoch",
    ]
    points = {point.step: point for point in report.history}
    first, best = points.get(0), points.get(report.best)
    if first and best:
        lines += _changes(first, best, f"step {report.best}", "of the first stage")
    return "\n".join(lines)


def ranker_summary(report: "RankerReport") -> str:
    """Return the summary of the training of a learning-to-rank model."""
    before, after = report.before, next(iter(report.after.values()))
    lines = [f"{report.output}", f"{report.queries:>12,}  training queries"]
    for name, shown in (("f1@20", "dev F1@20"), ("mrr", "dev MRR")):
        lines.append(f"{after[name]:>12.4f}  {shown}; {before[name]:.4f} of the first stage")
    return "\n".join(lines)
