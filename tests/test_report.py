"""The report folder, and its tables for the terminal and for a paper."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.pages import NASTY

from citerec.errors import ConfigError
from citerec.evaluation.metrics import METRICS, metric_names
from citerec.evaluation.report import (
    Assessment,
    Evaluation,
    assess,
    paper_table,
    run_files,
    summary_table,
    write_report,
)
from citerec.evaluation.tables import Cell, Table, latex, terminal
from citerec.files.trec import Run, read_qrels, read_run
from citerec.types import Ranking

GOLD = {"q1": 1, "q2": 2, "q3": 3, "q4": 10, "q5": 20, "q6": 21, "q7": 4, "q8": 5}
QRELS = {qid: {f"{qid}-{n:02}": 1 for n in range(size)} for qid, size in GOLD.items()}


def shifted(by: int) -> dict[str, Ranking]:
    """All that each query cites, below `by` papers that it does not."""
    return {
        qid: Ranking.from_scores(
            {f"no{n}": 999.0 - n for n in range(by)} | {i: -float(i[-2:]) for i in gold}
        )
        for qid, gold in QRELS.items()
    }


def evaluation(*runs: Run) -> Evaluation:
    return Evaluation(
        corpus="tiny",
        split="test",
        known_graph="train",
        qrels=QRELS,
        runs=runs or (Run("bm25", shifted(3)), Run("best", shifted(0))),
        seconds={"bm25": 2.0},
        provenance={"versions": {"citerec": "0.1"}, "index": Path("indexes/tiny")},
        seed=3,
    )


@pytest.fixture(scope="module")
def report() -> Assessment:
    return assess(evaluation())


def test_report_json_has_the_promised_shape(report: Assessment, tmp_path: Path) -> None:
    write_report(report, tmp_path / "out")

    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (content["corpus"], content["split"]) == ("tiny", "test")
    assert (content["queries"], content["known_graph"]) == (8, "train")
    first, second = content["systems"]
    assert [first["name"], second["name"]] == ["bm25", "best"]
    assert tuple(first["metrics"]) == tuple(first["ci95"]) == METRICS
    assert first["metrics"]["mrr"] == pytest.approx(1 / 4)
    assert second["metrics"]["mrr"] == pytest.approx(1)
    assert all(low <= high for low, high in first["ci95"].values())
    assert (first["seconds"], second["seconds"]) == (2.0, None)
    assert len(content["comparisons"]) == len(METRICS)
    assert content["comparisons"][0]["a"] == "bm25"
    assert content["provenance"] == {
        "versions": {"citerec": "0.1"},
        "index": "indexes/tiny",
    }


def test_the_folder_holds_every_part_and_replaces_a_former_report(
    report: Assessment, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "out"
    write_report(assess(evaluation(Run("former", shifted(1)))), folder)

    write_report(report, folder)

    parts = {"report.json", "report.tex", "report.html", "per_query.csv", "qrels.txt"}
    assert {path.name for path in folder.iterdir()} == parts | {"bm25.run", "best.run"}
    assert read_qrels(folder / "qrels.txt") == QRELS
    assert read_run(folder / "bm25.run") == report.evaluation.runs[0]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_further_metrics_are_measured_and_shown(tmp_path: Path) -> None:
    wanted = metric_names("R@2, nDCG@10,mrr,P@20,nDCG@10")
    report = assess(
        replace(evaluation(), metrics=[m for m in wanted if m not in METRICS])
    )

    best = report.systems[1]
    shown = summary_table(report, wanted)
    assert wanted == ("recall@2", "ndcg@10", "mrr", "precision@20")
    assert best.metrics["ndcg@10"] == pytest.approx(1)
    # Of the 1, 2, 3, 10, 20, 21, 4 and 5 gold papers two at most are found.
    expected = np.mean([min(2, size) / size for size in GOLD.values()])
    assert best.metrics["recall@2"] == pytest.approx(expected)
    assert {"recall@2"} < {test.metric for test in report.comparisons}
    assert shown.columns == ["system", "R@2", "nDCG@10", "MRR", "P@20", "s"]
    wrong = "cites@10,R@x,R@2000,R@1001,R@-5,R@0,map@0,mrr@10-l0,r-precision@5,rbp@95,rbp,bpref"
    for unknown in wrong.split(","):
        with pytest.raises(ConfigError):
            metric_names(unknown)


def test_a_spreadsheet_takes_no_cell_of_per_query_csv_for_a_formula(
    tmp_path: Path,
) -> None:
    qrels = {"=HYPERLINK(x)": {"a": 1}, "-7": {"a": 1}, "@q": {"b": 1}}
    rankings = {qid: Ranking(("a",), (1.0,)) for qid in qrels}

    write_report(
        assess(replace(evaluation(Run("+run", rankings)), qrels=qrels)),
        tmp_path / "out",
    )

    with (tmp_path / "out" / "per_query.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["qid"] for row in rows] == ["-7", "'=HYPERLINK(x)", "'@q"]
    assert [float(row["'+run mrr"]) for row in rows] == [1, 1, 0]


def test_the_best_value_is_bold_and_bears_the_letters_of_those_it_beats(
    report: Assessment,
) -> None:
    rows = [
        line
        for line in latex([paper_table(report)]).splitlines()
        if line.endswith("\\\\")
    ]

    mrr = [row.split(" & ")[4] for row in rows]
    # All 8 queries better: only 2 of the 256 ways to swap lie as far apart, p < 0.05.
    assert mrr == ["MRR", ".250", "\\textbf{1.000}$^{a}$"]
    recall = [row.split(" & ")[5] for row in rows]
    assert recall == ["R@100", "\\textbf{1.000}", "\\textbf{1.000}"]


def test_a_ceiling_is_shown_but_neither_best_nor_compared() -> None:
    runs = [Run("bm25", shifted(3)), Run("gold", shifted(0)), Run("best", shifted(1))]
    report = assess(replace(evaluation(*runs), ceilings=frozenset({"gold"})))

    rows = [
        line
        for line in latex([paper_table(report)]).splitlines()
        if line.endswith("\\\\")
    ]
    mrr = [tuple(row.split(" & ")[i] for i in (0, 1, 4)) for row in rows]
    assert mrr[1:] == [
        ("a", "bm25", ".250"),
        ("", "gold", "1.000"),
        ("b", "best", "\\textbf{.500}$^{a}$"),
    ]
    assert {(c.a, c.b) for c in report.comparisons} == {("bm25", "best")}
    assert all(c.p_holm == c.p_fisher for c in report.comparisons)  # one pair, m = 1


def test_the_page_shows_facts_tests_and_recall_and_loads_nothing(
    tmp_path: Path,
) -> None:
    rankings = shifted(3)
    odd = Run("<b>odd", {"q1": rankings["q1"], "gone": rankings["q2"]})
    made = replace(
        evaluation(*evaluation().runs, odd),
        left_out={"not in the corpus": 2},
        provenance={"bm25": {"k1": 1.2, "b": 0.75}, "depth": 1000},
    )

    write_report(assess(made), tmp_path / "out")

    page = (tmp_path / "out" / "report.html").read_text()
    assert "8 queries with gold; 2 left out (2 not in the corpus)" in page
    assert "&lt;b&gt;odd has an empty ranking for 7 queries" in page
    assert "&lt;b&gt;odd: 1 queries of its run are not among them" in page
    assert "<li>bm25: k1 1.2, b 0.75</li>" in page and "<li>depth: 1000</li>" in page
    assert "Precision by rank" in page and "Recall by rank" in page
    assert '<th scope="row">q8</th>' in page  # a row for each query
    assert "best − bm25" in page and "+.750" in page  # MRR of best minus that of bm25
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "default-src 'none'" in page


def test_nasty_names_are_written_drawn_and_printed(tmp_path: Path) -> None:
    runs = [Run(name, shifted(n)) for n, name in enumerate([*NASTY, "x" * 5_000])]
    report = assess(replace(evaluation(*runs), corpus="$\\frac{"))

    write_report(report, tmp_path / "out")
    with (tmp_path / "printed").open("w", encoding="utf-8") as file:
        Console(file=file, width=120).print(terminal(summary_table(report)))

    assert len(list((tmp_path / "out").glob("*.run"))) == len(runs)
    assert "_hidden" in (tmp_path / "printed").read_text(encoding="utf-8")
    assert "\u202e" not in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )


def test_latex_escapes_what_it_would_read() -> None:
    table = Table(
        caption="50 %", columns=["a_b", "x"], rows=[[Cell(text="{"), Cell(text="1")]]
    )

    text = latex([table], made_by="a command")

    assert text.startswith("% Made by `a command`; needs")
    assert r"\caption{50 \%}" in text
    assert r"a\_b & x \\" in text
    assert "\\{ & 1 \\\\" in text


def test_run_files_are_safe_and_distinct_where_case_is_ignored() -> None:
    names = ["bm25+specter", "a/b", "a b", "BM25", "bm25", "..", "x" * 200]

    files = run_files(names)

    assert files[:6] == [
        "bm25+specter.run",
        "a_b.run",
        "a_b-2.run",
        "BM25.run",
        "bm25-2.run",
        "_.run",
    ]
    assert len(files[6]) == 84


def test_what_cannot_be_evaluated_is_refused() -> None:
    run = Run("bm25", shifted(3))

    with pytest.raises(ConfigError):
        evaluation(run, run)
