"""Shared parts of the pages of reports and experiments: the matrix of tests, and the figures."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from citerec.evaluate.by_year import Year
from citerec.evaluate.calibration import Band, CalibrationBands
from citerec.evaluate.metrics import Comparison
from citerec.evaluate.page import Cell, Figure, PageTable, Section
from citerec.evaluate.plots import by_year_svg, calibration_svg, differences_svg, recall_svg
from citerec.evaluate.significance import Floats
from citerec.evaluate.tables import ALPHA, HEADINGS, decimal

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


def p_value(p: float) -> str:
    """Print a p value with three decimals."""
    return "< .001" if p < 0.001 else decimal(p)


def signed(value: float) -> str:
    """Print a difference with its sign."""
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{decimal(abs(value))}"


def matrix(names: Sequence[str], comparisons: Sequence[Comparison], metric: str) -> PageTable:
    """Return the tests of one metric as a table with the systems as rows and columns.

    Args:
        names: The systems, all pairs of which are compared.
        comparisons: May include those of other metrics.
        metric: The metric.
    """
    tests = {(c.a, c.b): c for c in comparisons if c.metric == metric}
    rows = [[Cell(text=row), *(_test(tests, row, column) for column in names)] for row in names]
    caption = f"{HEADINGS.get(metric, metric)}: row minus column"
    return PageTable(caption=caption, heading=["system", *names], rows=rows, is_sortable=False)


def recall(curves: Mapping[str, Sequence[float] | Floats], key: str) -> Figure:
    """Return recall by depth as a figure.

    Args:
        curves: By system, recall at depths from 1.
        key: Prefix of the ids in the drawing.
    """
    shown = {name: curve for name, curve in curves.items() if len(curve)}
    deepest = max(len(curve) for curve in shown.values())
    depths = [depth for depth in DEPTHS if depth <= deepest]
    rows = [
        [Cell(text=name), *(_at(curve, depth) for depth in depths)] for name, curve in shown.items()
    ]
    caption = "Recall by depth, over all queries."
    drawn = {number: shown[name] for number, name in _numbered(curves, shown)}
    return Figure(
        svg=recall_svg(drawn, key, f"{caption} Lines: {', '.join(shown)}."),
        caption=caption,
        legend=_numbered(curves, shown),
        table=PageTable(caption="Recall", heading=["system", *map(str, depths)], rows=rows),
    )


def differences(
    scores: Mapping[str, Sequence[float] | Floats],
    metric: str,
    key: str,
    all_systems: Sequence[str],
) -> Figure:
    """Return the gain of each query over the first of some systems as a figure.

    Args:
        scores: Per query, of at least two systems.
        metric: The metric of the scores.
        key: Prefix of the ids in the drawing.
        all_systems: All systems of the page; their order fixes the style of each line.
    """
    names = list(scores)
    first = np.asarray(scores[names[0]], np.float64)
    gains = {name: np.asarray(scores[name], np.float64) - first for name in names[1:]}
    heading = HEADINGS.get(metric, metric)
    caption = f"{heading} of each query, minus that of {names[0]}."
    legend = _numbered(all_systems, gains)
    drawn = {number: gains[name] for number, name in legend}
    title = f"{caption} Lines: {', '.join(gains)}."
    return Figure(
        svg=differences_svg(drawn, key, title, metric=heading),
        caption=caption,
        legend=legend,
        table=_gains(gains, f"Queries that differ from {names[0]} in {heading}"),
    )


def calibration(
    by_system: Mapping[str, CalibrationBands], key: str, all_systems: Sequence[str]
) -> list[Figure]:
    """Return the share of cited papers by score and by rank: two figures, or none.

    Args:
        by_system: The bands of each system.
        key: Prefix of the ids in the drawings.
        all_systems: All systems of the page; their order fixes the style of each line.
    """
    scores = {name: one.scores for name, one in by_system.items() if one.scores}
    ranks = {name: one.ranks for name, one in by_system.items() if one.ranks}
    if not scores:
        return []
    return [
        _bands(
            all_systems,
            scores,
            f"{key}s",
            "score between the last (0) and the best (1)",
            is_log=False,
        ),
        _bands(all_systems, ranks, f"{key}r", "rank", is_log=True),
    ]


def by_year(by_system: Mapping[str, Sequence[Year]], metric: str, key: str) -> list[Figure]:
    """Return a metric by the year of the query as a figure; none if no year is known."""
    shown = {name: years for name, years in by_system.items() if years}
    if not shown:
        return []
    heading = HEADINGS.get(metric, metric)
    all_years = sorted({one.year for years in shown.values() for one in years})
    queries = {one.year: one.queries for years in shown.values() for one in years}
    means = {name: {one.year: one.mean for one in years} for name, years in shown.items()}
    rows = [
        [
            Cell(text=str(year)),
            Cell(text=str(queries[year])),
            *(_known(means[name].get(year)) for name in shown),
        ]
        for year in all_years
    ]
    caption = f"{heading} by the year of the query."
    figure = Figure(
        svg=by_year_svg(
            {number: shown[name] for number, name in _numbered(by_system, shown)},
            key,
            f"{caption} Lines: {', '.join(shown)}.",
            metric=heading,
        ),
        caption=caption,
        legend=_numbered(by_system, shown),
        table=PageTable(caption=caption, heading=["year", "queries", *shown], rows=rows),
    )
    return [figure]


def non_empty(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with content."""
    return [one for one in sections if one.tables or one.figures or one.notes or one.code]


