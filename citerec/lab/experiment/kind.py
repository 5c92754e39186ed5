"""The kinds of rows, and what each measures."""

from collections.abc import Mapping
from enum import StrEnum

from citerec.evaluate.metrics import METRICS


class ExperimentKind(StrEnum):
    """What a row does."""

    RECOMMEND = "recommend"  # a system answers the queries of a split
    STATISTICS = "statistics"  # a corpus is counted
    SCIDOCS = "scidocs"  # an encoder does the seven tasks, on the published data
    INDEX_TASKS = "index-tasks"  # an encoder does such tasks on a corpus
    TOPICS = "topics"  # how well topics stand apart in a picture of an encoder's vectors
    PUBLISHED = "published"  # nothing is run: others' figures stand alone


class Needs(StrEnum):
    """What a row waits for: it is not run without."""

    GPU = "gpu"  # its training would take weeks on a processor


PAIRS = ("map", "ndcg")  # what is measured of a list that is ranked
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
"""The figures of each kind, as `expect` and `published` name them."""


def told(measure: str, value: float, *, digits: int = 4) -> str:
    """Print a figure: a share with so many decimals, a count with all its digits, a year as it is."""
    if measure not in COUNTS:
        return f"{value:.{digits}f}"
    if measure.endswith("year"):
        return f"{value:.0f}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
