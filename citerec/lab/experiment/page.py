"""The report of one run of `citerec experiment run`: rows with expected values, tests, and figures.

report.html   everything in one self-contained file
report.md     the same without figures
report.tex    the tables, for a paper
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from citerec.atomic import building
from citerec.errors import ConfigError
from citerec.evaluate import parts
from citerec.evaluate.page import GENERATOR, Cell, Page, PageTable, Section, is_address, render
from citerec.evaluate.tables import HEADINGS
from citerec.lab.experiment.compared import (
    COMPARED,
    ComparableRows,
    RowOutcome,
    compared,
    groups,
    significance,
)
from citerec.lab.experiment.rows_text import (
    NONE,
    by_table,
    columns_of,
    corpus_of,
    count_verdicts,
    expected,
    figure,
    rows_latex,
    rows_markdown,
)

__all__ = ["RowOutcome", "rows_latex", "rows_markdown", "rows_page", "significance", "write_page"]

HTML, MARKDOWN, LATEX = "report.html", "report.md", "report.tex"
_KINDS = {"OK": "ok", "near": "near", "FAIL": "fail"}


def write_page(outcomes: Sequence[RowOutcome], folder: Path) -> None:
    """Write the three files into a folder, in one step; an existing report is replaced.

    Raises:
        ConfigError: If there is no row, or `folder` contains anything that is no part of a report.
        OutputError: If it cannot be written.
    """
    if not outcomes:
        raise ConfigError("there is no row; give the file of a row")
    target = folder.resolve()
    refuse_others_files(target)
    files = {
        HTML: rows_page(outcomes, folder=target),
        MARKDOWN: rows_markdown(outcomes),
        LATEX: rows_latex(outcomes),
    }
    with building(target) as new:
        for name, text in files.items():
            (new / name).write_text(text, encoding="utf-8")


def refuse_others_files(folder: Path) -> None:
    """Refuse a folder that contains anything but a report, which would be replaced.

    Raises:
        ConfigError: If it does, or is a file.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the page")
    present = sorted(path.name for path in folder.iterdir())
    ours = {HTML, MARKDOWN, LATEX} if _is_ours(folder / HTML) else frozenset[str]()
    if others := [name for name in present if name not in ours]:
        raise ConfigError(
            f"{folder} holds {others[0]!r}, which is no part of a report; name a new or an empty folder"
        )


def rows_page(outcomes: Sequence[RowOutcome], *, folder: Path | None = None) -> str:
    """Return the rows as one self-contained HTML file.

    Args:
        outcomes: The rows, in the order of the page.
        folder: The folder of the page, for links to the files of the rows; without it there are no links.
    """
    facts = [("Rows", count_verdicts(outcomes))]
    corpora = dict.fromkeys(corpus_of(row) for row in outcomes)
    facts.append(("Corpora", "; ".join(corpus for corpus in corpora if corpus != NONE) or NONE))
    facts.append(("Intervals", "95 %, bootstrap over queries"))
    sections = [_tables(outcomes, folder), _claims(outcomes)]
    for number, group in enumerate(groups(outcomes)):
        sections += _group(group, f"g{number}")
    return render(
        Page(title="Rows of experiments", facts=facts, sections=parts.non_empty(sections))
    )


def _is_ours(page: Path) -> bool:
    try:
        with page.open(encoding="utf-8") as file:
            return f'name="generator" content="{GENERATOR}"' in file.read(2000)
    except (OSError, UnicodeDecodeError):
        return False


def _tables(outcomes: Sequence[RowOutcome], folder: Path | None) -> Section:
    tables: list[PageTable] = []
    for name, rows in by_table(outcomes).items():
        columns = columns_of(rows)
        heading = [
            "row",
            "corpus",
            "verdict",
            *(HEADINGS.get(column, column) for column in columns),
        ]
        cells = [
            [
                Cell(text=row.title, link=_link(row, folder)),
                Cell(text=corpus_of(row), kind="name"),
                Cell(text=row.verdict, kind=_KINDS.get(row.verdict, "none")),
                *(_figure(row, column) for column in columns),
            ]
            for row in rows
        ]
        tables.append(PageTable(caption=name, heading=heading, rows=cells))
    text = [
        "Below each value: its 95 % interval, the expected value of the row, the published value."
    ]
    return Section(title="Rows", text=text, tables=tables)


def _figure(row: RowOutcome, metric: str) -> Cell:
    small: list[str] = []
    value = row.metrics.get(metric)
    if value is not None and metric in row.ci95:
        small.append(" to ".join(figure(metric, end) for end in row.ci95[metric]))
    if target := expected(row, metric):
        small.append(f"expected {target}")
    if metric in row.published:
        small.append(f"published {figure(metric, row.published[metric])}")
    if value is None:
        return Cell(text=NONE, small=small, order="", kind="none")
    return Cell(text=figure(metric, value), small=small, order=value)


def _claims(outcomes: Sequence[RowOutcome]) -> Section:
    rows = [
        [
            Cell(text=row.title),
            Cell(text=row.claim, kind="text"),
            Cell(text=": ".join(part for part in (row.verdict, row.why) if part), kind="text"),
            Cell(
                text=row.published_source or NONE,
                link=row.published_source if is_address(row.published_source) else "",
                kind="text",
            ),
            Cell(text=f"citerec experiment run {row.file}", kind="text"),
        ]
        for row in outcomes
    ]
    heading = ["row", "claim", "verdict", "source of published values", "command"]
    table = PageTable(caption="What each row claims", heading=heading, rows=rows, is_sortable=False)
    return Section(title="Claims", tables=[table])


def _link(row: RowOutcome, folder: Path | None) -> str:
    if folder is None:
        return ""
    return quote(Path(os.path.relpath(Path(row.file).absolute(), folder)).as_posix())


def _group(group: ComparableRows, key: str) -> Iterator[Section]:
    """Yield tests and figures of rows with the same queries."""
    where = ", ".join(part for part in (group.corpus, group.split) if part)
    tests = {metric: compared(group, metric) for metric in COMPARED}
    tables = [
        parts.matrix(_tested(group, metric), comparisons, metric)
        for metric, comparisons in tests.items()
        if comparisons
    ]
    yield Section(title=f"Significance: {where}", text=[parts.TESTED], tables=tables)
    curves = {name: row.curve for name, row in group.rows.items()}
    figures = [parts.recall(curves, f"{key}recall")] if any(map(len, curves.values())) else []
    yield Section(title=f"Recall by depth: {where}", figures=figures)
    figures = [
        parts.differences(
            {name: group.rows[name].per_query[metric] for name in _tested(group, metric)},
            metric,
            f"{key}diff{number}",
            [*group.rows],
        )
        for number, metric in enumerate(COMPARED)
        if tests[metric]
    ]
    yield Section(title=f"Query by query: {where}", text=[parts.SORTED], figures=figures)
    rivals = {name: row for name, row in group.rows.items() if not row.is_ceiling}
    bands = {name: row.calibration for name, row in rivals.items() if row.calibration}
    figures = parts.calibration(bands, f"{key}cal", [*group.rows])
    yield Section(title=f"Calibration: {where}", text=[parts.CALIBRATED], figures=figures)
    years = {name: row.by_year or () for name, row in group.rows.items()}
    yield Section(title=f"By year: {where}", figures=parts.by_year(years, "f1@20", f"{key}year"))


def _tested(group: ComparableRows, metric: str) -> list[str]:
    return [name for name, row in group.rows.items() if row.has_scores(metric)]
