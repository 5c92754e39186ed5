"""The report of one run of `citerec experiment run`: rows with expected values, tests, and figures.

report.html   everything in one self-contained file
report.md     the same without figures
report.tex    the tables, for a paper
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from urllib.parse import quote

from citerec.atomic import building, destination
from citerec.errors import ConfigError
from citerec.evaluate.metrics import METRICS
from citerec.evaluate.report import parts
from citerec.evaluate.report.html import GENERATOR, html
from citerec.evaluate.report.latex import latex
from citerec.evaluate.report.markdown import markdown
from citerec.evaluate.report.model import (
    NONE,
    Cell,
    CellKind,
    Column,
    Report,
    Section,
    Table,
    is_address,
    non_empty,
)
from citerec.evaluate.report.numbers import decimal, heading
from citerec.evaluate.report_folder import refuse_others_files
from citerec.lab.experiment.compared import ComparableRows, RowOutcome, compared, groups
from citerec.lab.experiment.kind import COUNTS, format_measure

HTML, MARKDOWN, LATEX = "report.html", "report.md", "report.tex"
_KINDS: dict[str, CellKind] = {"OK": "ok", "near": "near", "FAIL": "fail"}


def write_page(outcomes: Sequence[RowOutcome], folder: Path) -> None:
    """Write the three files into a folder, in one step; an existing report is replaced.

    Raises:
        ConfigError: If there is no row, or `folder` contains anything that is no part of a report.
        OutputError: If it cannot be written.
    """
    if not outcomes:
        raise ConfigError("there is no row; give the file of a row")
    target = destination(folder)
    refuse_others_files(target, files_of)
    report = rows_report(outcomes, folder=target)
    files = {HTML: html(report), MARKDOWN: markdown(report), LATEX: latex(paper_tables(outcomes))}
    with building(target) as new:
        for name, text in files.items():
            (new / name).write_text(text, encoding="utf-8")


def files_of(folder: Path) -> Set[str]:
    """Return the names of the files of a report; empty if the page of the folder is not by citerec."""
    try:
        with (folder / HTML).open(encoding="utf-8") as file:
            is_ours = f'name="generator" content="{GENERATOR}"' in file.read(2000)
    except (OSError, UnicodeDecodeError):
        return set()
    return {HTML, MARKDOWN, LATEX} if is_ours else set()


def rows_report(outcomes: Sequence[RowOutcome], *, folder: Path | None = None) -> Report:
    """Return the report of some rows.

    Args:
        outcomes: The rows, in the order of the report.
        folder: The folder of the report, for links to the files of the rows; without it there are no links.
    """
    corpora = dict.fromkeys(row.corpus_and_split for row in outcomes)
    facts = [
        ("Rows", _counted(outcomes)),
        ("Corpora", "; ".join(corpus for corpus in corpora if corpus != NONE) or NONE),
        ("Intervals", "95 %, bootstrap over queries"),
    ]
    sections = [_rows(outcomes, folder), _claims(outcomes)]
    for group in groups(outcomes):
        sections += _group(group)
    return Report(title="Rows of experiments", facts=facts, sections=non_empty(sections))


def paper_tables(outcomes: Sequence[RowOutcome]) -> list[Table]:
    """Return a table for each table of the rows, for a paper: published values are below ours."""
    tables: list[Table] = []
    for name, rows in _by_table(outcomes).items():
        metrics = _metrics_of(rows)
        heads = [
            Column("Row", "name"),
            Column("Corpus", "name"),
            *map(Column, map(heading, metrics)),
        ]
        lines = [line for row in rows for line in _paper_lines(row, metrics)]
        tables.append(
            Table(
                caption=name, columns=heads, rows=[[Cell(text=t) for t in line] for line in lines]
            )
        )
    return tables


def _counted(outcomes: Sequence[RowOutcome]) -> str:
    verdicts = Counter(row.verdict for row in outcomes)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    rows = "1 row" if len(outcomes) == 1 else f"{len(outcomes)} rows"
    return f"{rows}: {counted}" if counted else rows


def _by_table(outcomes: Sequence[RowOutcome]) -> dict[str, list[RowOutcome]]:
    tables: dict[str, list[RowOutcome]] = {}
    for row in outcomes:
        tables.setdefault(row.table, []).append(row)
    return tables


def _metrics_of(rows: Sequence[RowOutcome]) -> list[str]:
    """Return the metrics of some rows: the usual ones in their order, then others."""
    present = dict.fromkeys(m for row in rows for of in row.all_values for m in of)
    return [m for m in METRICS if m in present] + [m for m in present if m not in METRICS]


def _figure(metric: str, value: float) -> str:
    return format_measure(metric, value) if metric in COUNTS else decimal(value)


def _rows(outcomes: Sequence[RowOutcome], folder: Path | None) -> Section:
    tables: list[Table] = []
    for name, rows in _by_table(outcomes).items():
        metrics = _metrics_of(rows)
        cells = [
            [
                Cell(text=row.title, link=_link(row, folder)),
                Cell(text=row.corpus_and_split),
                Cell(text=row.verdict, kind=_KINDS.get(row.verdict, "none")),
                *(_cell(row, metric) for metric in metrics),
            ]
            for row in rows
        ]
        names = [Column("row", "name"), Column("corpus", "name"), Column("verdict")]
        heads = [*names, *map(Column, map(heading, metrics))]
        tables.append(Table(caption=name, columns=heads, rows=cells))
    text = "With each value: its 95 % interval, the expected value of the row, the published value."
    return Section(title="Rows", text=[text], tables=tables)


def _cell(row: RowOutcome, metric: str) -> Cell:
    notes: list[str] = []
    if metric in row.expect:
        value = row.expect[metric]
        ends = value if isinstance(value, tuple) else (value,)
        notes.append(f"expected {' to '.join(_figure(metric, end) for end in ends)}")
    if metric in row.published:
        notes.append(f"published {_figure(metric, row.published[metric])}")
    if metric not in row.metrics:
        return Cell(text=NONE, notes=notes, order="", kind="none")
    interval = None
    if metric in row.ci95:
        low, high = row.ci95[metric]
        interval = _figure(metric, low), _figure(metric, high)
    value = row.metrics[metric]
    return Cell(text=_figure(metric, value), interval=interval, notes=notes, order=value)


def _claims(outcomes: Sequence[RowOutcome]) -> Section:
    rows = [
        [
            Cell(text=row.title),
            Cell(text=row.claim),
            Cell(text=": ".join(part for part in (row.verdict, row.why) if part)),
            Cell(
                text=row.published_source or NONE,
                link=row.published_source if is_address(row.published_source) else "",
            ),
            Cell(text=f"citerec experiment run {row.file}"),
        ]
        for row in outcomes
    ]
    texts = ("claim", "verdict", "source of published values", "command")
    heads = [Column("row", "name"), *(Column(name, "text") for name in texts)]
    table = Table(caption="What each row claims", columns=heads, rows=rows, is_sortable=False)
    return Section(title="Claims", tables=[table])


def _paper_lines(row: RowOutcome, metrics: Sequence[str]) -> Iterator[list[str]]:
    """Yield the values of a row, and below them the published ones if there are any."""
    yield [row.title, row.corpus_and_split, *_values(row.metrics, metrics)]
    if row.published:
        yield ["published", "", *_values(row.published, metrics)]


def _values(values: Mapping[str, float], metrics: Sequence[str]) -> list[str]:
    return [_figure(m, values[m]) if m in values else NONE for m in metrics]


def _link(row: RowOutcome, folder: Path | None) -> str:
    if folder is None:
        return ""
    return quote(Path(os.path.relpath(Path(row.file).absolute(), folder)).as_posix())


def _group(group: ComparableRows) -> Iterator[Section]:
    """Yield tests and figures of rows with the same queries."""
    where = ", ".join(part for part in (group.corpus, group.split) if part)
    rows = group.rows
    tested = {m: [n for n, row in rows.items() if row.has_scores(m)] for m in parts.COMPARED}
    tests = {metric: compared(group, metric) for metric in parts.COMPARED}
    tables = [parts.matrix(tested[m], pairs, m) for m, pairs in tests.items() if pairs]
    yield Section(title=f"Significance: {where}", text=[parts.TESTED], tables=tables)
    curves = {name: row.curve for name, row in rows.items()}
    figures = [parts.recall(curves)] if any(map(len, curves.values())) else []
    yield Section(title=f"Recall by depth: {where}", figures=figures)
    figures = [
        parts.differences({name: rows[name].per_query[m] for name in tested[m]}, m, rows)
        for m, pairs in tests.items()
        if pairs
    ]
    yield Section(title=f"Query by query: {where}", drawn=[parts.SORTED], figures=figures)
    bands = {n: r.calibration for n, r in rows.items() if r.calibration and not r.is_ceiling}
    figures = parts.calibration(bands, rows)
    yield Section(title=f"Calibration: {where}", text=[parts.CALIBRATED], figures=figures)
    years = {name: row.by_year or () for name, row in rows.items()}
    yield Section(title=f"By year: {where}", figures=parts.by_year(years, "f1@20"))
