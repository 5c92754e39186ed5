"""The rows of one run of `citerec experiment run` as Markdown and as LaTeX, and how their figures are written."""

from collections import Counter
from collections.abc import Iterator, Sequence

from citerec.evaluate.metrics import METRICS
from citerec.evaluate.parts import p_value, signed
from citerec.evaluate.tables import HEADINGS, decimal, table, tex
from citerec.lab.experiment.compared import COMPARED, ComparableRows, RowOutcome, compared, groups

NONE = "–"


def rows_markdown(outcomes: Sequence[RowOutcome]) -> str:
    """Return the rows as Markdown: figures beside the expected and the published, claims, and tests."""
    lines = [
        "# Rows",
        "",
        f"{told(outcomes)}. In brackets: 95 % bootstrap intervals over queries.",
        "",
    ]
    for name, rows in by_table(outcomes).items():
        columns = columns_of(rows)
        heading = ["row", "corpus", "verdict", *(HEADINGS.get(c, c) for c in columns)]
        cells = [
            [row.title, corpus_of(row), row.verdict, *(_cell(row, c) for c in columns)]
            for row in rows
        ]
        lines += [f"## {_line(name)}", "", *table(heading, cells)]
    lines += ["## Claims", "", *_claims(outcomes), ""]
    for group in groups(outcomes):
        lines += _comparisons(group)
    return "\n".join(lines)


def rows_latex(outcomes: Sequence[RowOutcome]) -> str:
    """Return a LaTeX table for each table of the rows; its document needs the package booktabs and nothing else.

    What others published stands below our figures.
    """
    lines = ["% needs \\usepackage{booktabs}"]
    for name, rows in by_table(outcomes).items():
        columns = columns_of(rows)
        heading = ["Row", "Corpus", *(HEADINGS.get(column, column) for column in columns)]
        body = [line for row in rows for line in _latex_rows(row, columns)]
        lines += [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{tex(name)}}}",
            f"\\begin{{tabular}}{{ll{'r' * len(columns)}}}",
            "\\toprule",
            *(f"{' & '.join(map(tex, cells))} \\\\" for cells in [heading]),
            "\\midrule",
            *(f"{' & '.join(map(tex, cells))} \\\\" for cells in body),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
        ]
    return "\n".join(lines) + "\n"


def told(outcomes: Sequence[RowOutcome]) -> str:
    """Say how many rows there are, and how they came out."""
    verdicts = Counter(row.verdict for row in outcomes)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    rows = "1 row" if len(outcomes) == 1 else f"{len(outcomes)} rows"
    return f"{rows}: {counted}" if counted else rows


def by_table(outcomes: Sequence[RowOutcome]) -> dict[str, list[RowOutcome]]:
    """Put the rows of each table together, both in the order given."""
    tables: dict[str, list[RowOutcome]] = {}
    for row in outcomes:
        tables.setdefault(row.table, []).append(row)
    return tables


def columns_of(rows: Sequence[RowOutcome]) -> list[str]:
    """Return what any of some rows has a figure of: the usual metrics in their order, then others as they come."""
    there = dict.fromkeys(
        metric
        for row in rows
        for figures in (row.metrics, row.published, row.expect)
        for metric in figures
    )
    return [m for m in METRICS if m in there] + [m for m in there if m not in METRICS]


def corpus_of(row: RowOutcome) -> str:
    """Return a row's corpus and split, as far as it has any."""
    return ", ".join(part for part in (row.corpus, row.split) if part) or NONE


def figure(metric: str, value: float) -> str:
    """Print a figure: shares with three decimals, counts with all digits."""
    if "year" in metric and value == int(value):
        return f"{value:.0f}"
    return decimal(value) if abs(value) <= 1 else f"{value:,.10g}"


def expected(row: RowOutcome, metric: str) -> str:
    """Print what a figure should be, a value or a range; nothing if that is not said."""
    value = row.expect.get(metric)
    if value is None:
        return ""
    ends = value if isinstance(value, tuple) else (value,)
    return " to ".join(figure(metric, end) for end in ends)


def _cell(row: RowOutcome, metric: str) -> str:
    text = figure(metric, row.metrics[metric]) if metric in row.metrics else NONE
    if metric in row.ci95 and metric in row.metrics:
        low, high = row.ci95[metric]
        text += f" [{figure(metric, low)}, {figure(metric, high)}]"
    beside = [f"expected {told}"] if (told := expected(row, metric)) else []
    if metric in row.published:
        beside.append(f"published {figure(metric, row.published[metric])}")
    return f"{text} ({'; '.join(beside)})" if beside else text


def _claims(outcomes: Sequence[RowOutcome]) -> Iterator[str]:
    for row in outcomes:
        why = f" **{_line(row.why)}**" if row.why else ""
        source = f" Published: {_line(row.published_source)}." if row.published_source else ""
        yield f"- {_line(row.title)} (`{_line(row.file)}`): {_line(row.claim)}{why}{source}"


def _comparisons(group: ComparableRows) -> Iterator[str]:
    tests = [test for metric in COMPARED for test in compared(group, metric)]
    if not tests:
        return
    yield f"## Comparisons: {_line(group.corpus)}, {_line(group.split)}"
    yield ""
    yield "Paired by query, two-sided: Fisher's randomisation test, corrected by Holm for all pairs of a metric."
    yield ""
    rows = [
        [
            HEADINGS.get(test.metric, test.metric),
            test.a,
            test.b,
            signed(test.difference),
            p_value(test.p_fisher),
            p_value(test.p_holm),
        ]
        for test in tests
    ]
    yield from table(["metric", "a", "b", "b - a", "p Fisher", "p Holm"], rows)


def _latex_rows(row: RowOutcome, columns: Sequence[str]) -> Iterator[list[str]]:
    ours = [figure(c, row.metrics[c]) if c in row.metrics else NONE for c in columns]
    yield [row.title, corpus_of(row), *ours]
    if row.published:
        theirs = [figure(c, row.published[c]) if c in row.published else NONE for c in columns]
        yield ["published", "", *theirs]


def _line(text: str) -> str:
    return " ".join(text.split())