def _gains(gains: Mapping[str, Floats], caption: str) -> PageTable:
    rows = [
        [
            Cell(text=name),
            *(Cell(text=str(int(is_so.sum()))) for is_so in (gain > 0, gain == 0, gain < 0)),
            Cell(text=signed(float(gain.mean())), order=float(gain.mean())),
        ]
        for name, gain in gains.items()
    ]
    heading = ["system", "better", "same", "worse", "mean difference"]
    return PageTable(caption=caption, heading=heading, rows=rows)


def _bands(
    all_systems: Sequence[str],
    bands: Mapping[str, Sequence[Band]],
    key: str,
    place: str,
    *,
    is_log: bool,
) -> Figure:
    caption = f"Share of the papers at a {place} that are cited; below, how many papers."
    labels = list(dict.fromkeys(band.label for points in bands.values() for band in points))
    by_label = {name: {band.label: band for band in points} for name, points in bands.items()}
    order = {band.label: band.at for points in bands.values() for band in points}
    rows = [
        [
            Cell(text=label, order=order[label]),
            *(_share(by_label[name].get(label)) for name in bands),
        ]
        for label in sorted(labels, key=lambda label: order[label])
    ]
    legend = _numbered(all_systems, bands)
    drawn = {number: bands[name] for number, name in legend}
    title = f"{caption} Lines: {', '.join(bands)}."
    return Figure(
        svg=calibration_svg(drawn, key, title, place=place, is_log=is_log),
        caption=caption,
        legend=legend,
        table=PageTable(caption=caption, heading=[place.split(maxsplit=1)[0], *bands], rows=rows),
    )


def _test(tests: Mapping[tuple[str, str], Comparison], row: str, column: str) -> Cell:
    if row == column:
        return Cell(text="–", kind="none")
    forwards = tests.get((row, column))  # its difference is that of the column
    test = forwards or tests.get((column, row))
    if test is None:
        return Cell(text="", kind="none")
    gain = -test.difference if forwards else test.difference
    is_real = test.p_holm < ALPHA and gain != 0
    kind = ("better" if gain > 0 else "worse") if is_real else ""
    mark = {"better": "▲ ", "worse": "▼ "}.get(kind, "")
    return Cell(text=f"{mark}{signed(gain)}", small=[f"p {p_value(test.p_holm)}"], kind=kind)


def _numbered(all_systems: Iterable[str], shown: Mapping[str, object]) -> list[tuple[int, str]]:
    """Number the shown systems by their place among all systems of the page."""
    return [(number, name) for number, name in enumerate(all_systems) if name in shown]


def _at(curve: Sequence[float] | Floats, depth: int) -> Cell:
    return _known(float(curve[depth - 1]) if depth <= len(curve) else None)


def _known(value: float | None) -> Cell:
    if value is None:
        return Cell(text="–", order="", kind="none")
    return Cell(text=decimal(value), order=value)


def _share(band: Band | None) -> Cell:
    if band is None:
        return Cell(text="–", order="", kind="none")
    small = [f"{band.cited:,} of {band.papers:,}"]
    return Cell(text=decimal(band.share), small=small, order=band.share)
