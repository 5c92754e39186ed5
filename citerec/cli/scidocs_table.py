"""The table that `citerec scidocs` prints."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.cli.console import (
    show,
)

if TYPE_CHECKING:
    from citerec.lab.scidocs.record import EncoderResult

SHOWN = 24  # characters of an encoder's name


def print_table(results: Sequence["EncoderResult"], *, published: bool) -> None:
    from citerec.lab.scidocs.from_index import TASKS
    from citerec.lab.scidocs.published import METRICS, TABLE_1
    from citerec.lab.scidocs.table import results_table

    rows: dict[str, Mapping[str, float]] = {}
    if published:
        rows = dict(TABLE_1)
    own_rows = {_row_name(each.encoder, published): each.result.metrics for each in results}
    every = METRICS if published else [m for task in TASKS.values() for m in task]
    metrics = [
        metric for metric in every if any(metric in figures for figures in own_rows.values())
    ]
    show(results_table(rows | own_rows, [*metrics, "average"], published=len(rows)))


def _row_name(encoder: str, published: bool) -> str:
    """Return the name of an encoder in the table: the end of a path, marked as ours next to published rows."""
    parts = [part for part in Path(encoder).parts if part not in ("models", "encoder")]
    name = encoder if len(encoder) <= SHOWN or not parts else parts[-1]
    return f"ours: {name}" if published else name
