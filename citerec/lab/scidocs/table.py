"""The results of a suite as a table for the terminal, in the order of the paper's table 1."""

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
    """Return one row for each encoder, figures times 100 as the paper prints them; – for what was not measured.

    Args:
        rows: Metrics in [0, 1], by encoder.
        metrics: The columns.
        published: How many rows, the first ones, are not ours.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("encoder", overflow="fold", min_width=14)
    for metric in metrics:
        table.add_column(heading(metric), justify="right", no_wrap=True)
    for number, (name, found) in enumerate(rows.items(), start=1):
        figures = [percent(found.get(metric)) for metric in metrics]
        cells = (Text(cell) for cell in (name, *figures))  # "[...]" in a string is markup
        table.add_row(*cells, end_section=number == published)
    return table


def heading(metric: str) -> str:
    """Return what stands over a metric's column: the parts of its name, one below the other."""
    words = metric.replace("-", "- ").split()
    return "\n".join(_HEADINGS.get(word, word[:1].upper() + word[1:]) for word in words)


def percent(share: float | None) -> str:
    """Print a share as the paper does: times 100, one decimal."""
    return NONE if share is None else f"{100 * share:.1f}"
