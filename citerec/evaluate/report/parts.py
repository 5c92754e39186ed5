"""Parts of the reports of evaluations and experiments: the tests of all pairs, and the figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from citerec.evaluate.bins import Year
from citerec.evaluate.calibration import Band, CalibrationBands
from citerec.evaluate.metrics import Comparison
from citerec.evaluate.report.model import NONE, Cell, Column, Figure, Table, columns
from citerec.evaluate.report.numbers import decimal, decimal_cell, heading, p_value, signed
from citerec.evaluate.report.plots import by_year_svg, calibration_svg, differences_svg, recall_svg
from citerec.evaluate.significance import ALPHA, Floats

Series = TypeVar("Series")

COMPARED = ("f1@20", "mrr")  # metrics of the comparisons; report.json has all
DEPTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the table of recall
TESTED = (
    "Row minus column, with the p of Fisher's randomisation test, paired by query, two-sided, corrected by Holm for "
    f"all pairs of the table. ▲ better, ▼ worse at p < {ALPHA}; other differences are not significant."
)
CALIBRATED = (
    "The share of cited papers by score and by rank. Scores are min-max scaled in each ranking (best 1, last 0) and "
    "cut into ten bins. A gold standard of citations is never complete: the share is a lower bound of relevance."
)
SORTED = (
    "The gain of each query over the first system; the queries of each line are sorted by their gain. The part of a "
    "line above 0 is the share of queries for which the system is better."
)


def matrix(names: Sequence[str], comparisons: Sequence[Comparison], metric: str) -> Table:
    """Return the tests of one metric with the systems as rows and columns; its details are a row for each pair.

    Args:
        names: The systems, all pairs of which are compared.
        comparisons: May include those of other metrics.
        metric: The metric.
    """
    tests = {(c.a, c.b): c for c in comparisons if c.metric == metric}
    return Table(
        caption=f"{heading(metric)}: row minus column",
        columns=columns("system", *names),
        rows=[[Cell(text=row), *(_test(tests, row, column) for column in names)] for row in names],
        is_sortable=False,
        details=_pairs([*tests.values()], metric),
    )


def recall(curves: Mapping[str, Sequence[float] | Floats], file: str = "") -> Figure:
    """Return recall by depth as a figure.

    Args:
        curves: By system, recall at depths from 1.
        file: A picture of the same next to the report.
    """
    shown = {name: curve for name, curve in curves.items() if len(curve)}
    deepest = max(len(curve) for curve in shown.values())
    depths = [depth for depth in DEPTHS if depth <= deepest]
    rows = [
        [
            Cell(text=name),
            *(decimal_cell(float(curve[d - 1]) if d <= len(curve) else None) for d in depths),
        ]
        for name, curve in shown.items()
    ]
    table = Table(caption="Recall", columns=columns("system", *map(str, depths)), rows=rows)
    return _figure(recall_svg, shown, "Recall by depth, over all queries.", curves, table, file)


def differences(
    scores: Mapping[str, Sequence[float] | Floats], metric: str, all_systems: Iterable[str]
) -> Figure:
    """Return the gain of each query over the first of some systems as a figure.

    Args:
        scores: Per query, of at least two systems.
        metric: The metric of the scores.
        all_systems: All systems of the report; their order fixes the style of each line.
    """
    names = list(scores)
    first = np.asarray(scores[names[0]], np.float64)
    gains = {name: np.asarray(scores[name], np.float64) - first for name in names[1:]}
    caption = f"{heading(metric)} of each query, minus that of {names[0]}."
    table = _gains(gains, f"Queries that differ from {names[0]} in {heading(metric)}")
    draw = partial(differences_svg, metric=heading(metric))
    return _figure(draw, gains, caption, all_systems, table)


def calibration(
    by_system: Mapping[str, CalibrationBands], all_systems: Iterable[str]
) -> list[Figure]:
    """Return the share of cited papers by score and by rank: two figures, or none.

    Args:
        by_system: The bands of each system.
        all_systems: All systems of the report; their order fixes the style of each line.
    """
    scores = {
        name: calibration.scores for name, calibration in by_system.items() if calibration.scores
    }
    ranks = {
        name: calibration.ranks for name, calibration in by_system.items() if calibration.ranks
    }
    if not scores:
        return []
    axis_label = "score between the last (0) and the best (1)"
    return [
        _bands(all_systems, scores, axis_label, is_log=False),
        _bands(all_systems, ranks, "rank", is_log=True),
    ]


def by_year(by_system: Mapping[str, Sequence[Year]], metric: str) -> list[Figure]:
    """Return a metric by the year of the query as a figure; none if no year is known."""
    shown = {name: years for name, years in by_system.items() if years}
    if not shown:
        return []
    queries = {point.year: point.queries for years in shown.values() for point in years}
    means = {name: {point.year: point.mean for point in years} for name, years in shown.items()}
    rows = [
        [
            Cell(text=str(year)),
            Cell(text=str(queries[year])),
            *(decimal_cell(means[name].get(year)) for name in shown),
        ]
        for year in sorted(queries)
    ]
    caption = f"{heading(metric)} by the year of the query."
    table = Table(caption=caption, columns=columns("year", "queries", *shown), rows=rows)
    draw = partial(by_year_svg, metric=heading(metric))
    return [_figure(draw, shown, caption, by_system, table)]


def _figure(
    draw: Callable[[Mapping[int, Series], str, str], str],
    series: Mapping[str, Series],
    caption: str,
    all_systems: Iterable[str],
    table: Table,
    file: str = "",
) -> Figure:
    """Return a figure of a line for each series; the place among all systems of the report fixes its style."""
    legend = [(number, name) for number, name in enumerate(all_systems) if name in series]
    lines = {number: series[name] for number, name in legend}
    title = f"{caption} Lines: {', '.join(series)}."
    return Figure(
        draw=lambda key: draw(lines, key, title),
        caption=caption,
        legend=legend,
        table=table,
        file=file,
    )


def _gains(gains: Mapping[str, Floats], caption: str) -> Table:
    rows = [
        [
            Cell(text=name),
            *(Cell(text=str(int(is_so.sum()))) for is_so in (gain > 0, gain == 0, gain < 0)),
            Cell(text=signed(float(gain.mean())), order=float(gain.mean())),
        ]
        for name, gain in gains.items()
    ]
    heads = columns("system", "better", "same", "worse", "mean difference")
    return Table(caption=caption, columns=heads, rows=rows)


def _bands(
    all_systems: Iterable[str],
    bands: Mapping[str, Sequence[Band]],
    axis_label: str,
    *,
    is_log: bool,
) -> Figure:
    caption = f"Share of the papers at a {axis_label} that are cited; below, how many papers."
    by_label = {name: {band.label: band for band in points} for name, points in bands.items()}
    order = {band.label: band.at for points in bands.values() for band in points}
    rows = [
        [
            Cell(text=label, order=order[label]),
            *(_share(by_label[name].get(label)) for name in bands),
        ]
        for label in sorted(order, key=lambda label: order[label])
    ]
    heads = columns(axis_label.split(maxsplit=1)[0], *bands)
    shares = f"Share of the papers at a {axis_label} that are cited, and how many papers"
    table = Table(caption=shares, columns=heads, rows=rows)
    draw = partial(calibration_svg, axis_label=axis_label, is_log=is_log)
    return _figure(draw, bands, caption, all_systems, table)


def _pairs(tests: Sequence[Comparison], metric: str) -> Table:
    rows = [
        [
            Cell(text=heading(metric)),
            Cell(text=test.a),
            Cell(text=test.b),
            Cell(text=f"{test.difference:+.4f}", order=test.difference),
            *(_p_cell(p) for p in (test.p_student, test.p_fisher, test.p_holm)),
        ]
        for test in tests
    ]
    names = [Column("metric", "name"), Column("a", "name"), Column("b", "name")]
    numbers = [Column(name) for name in ("b - a", "p Student", "p Fisher", "p Holm")]
    caption = (
        f"{heading(metric)} of each pair, with the p of Student's t, of Fisher's randomisation test, "
        "and of the latter corrected by Holm"
    )
    return Table(caption=caption, columns=[*names, *numbers], rows=rows)


def _p_cell(p: float | None) -> Cell:
    return decimal_cell(p) if p is None else Cell(text=p_value(p), order=p)


def _test(tests: Mapping[tuple[str, str], Comparison], row: str, column: str) -> Cell:
    if row == column:
        return Cell(text=NONE, kind="none")
    forwards = tests.get((row, column))  # its difference is that of the column
    test = forwards or tests.get((column, row))
    if test is None:
        return Cell(text="", kind="none")
    gain = -test.difference if forwards else test.difference
    is_real = test.p_holm < ALPHA and gain != 0
    notes = [f"p {p_value(test.p_holm)}"]
    if not is_real:
        return Cell(text=signed(gain), notes=notes)
    if gain > 0:
        return Cell(text=f"▲ {signed(gain)}", notes=notes, kind="better")
    return Cell(text=f"▼ {signed(gain)}", notes=notes, kind="worse")


def _share(band: Band | None) -> Cell:
    if band is None:
        return decimal_cell(None)
    notes = [f"{band.cited:,} of {band.papers:,}"]
    return Cell(text=decimal(band.share), notes=notes, order=band.share)
