"""Writes recommendations as a table, for people."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from math import floor, log10

from rich.table import Table
from rich.text import Text

from citerec.bibliography.keys import split_name
from citerec.export.result import Result
from citerec.export.terminal import PlainConsole
from citerec.text import percentage, visible
from citerec.types import Paper, Query, Recommendation

_NARROWEST = 40  # columns; a narrower table has no room for titles
_NOTHING = "No eligible paper of this corpus matches"


def tables(
    results: Iterable[Result], *, batch: bool, width: int | None = None, color: bool = False
) -> Iterator[str]:
    """Write one table per query; in a batch, each below its query's title.

    Args:
        results: One per query.
        batch: Whether the results are for a batch of queries.
        width: Columns; None for those of the terminal.
        color: Whether the text may contain escape codes.
    """
    out = StringIO()
    console = PlainConsole(
        file=out,
        width=max(_NARROWEST, width or shutil.get_terminal_size((100, 24)).columns),
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        _environ={},  # `color` decides, not FORCE_COLOR
    )
    for number, result in enumerate(results):
        if number:
            console.print()
        _print(console, result, batch=batch)
        yield "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
        out.seek(0)
        out.truncate()


def _print(console: PlainConsole, result: Result, *, batch: bool) -> None:
    if batch:
        console.print(_heading(result.query))
    if not result.recommendations:
        why = f": {visible(result.why_nothing)}" if result.why_nothing else ""
        console.print(Text(f"{_NOTHING}{why}."))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Year", no_wrap=True)
    table.add_column("Paper", overflow="fold", ratio=1)
    heading, shown = figures(result.recommendations)
    table.add_column(heading, justify="right", no_wrap=True)
    for recommendation, figure in zip(result.recommendations, shown, strict=True):
        table.add_row(*_row(recommendation, figure))
    console.print(table)


def _heading(query: Query) -> Text:
    """Return the heading above a query's list in a batch: its title, and its id if it has one."""
    heading = Text(visible(query.title), style="bold", overflow="fold")
    return heading.append(f" · {visible(query.id)}", style="dim") if query.named else heading


def figures(recommendations: Sequence[Recommendation]) -> tuple[str, list[str]]:
    """Return the heading and texts of the last column: probabilities if any is known, else raw scores."""
    if any(paper.probability is not None for paper in recommendations):
        return "Probability", [percentage(paper.probability) for paper in recommendations]
    decimals = _decimals(recommendations[0].score)
    return "Score", [f"{recommendation.score:.{decimals}f}" for recommendation in recommendations]


def _decimals(top: float) -> int:
    """Return the number of decimals that shows four digits of the top score; used for all scores, to align them."""
    return 3 if top == 0 else max(0, 3 - floor(log10(abs(top))))


def _row(recommendation: Recommendation, figure: str) -> tuple[str | Text, ...]:
    paper = recommendation.paper
    # A Text, not a str: rich would interpret `[bold]` in a title as markup.
    cell = Text(visible(paper.title))
    for line in (source(paper), *recommendation.reasons):
        cell.append(f"\n{visible(line)}", style="dim")
    year = "" if paper.year is None else str(paper.year)
    return str(recommendation.rank), year, cell, figure


def source(paper: Paper) -> str:
    """Return the first author of `paper` and its id, which users need for further commands."""
    authors = [split_name(name).family for name in paper.authors[:1]]
    more = " et al." if len(paper.authors) > 1 else ""
    return " · ".join([*(f"{name}{more}" for name in authors if name), paper.id])
