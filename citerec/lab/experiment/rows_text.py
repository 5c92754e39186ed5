"""The rows of one run of `citerec experiment run` as Markdown and LaTeX, and the format of their values."""

from collections import Counter
from collections.abc import Iterator, Sequence

from citerec.evaluate.metrics import METRICS
from citerec.evaluate.parts import p_value, signed
from citerec.evaluate.tables import HEADINGS, decimal, table, tex
from citerec.lab.experiment.compared import COMPARED, ComparableRows, RowOutcome, compared, groups

NONE = "–"


def rows_markdown(outcomes: Sequence[RowOutcome]) -> str:
    """Return the rows as Markdown: values with the expected and published ones, claims, and tests."""
    lines = [
        "# Rows",
        "",
        f"{count_verdicts(outcomes)}. In brackets: 95 % bootstrap intervals over queries.",
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
    """Return a LaTeX table for each table of the rows; its document needs only the package booktabs.

    Published values are below ours.
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


def count_verdicts(outcomes: Sequence[RowOutcome]) -> str:
    """Return the number of rows and of each verdict, as text."""
    verdicts = Counter(row.verdict for row in outcomes)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    rows = "1 row" if len(outcomes) == 1 else f"{len(outcomes)} rows"
    return f"{rows}: {counted}" if counted else rows


def by_table(outcomes: Sequence[RowOutcome]) -> dict[str, list[RowOutcome]]:
    """Group the rows by table, keeping the order."""
    tables: dict[str, list[RowOutcome]] = {}
    for row in outcomes:
        tables.setdefault(row.table, []).append(row)
    return tables


def columns_of(rows: Sequence[RowOutcome]) -> list[str]:
    """Return the metrics of some rows: the usual ones in their order, then others."""
    present = dict.fromkeys(
        metric
        for row in rows
        for figures in (row.metrics, row.published, row.expect)
        for metric in figures
    )
    return [m for m in METRICS if m in present] + [m for m in present if m not in METRICS]


def corpus_of(row: RowOutcome) -> str:
    """Return corpus and split of a row, if it has any."""
    return ", ".join(part for part in (row.corpus, row.split) if part) or NONE


def figure(metric: str, value: float) -> str:
    """Format a value: shares with three decimals, counts with all digits."""
    if "year" in metric and value == int(value):
        return f"{value:.0f}"
    return decimal(value) if abs(value) <= 1 else f"{value:,.10g}"


def expected(row: RowOutcome, metric: str) -> str:
    """Format the expected value or range of a metric; empty if there is none."""
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
    notes = [f"expected {count_verdicts}"] if (count_verdicts := expected(row, metric)) else []
    if metric in row.published:
        notes.append(f"published {figure(metric, row.published[metric])}")
    return f"{text} ({'; '.join(notes)})" if notes else text


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
    values = [figure(c, row.metrics[c]) if c in row.metrics else NONE for c in columns]
    yield [row.title, corpus_of(row), *values]
    if row.published:
        published = [figure(c, row.published[c]) if c in row.published else NONE for c in columns]
        yield ["published", "", *published]


def _line(text: str) -> str:
    return " ".join(text.split())
