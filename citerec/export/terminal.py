"""Output for people in a terminal: the console of all commands, and the table of a list."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from math import floor, log10
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from citerec.bibliography.keys import split_name
from citerec.display import percentage, visible, visible_lines
from citerec.export import Result
from citerec.types import Paper, Recommendation

_NARROWEST = 40  # columns; a narrower table has no room for titles
_NOTHING = "No eligible paper of this corpus matches"


class PlainConsole(Console):
    """Prints text literally: markup, emoji codes and links have no effect, and no character controls the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a `Text` of a string, such as a cell; its width is that of the visible characters."""
        return super().render_str(visible_lines(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with characters that would control the terminal replaced by visible ones."""
        for segment in super().render(renderable, options):
            yield (
                segment
                if segment.control
                else segment._replace(text=visible_lines(segment.text))
            )


def tables(
    results: Iterable[Result],
    *,
    batch: bool,
    width: int | None = None,
    color: bool = False,
) -> Iterator[str]:
    """Write one table per query; in a batch, each below its query's title, and its id if it has one.

    `width` is in columns, by default those of the terminal; `color` allows escape codes.
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
        if batch:
            query = result.query
            heading = Text(
                visible(query.context or query.title), style="bold", overflow="fold"
            )
            sure = (
                ""
                if result.sureness is None
                else f"sureness {percentage(result.sureness)}"
            )
            place = (
                query.id if query.named or query.context else "",
                visible(query.section),
                sure,
            )
            console.print(
                heading.append(
                    "".join(f" · {part}" for part in place if part), style="dim"
                )
            )
        console.print(_table(result))
        yield "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
        out.seek(0)
        out.truncate()


def _table(result: Result) -> RenderableType:
    if not result.recommendations:
        return Text(
            ": ".join(filter(None, (_NOTHING, visible(result.empty_reason)))) + "."
        )
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("Year", no_wrap=True)
    table.add_column("Paper", overflow="fold", ratio=1)
    heading, texts = figures(result.recommendations)
    if not result.query.is_sentence:  # whose scores have no scale
        table.add_column(heading, justify="right", no_wrap=True)
    for recommendation, figure in zip(result.recommendations, texts, strict=True):
        paper = recommendation.paper
        # A Text, not a str: rich would interpret `[bold]` in a title as markup.
        cell = Text(visible(paper.title))
        for line in (source(paper), *recommendation.reasons):
            cell.append(f"\n{visible(line)}", style="dim")
        year = "" if paper.year is None else str(paper.year)
        row = str(recommendation.rank), year, cell, figure
        table.add_row(*row[: len(table.columns)])
    return table


def figures(recommendations: Sequence[Recommendation]) -> tuple[str, list[str]]:
    """Return the heading and texts of the last column: probabilities if any is known, else raw scores."""
    if any(paper.probability is not None for paper in recommendations):
        return "Probability", [
            percentage(paper.probability) for paper in recommendations
        ]
    # the best score is shown with four digits; all scores have as many decimals, to align them
    top = recommendations[0].score
    decimals = 3 if top == 0 else max(0, 3 - floor(log10(abs(top))))
    return "Score", [
        f"{recommendation.score:.{decimals}f}" for recommendation in recommendations
    ]


def source(paper: Paper) -> str:
    """Return the first author of `paper` and its id, which users need for further commands."""
    authors = [split_name(name).family for name in paper.authors[:1]]
    more = " et al." if len(paper.authors) > 1 else ""
    return " · ".join([*(f"{name}{more}" for name in authors if name), paper.id])
