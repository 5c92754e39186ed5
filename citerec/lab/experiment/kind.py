"""The kinds of rows, and the measures of each."""

from collections.abc import Mapping
from enum import StrEnum

from citerec.evaluate.metrics import METRICS


class ExperimentKind(StrEnum):
    """The kind of a row."""

    RECOMMEND = "recommend"  # a system answers the queries of a split
    STATISTICS = "statistics"  # the statistics of a corpus
    SCIDOCS = "scidocs"  # an encoder on the seven tasks of the published data
    INDEX_TASKS = "index-tasks"  # an encoder on similar tasks built from a corpus
    TOPICS = "topics"  # the separation of topics in a map of an encoder's vectors
    PUBLISHED = "published"  # published values only; nothing is run


class Needs(StrEnum):
    """A resource without which a row is not run."""

    GPU = "gpu"  # its training would take weeks on a CPU


PAIRS = ("map", "ndcg")  # measures of a ranking task
COUNTS = (
    "papers",
    "with abstract",
    "citations",
    "citing papers",
    "train queries",
    "dev queries",
    "test queries",
    "gold per query",
    "first year",
    "last year",
)
ON_SCIDOCS = (
    "mag f1",
    "mesh f1",
    *(f"{task} {metric}" for task in ("co-view", "co-read", "cite", "co-cite") for metric in PAIRS),
    "recommendation ndcg",
    "recommendation p@1",
    "average",
    "cls",
    "usr",
    "cite",
    "rec",
)
ON_INDEX = (
    "venue f1",
    "period f1",
    *(
        f"{task} {metric}"
        for task in ("cite", "co-cite", "coupling", "authors")
        for metric in PAIRS
    ),
    "average",
)
MEASURES: Mapping[ExperimentKind, tuple[str, ...]] = {
    ExperimentKind.RECOMMEND: METRICS,
    ExperimentKind.STATISTICS: COUNTS,
    ExperimentKind.SCIDOCS: ON_SCIDOCS,
    ExperimentKind.INDEX_TASKS: ON_INDEX,
    ExperimentKind.TOPICS: ("homogeneity", "completeness"),
    ExperimentKind.PUBLISHED: tuple(
        dict.fromkeys([*METRICS, *ON_SCIDOCS, *COUNTS, "homogeneity", "completeness"])
    ),
}
"""The measures of each kind, with the names in `expect` and `published`."""


def format_measure(measure: str, value: float, *, digits: int = 4) -> str:
    """Format a measure: shares with `digits` decimals, counts with all digits."""
    if measure not in COUNTS:
        return f"{value:.{digits}f}"
    if measure.endswith("year"):
        return f"{value:.0f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
