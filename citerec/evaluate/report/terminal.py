"""Renders a table for the terminal, with rich."""

from typing import TYPE_CHECKING

from citerec.evaluate.report.model import Cell, Table
from citerec.export.clean import visible, visible_lines

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

NARROWEST = (
    10  # characters of the first column; longer names are folded where the terminal is narrow
)


def terminal(table: Table) -> "RichTable":
    """Return a table for the terminal, without its caption."""
    from rich import box
    from rich.table import Table as RichTable

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    first, *others = table.columns
    drawn.add_column(visible_lines(first.heading), overflow="fold", min_width=NARROWEST)
    for column in others:
        justify = "right" if column.style == "number" else "left"
        drawn.add_column(visible_lines(column.heading), justify=justify, no_wrap=True)
    for number, row in enumerate(table.rows, start=1):
        drawn.add_row(*map(_cell, row), end_section=number == table.rule_after)
    return drawn


def _cell(cell: Cell) -> "Text":
    from rich.text import Text  # since "[...]" in a string is markup

    text = Text(visible(cell.on_one_line))
    if cell.kind == "best":
        text.stylize("bold")
    if cell.marks:
        text.append(f" {visible(cell.marks)}")
    return text
