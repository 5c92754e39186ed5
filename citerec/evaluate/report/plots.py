"""The figures of a report: recall by depth as a PNG, and the figures of the page as SVG.

In an SVG every line is drawn for a system number; the names are in the legend of the page.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import RANKING_DEPTH
from citerec.evaluate.bins import Year
from citerec.evaluate.calibration import Band
from citerec.evaluate.report.svg import INK, as_svg, marked, new_figure, settings, style
from citerec.evaluate.significance import Floats
from citerec.export.clean import visible

LONGEST_LABEL = 60  # characters of a name in the legend of the PNG
POINTS = 200  # per line of an SVG, at most; more are not visible
_LINES = ("-", "--", "-.", ":")  # the next style for every ten colours


def _label(name: str) -> str:
    """Return a name for the legend: short, and without a leading underscore, which would hide the line."""
    short = visible(name)
    short = short if len(short) <= LONGEST_LABEL else f"{short[: LONGEST_LABEL - 1]}…"
    return f" {short}" if short.startswith("_") else short


def draw_recall(curves: Mapping[str, Floats], path: Path, *, title: str) -> None:
    """Draw one line per system into a PNG, with a logarithmic depth axis.

    Args:
        curves: Output of `recall_by_depth`, by system.
        path: The file.
        title: The title of the figure.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(6.4, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for number, curve in enumerate(curves.values()):
        style = _LINES[number // 10 % len(_LINES)]
        axes.plot(np.arange(1, len(curve) + 1), curve, style, color=f"C{number % 10}")
    axes.set(xscale="log", xlim=(1, RANKING_DEPTH), ylim=(0, 1.02), xlabel="depth", ylabel="recall")
    axes.set_title(title, parse_math=False)
    axes.grid(visible=True, alpha=0.3)
    labels = [_label(name) for name in curves]
    for text in axes.legend(axes.get_lines(), labels, loc="upper left").get_texts():
        text.set_parse_math(False)  # "$" in a name is a dollar
    with warnings.catch_warnings():
        # The font lacks some scripts; a box in a name is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(path, format="png")


def recall_svg(curves: Mapping[int, Sequence[float] | Floats], key: str, title: str) -> str:
    """Draw recall at depths from 1 on a logarithmic axis.

    Args:
        curves: Output of `recall_by_depth`, by number of the system.
        key: Prefix of the ids in the SVG, see `as_svg`.
        title: A description of the figure.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, curve in curves.items():
            depths = thinned(len(curve))
            axes.plot(depths, np.asarray(curve)[depths - 1], **style(number))
        deepest = max(len(curve) for curve in curves.values())
        axes.set(xscale="log", xlim=(1, max(deepest, 2)), ylim=(0, 1.02))
        axes.set(xlabel="papers read", ylabel="recall")
        _plain_ticks(
            axes.xaxis, [tick for tick in (1, 3, 10, 30, 100, 300, 1000) if tick <= deepest]
        )
        axes.grid(visible=True)

    return _drawn(draw, key, title)


def differences_svg(differences: Mapping[int, Floats], key: str, title: str, *, metric: str) -> str:
    """Draw the gain of each query over the first system; the queries of a line are sorted by gain.

    Args:
        differences: (n,) per query, in any order, by number of the system.
        key: Prefix of the ids in the SVG, see `as_svg`.
        title: A description of the figure.
        metric: The metric of the differences.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.axhline(0, color=INK, linewidth=0.8)
        for number, values in differences.items():
            share, height = sorted_line(values)
            axes.plot(share, height, **style(number))
        axes.set(xlim=(0, 100), xlabel="queries, sorted by it, in %")
        axes.set_ylabel(f"{metric} minus that of the first")
        axes.grid(visible=True)

    return _drawn(draw, key, title)


def calibration_svg(
    bands: Mapping[int, Sequence[Band]],
    key: str,
    title: str,
    *,
    axis_label: str,
    is_log: bool = False,
) -> str:
    """Draw the share of cited papers, and below it the number of papers, by score or rank.

    Args:
        bands: By number of the system.
        key: Prefix of the ids in the SVG, see `as_svg`.
        title: A description of the figure.
        axis_label: The label of the axis.
        is_log: Whether the axis is logarithmic (for ranks).
    """

    def draw(figure: Any) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        for number, points in bands.items():
            at = [band.at for band in points]
            upper.plot(at, [band.share for band in points], **marked(number))
            lower.plot(at, [band.papers for band in points], **marked(number))
        upper.set(ylabel="share cited", ylim=(0, None))
        lower.set(ylabel="papers", yscale="log", xlabel=axis_label)
        counts = [band.papers for points in bands.values() for band in points]
        powers = [10**n for n in range(8) if min(counts) <= 10**n <= max(counts)]
        _plain_ticks(lower.yaxis, powers or [min(counts)])
        if is_log:
            lower.set(xscale="log")
            _plain_ticks(lower.xaxis, [1, 3, 10, 30, 100, 300, 1000])
        for axes in (upper, lower):
            axes.grid(visible=True)

    return _drawn(draw, key, title, height=3.8)


def by_year_svg(years: Mapping[int, Sequence[Year]], key: str, title: str, *, metric: str) -> str:
    """Draw a metric by the year of the query.

    Args:
        years: By number of the system.
        key: Prefix of the ids in the SVG, see `as_svg`.
        title: A description of the figure.
        metric: The label of the axis.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, points in years.items():
            at, height = [point.year for point in points], [point.mean for point in points]
            axes.plot(at, height, **marked(number))
        all_years = sorted({point.year for points in years.values() for point in points})
        axes.set_xticks(all_years[:: len(all_years) // 12 + 1])
        axes.set(xlim=(all_years[0] - 0.4, all_years[-1] + 0.4), ylim=(0, None))
        axes.set(xlabel="year of the query", ylabel=metric)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.grid(visible=True)

    return _drawn(draw, key, title)


def thinned(depth: int) -> npt.NDArray[np.int64]:
    """Return the drawn depths of a line: from 1 to `depth`, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(1, depth, min(depth, POINTS)).round().astype(np.int64))


def sorted_line(values: Floats) -> tuple[Floats, Floats]:
    """Return a line of sorted values, largest first: the share of queries in %, and the value."""
    falling = np.sort(values)[::-1]
    points = np.unique(
        np.linspace(0, len(falling) - 1, min(len(falling), POINTS)).round().astype(int)
    )
    return (points + 0.5) / len(falling) * 100, falling[points]


def _drawn(draw: Callable[[Any], None], key: str, title: str, height: float = 3.2) -> str:
    with settings():
        figure = new_figure(height)
        draw(figure)
        return as_svg(figure, key, title)


def _plain_ticks(axis: Any, ticks: Sequence[int]) -> None:
    """Label a logarithmic axis with numbers, not powers."""
    axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.set_ticks([], minor=True)
