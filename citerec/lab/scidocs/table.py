"""The results of a suite as a table for the terminal, in the order of table 1 of the paper."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = {
    "mag": "MAG",
    "mesh": "MeSH",
    "map": "MAP",
    "ndcg": "nDCG",
    "coupling": "Coup-\nling",
    "authors": "Auth-\nors",
    "recommendation": "Rec.",
    "average": "Avg.",
}
NONE = "–"


def results_table(
    rows: Mapping[str, Mapping[str, float]], metrics: Sequence[str], *, published: int = 0
) -> "Table":
    """Return one row per encoder, values times 100 as in the paper; – for missing values.

    Args:
        rows: Metrics in [0, 1], by encoder.
        metrics: The columns.
        published: The number of first rows that are published values.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("encoder", overflow="fold", min_width=14)
    for metric in metrics:
        table.add_column(heading(metric), justify="right", no_wrap=True)
    for number, (name, values) in enumerate(rows.items(), start=1):
        figures = [percent(values.get(metric)) for metric in metrics]
        cells = (Text(cell) for cell in (name, *figures))  # "[...]" in a string is markup
        table.add_row(*cells, end_section=number == published)
    return table


def heading(metric: str) -> str:
    """Return the heading of a metric's column: the parts of its name, one below the other."""
    words = metric.replace("-", "- ").split()
    return "\n".join(_HEADINGS.get(word, word[:1].upper() + word[1:]) for word in words)


def percent(share: float | None) -> str:
    """Format a share as in the paper: times 100, one decimal."""
    return NONE if share is None else f"{100 * share:.1f}"
