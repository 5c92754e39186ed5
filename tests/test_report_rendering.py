"""Every report through every renderer: whatever a name holds, it is text."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from rich.console import Console
from support.pages import NASTY, Seen

from citerec.errors import ConfigError
from citerec.evaluate.assessment import Evaluation, assess
from citerec.evaluate.bins import Year
from citerec.evaluate.calibration import calibrate
from citerec.evaluate.contents import paper_table, report_of, summary_table
from citerec.evaluate.report.html import html
from citerec.evaluate.report.latex import latex
from citerec.evaluate.report.markdown import markdown
from citerec.evaluate.report.model import (
    Cell,
    Column,
    Report,
    Section,
    Table,
    columns,
    is_address,
)
from citerec.evaluate.report.terminal import terminal
from citerec.lab.experiment.compared import RowOutcome
from citerec.lab.experiment.page import paper_tables, rows_report
from citerec.run import Run
from citerec.types import Ranking

QRELS = {f"q{n}": frozenset({f"d{n}", "d0"}) for n in range(8)}
EVERYTHING = "".join(NASTY)


def run(name: str, shift: int) -> Run:
    return Run(
        name,
        {
            qid: Ranking(tuple(f"d{(n + shift) % 8}" for n in range(8)), tuple(range(8, 0, -1)))
            for qid in QRELS
        },
    )


@cache
def of_evaluation() -> tuple[Report, list[Table]]:
    assessment = assess(
        Evaluation(
            corpus=EVERYTHING,
            split=EVERYTHING,
            known_graph=EVERYTHING,
            qrels=QRELS,
            runs=[run(name, shift) for shift, name in enumerate(NASTY)],
            query_years={"q1": 2020, "q2": 2021},
            left_out={EVERYTHING: 1},
            provenance={"x": f"</pre><i>{EVERYTHING}"},
            ceilings=frozenset({NASTY[-1]}),
            resamples=10,
        )
    )
    return report_of(assessment), [paper_table(assessment), summary_table(assessment)]


@cache
def of_rows() -> tuple[Report, list[Table]]:
    rows = [
        RowOutcome(
            title=name,
            file=f"experiments/{number}.toml",
            table=name,
            corpus=EVERYTHING,
            split="test",
            claim=name,
            verdict="near",
            why=name,
            metrics={"f1@20": 0.5},
            published={"f1@20": 0.25},
            published_source="javascript:alert(1)",
            per_query={"f1@20": (0.1, 0.2, number / 10)},
            queries_sha256="abc",
            curve=(0.1, 0.2),
            calibration=calibrate(run(name, number), QRELS),
            by_year=[Year(2020, 1, 0.5)],
        )
        for number, name in enumerate(NASTY)
    ]
    return rows_report(rows), paper_tables(rows)


@cache
def by_hand() -> tuple[Report, list[Table]]:
    """Every place of the model that may hold a text."""
    cell = Cell(
        text=EVERYTHING, interval=(EVERYTHING, EVERYTHING), notes=NASTY, marks="a", kind="best"
    )
    rows = [[Cell(text=name), replace(cell, text=name), cell] for name in NASTY]
    heads = [Column(EVERYTHING, "name"), Column(EVERYTHING), Column(EVERYTHING, "text")]
    table = Table(caption=EVERYTHING, columns=heads, rows=rows, rule_after=1)
    table = replace(table, details=table)
    section = Section(
        title=EVERYTHING, text=NASTY, drawn=NASTY, notes=NASTY, tables=[table], code=EVERYTHING
    )
    facts = [(EVERYTHING, EVERYTHING)]
    return Report(title=EVERYTHING, facts=facts, text=NASTY, sections=[section]), [table]


Source = Callable[[], tuple[Report, list[Table]]]
Render = Callable[[Report, list[Table]], str]


def as_html(report: Report, _: list[Table]) -> str:
    return html(report)


def as_markdown(report: Report, _: list[Table]) -> str:
    return markdown(report)


def as_latex(_: Report, tables: list[Table]) -> str:
    return latex(tables)


def as_printed(_: Report, tables: list[Table]) -> str:
    file = io.StringIO()
    for table in tables:
        Console(file=file, width=400, markup=False).print(terminal(table))
    return file.getvalue()


sources = pytest.mark.parametrize("source", [of_evaluation, of_rows, by_hand])
renderers = pytest.mark.parametrize("render", [as_html, as_markdown, as_latex, as_printed])


@sources
@renderers
def test_no_name_controls_the_output_or_is_lost(source: Source, render: Render) -> None:
    text = render(*source())

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert re.search(r"\\?_hidden", text)
    assert render(*source()) == text


@sources
def test_a_name_is_no_tag_of_a_page(source: Source) -> None:
    page = as_html(*source())

    seen = Seen(page)
    tags = {tag for tag, _ in seen.tags}
    assert not {"img", "b", "i"} & tags
    assert len(seen.all("script")) == 1
    assert "<script>alert" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not any(name.startswith("on") for _, a in seen.tags for name in a)
    assert all(a["href"].startswith("#") for a in seen.all("a"))
    assert {name for name in NASTY if name.isprintable()} <= {*seen.texts["th"]}
    assert ("javascript:alert(1)" in seen.texts["td"]) == (source is of_rows)


@sources
def test_a_name_is_no_tag_link_or_cell_of_markdown(source: Source) -> None:
    text = as_markdown(*source()).partition("```")[0]

    assert not re.search(r"(?<!\\)<(?!/?sup>)[A-Za-z/!?]", text)
    assert "](" not in text.replace("](recall_by_depth.png)", "")
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert tables
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


@sources
def test_a_name_is_no_command_of_latex(source: Source) -> None:
    text = as_latex(*source())

    assert r"50\% of\_a \& \$x\textasciicircum{}2\$ \{\textbackslash{}\textasciitilde{}\}\#" in text
    assert "?? 2" in text
    assert r"\input{x}" not in text
    assert r"\frac" not in text
    assert not re.search(r"^[\[*]", text, re.MULTILINE)  # an option of the line above


@sources
def test_latex_compiles(
    source: Source, tmp_path: Path, compile_latex: Callable[[str, Path], None]
) -> None:
    compile_latex(as_latex(*source()), tmp_path)


def test_a_link_runs_no_script() -> None:
    def report(link: str) -> Report:
        table = Table(caption="t", columns=columns("a"), rows=[[Cell(text="x (y)", link=link)]])
        return Report(title="p", sections=[Section(title="s", tables=[table])])

    address = report("https://example.org/?a=1&b=(2)")
    assert Seen(html(address)).all("a")[-1]["href"].endswith("?a=1&b=(2)")
    assert "[x (y)](https://example.org/?a=1&b=%282%29)" in markdown(address)
    with pytest.raises(ConfigError, match="http, https or relative"):
        report("javascript:alert(1)")
    assert is_address("https://example.org")
    assert not is_address("see https://example.org")
    assert not is_address("javascript:alert(1)")


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="a row of 2 cells, 1 columns"):
        Table(caption="t", columns=columns("a"), rows=[[Cell(text="x"), Cell(text="y")]])


def test_a_cell_has_the_same_parts_in_every_format() -> None:
    value = Cell(
        text=".5", interval=(".4", ".6"), notes=["expected .3"], marks="ab", kind="best", order=0.5
    )
    rows = [[Cell(text="one"), value], [Cell(text="two"), Cell(text="1")]]
    table = Table(caption="All", columns=columns("name", "a\nb"), rows=rows, rule_after=1)
    report = Report(title="T", sections=[Section(title="All", tables=[table])])

    page, printed = html(report), as_printed(report, [table])

    assert (
        '<td class="best" data-sort="0.5">.5<sup>ab</sup><small>.4 to .6</small>'
        "<small>expected .3</small></td>"
    ) in page
    assert markdown(report) == (
        "# T\n\n## All\n\n| name | a b |\n| --- | ---: |\n"
        "| one | **.5**<sup>ab</sup> [.4, .6] (expected .3) |\n| two | 1 |\n"
    )
    assert "one & \\textbf{.5}$^{ab}$ [.4, .6] (expected .3) \\\\\n\\midrule\ntwo & 1" in latex(
        [table]
    )
    assert ".5 [.4, .6] (expected .3) ab" in printed
