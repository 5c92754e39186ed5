"""The report folder."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from support.pages import NASTY

from citerec.errors import ConfigError
from citerec.evaluate.assessment import Assessment, Evaluation, assess
from citerec.evaluate.contents import paper_table, report_of, summary_table
from citerec.evaluate.metrics import METRICS, recall_by_depth
from citerec.evaluate.report.latex import latex
from citerec.evaluate.report.markdown import markdown
from citerec.evaluate.report.numbers import decimal
from citerec.evaluate.report.terminal import terminal
from citerec.evaluate.report_folder import (
    refuse_meeting_ids,
    refuse_meeting_papers,
    refuse_meeting_qrels,
    refuse_meeting_run,
    refuse_own_inputs,
    run_files,
    write_report,
)
from citerec.folder import IndexFolder
from citerec.run import Run, read_qrels, read_run
from citerec.types import Ranking

GOLD = {"q1": 1, "q2": 2, "q3": 3, "q4": 10, "q5": 20, "q6": 21, "q7": 4, "q8": 5}
QRELS = {qid: frozenset(f"{qid}-{n:02}" for n in range(size)) for qid, size in GOLD.items()}
WORDS = {qid: 10 * n for n, qid in enumerate(QRELS, start=1)}


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
        query_words=WORDS,
        seconds={"bm25": 2.0},
        provenance={"versions": {"citerec": "0.1"}, "index": Path("indexes/tiny")},
        seed=3,
        resamples=256,  # every way to swap 8 queries
    )


@pytest.fixture(scope="module")
def report() -> Assessment:
    return assess(evaluation())


def test_report_json_has_the_promised_shape(report: Assessment, tmp_path: Path) -> None:
    write_report(report, tmp_path / "out")

    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [content[key] for key in ("corpus", "split", "queries", "known_graph")] == [
        "tiny",
        "test",
        8,
        "train",
    ]
    first, second = content["systems"]
    assert [first["name"], second["name"]] == ["bm25", "best"]
    assert tuple(first["metrics"]) == tuple(first["ci95"]) == METRICS
    assert first["metrics"]["mrr"] == pytest.approx(1 / 4)
    assert second["metrics"]["mrr"] == pytest.approx(1)
    assert all(low <= high for low, high in first["ci95"].values())
    assert (first["seconds"], second["seconds"]) == (2.0, None)
    assert len(content["comparisons"]) == len(METRICS)
    assert content["comparisons"][0]["a"] == "bm25"
    assert content["provenance"] == {"versions": {"citerec": "0.1"}, "index": "indexes/tiny"}


def test_the_folder_holds_every_part(report: Assessment, tmp_path: Path) -> None:
    write_report(report, tmp_path / "deep" / "out")

    folder = tmp_path / "deep" / "out"
    names = (
        "report.json report.md report.tex report.html recall_by_depth.png per_query.csv qrels.txt"
    )
    expected = {*names.split(), "bm25.run", "best.run"}
    assert {path.name for path in folder.iterdir()} == expected
    assert read_qrels(folder / "qrels.txt") == QRELS
    assert read_run(folder / "bm25.run") == report.evaluation.runs[0]
    assert (folder / "recall_by_depth.png").read_bytes().startswith(b"\x89PNG")


def test_a_name_of_a_page_leaves_room_for_the_curves(tmp_path: Path) -> None:
    write_report(
        assess(evaluation(Run("x" * 5_000, shifted(1)))), tmp_path / "out"
    )  # or matplotlib warns

    assert (tmp_path / "out" / "recall_by_depth.png").read_bytes().startswith(b"\x89PNG")


def test_a_spreadsheet_takes_no_cell_of_per_query_csv_for_a_formula(tmp_path: Path) -> None:
    qrels = {"=HYPERLINK(x)": frozenset("a"), "-7": frozenset("a"), "@q": frozenset("b")}
    rankings = {qid: Ranking(("a",), (1.0,)) for qid in qrels}
    made = replace(evaluation(Run("+run", rankings)), qrels=qrels, query_words={})

    write_report(assess(made), tmp_path / "out")

    with (tmp_path / "out" / "per_query.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["qid"] for row in rows] == ["-7", "'=HYPERLINK(x)", "'@q"]
    assert [float(row["'+run mrr"]) for row in rows] == [1, 1, 0]


def test_per_query_csv_has_a_row_for_every_query(report: Assessment, tmp_path: Path) -> None:
    write_report(report, tmp_path / "out")

    with (tmp_path / "out" / "per_query.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["qid"] for row in rows] == sorted(QRELS)
    assert [int(row["n_gold"]) for row in rows] == [GOLD[row["qid"]] for row in rows]
    assert [int(row["query_words"]) for row in rows] == [WORDS[row["qid"]] for row in rows]
    assert [float(row["bm25 mrr"]) for row in rows] == [0.25] * 8
    assert float(rows[0]["best precision@20"]) == 1 / 20


def test_figures_break_down_by_gold_and_by_words(report: Assessment) -> None:
    by_gold = {part.label: part.queries for part in report.by_gold}
    by_words = {part.label: part.queries for part in report.by_words}

    assert by_gold == {"1-2": 2, "3-5": 3, "6-10": 1, "11-20": 1, "21+": 1}
    assert by_words == {"10-20": 2, "30-40": 2, "50-60": 2, "70-80": 2}
    twenty = report.by_gold[3].systems["best"]
    assert (twenty["f1@20"], twenty["f1@20 (of means)"]) == pytest.approx((1, 1))


def test_figures_by_year_and_calibration_are_told(tmp_path: Path) -> None:
    years = {"q1": 2021, "q2": 2020, "q3": 2021}  # the others have none
    report = assess(replace(evaluation(), query_years=years))

    write_report(report, tmp_path / "out")

    content = json.loads((tmp_path / "out" / "report.json").read_text())
    f1 = dict(zip(sorted(QRELS), report.systems[1].per_query["f1@20"], strict=True))
    assert content["by_year"]["best"] == [
        {"year": 2020, "queries": 1, "mean": pytest.approx(f1["q2"])},
        {"year": 2021, "queries": 2, "mean": pytest.approx((f1["q1"] + f1["q3"]) / 2)},
    ]
    # Below three papers that none cites, each of 8 queries finds all that it cites.
    ranks = {
        band["bin"]: (band["papers"], band["cited"])
        for band in content["calibration"]["bm25"]["ranks"]
    }
    assert (ranks["1"], ranks["2-3"], ranks["4-5"]) == ((8, 0), (16, 0), (15, 15))
    page = (tmp_path / "out" / "report.md").read_text()
    assert "## By year\n\nF1@20 by the year of the query.\n" in page
    assert f"| 2020 | 1 | {decimal(report.by_year['bm25'][0].mean)} |" in page
    assert "By year" not in markdown(report_of(assess(evaluation())))


def test_queries_of_one_length_are_one_bin_and_unknown_lengths_none() -> None:
    same = replace(evaluation(), query_words=dict.fromkeys(QRELS, 7))
    unknown = replace(evaluation(), query_words={})

    assert [(part.label, part.queries) for part in assess(same).by_words] == [("7-7", 8)]
    assert assess(unknown).by_words == ()


def test_markdown_says_what_was_dropped_and_missing() -> None:
    rankings = shifted(3)
    odd = Run("a|b", {"q1": rankings["q1"], "gone": rankings["q2"]})

    text = markdown(report_of(assess(evaluation(odd))))

    assert "- a\\|b has an empty ranking for 7 queries." in text
    assert "- a\\|b: 1 queries of its run have no judgements and are dropped." in text
    assert "## Significance" not in text


def test_the_best_value_is_bold_and_bears_the_letters_of_those_it_beats(report: Assessment) -> None:
    rows = [line for line in latex([paper_table(report)]).splitlines() if line.endswith("\\\\")]

    mrr = [row.split(" & ")[4] for row in rows]
    # All 8 queries better: only 2 of the 256 ways to swap lie as far apart, p < 0.05.
    assert mrr == ["MRR", ".250", "\\textbf{1.000}$^{a}$"]
    recall = [row.split(" & ")[5] for row in rows]
    assert recall == ["R@100", "\\textbf{1.000}", "\\textbf{1.000}"]


def test_a_ceiling_is_shown_but_neither_best_nor_compared() -> None:
    runs = [Run("bm25", shifted(3)), Run("gold", shifted(0)), Run("best", shifted(1))]
    report = assess(replace(evaluation(*runs), ceilings=frozenset({"gold"})))

    rows = [line for line in latex([paper_table(report)]).splitlines() if line.endswith("\\\\")]
    mrr = [tuple(row.split(" & ")[i] for i in (0, 1, 4)) for row in rows]
    assert mrr[1:] == [
        ("a", "bm25", ".250"),
        ("", "gold", "1.000"),
        ("b", "best", "\\textbf{.500}$^{a}$"),
    ]
    assert {(c.a, c.b) for c in report.comparisons} == {("bm25", "best")}
    assert all(c.p_holm == c.p_fisher for c in report.comparisons)  # one pair, m = 1
    assert "- gold is made from the gold: a ceiling" in markdown(report_of(report))
    assert [len(part.systems) for part in report.by_words] == [3] * 4


def test_a_ceiling_alone_is_a_report(tmp_path: Path) -> None:
    report = assess(replace(evaluation(Run("oracle", shifted(0))), ceilings=frozenset({"oracle"})))

    write_report(report, tmp_path / "out")

    assert "textbf" not in (tmp_path / "out" / "report.tex").read_text()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["ceilings"] == ["oracle"]


def test_queries_left_out_are_told_with_their_reason(tmp_path: Path) -> None:
    report = assess(replace(evaluation(), left_out={"not in the corpus": 2, "of no year": 0}))

    write_report(report, tmp_path / "out")

    page = (tmp_path / "out" / "report.md").read_text()
    assert "- Queries: 8 with gold; 2 left out (2 not in the corpus)\n" in page
    assert "- A query with an empty ranking counts zero.\n" in page
    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert content["left_out"] == {"not in the corpus": 2, "of no year": 0}
    assert "left out" not in markdown(report_of(assess(evaluation())))


def test_what_is_not_known_of_the_citations_is_not_told() -> None:
    told = markdown(report_of(assess(evaluation())))
    silent = markdown(report_of(assess(replace(evaluation(), known_graph=None))))

    assert "- Citations known: train\n" in told
    assert "Citations known" not in silent


def test_a_folder_that_holds_an_input_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out" / "deep").mkdir(parents=True)
    run, link = tmp_path / "out" / "deep" / "a.run", tmp_path / "link.run"
    run.write_text("q1 Q0 x 1 2 t\n")
    link.symlink_to(run)

    refuse_own_inputs(tmp_path / "other", [run, link])
    for file in (run, link):
        with pytest.raises(ConfigError, match="which contains its input"):
            refuse_own_inputs(tmp_path / "out", [file])


def test_ids_that_meet_in_a_trec_file_are_refused(build: Callable[..., IndexFolder]) -> None:
    run = Run("mine", {"q": Ranking(("a b", "a_b"), (2.0, 1.0))})
    papers = build([{"id": i, "title": "T"} for i in ("a\u00a0b", "c", "a_b")]).papers

    refuse_meeting_ids(["a b", "ab", "a b"], "the queries")
    with pytest.raises(ConfigError, match="of run 'mine' are the same"):
        refuse_meeting_run(run)
    with pytest.raises(ConfigError, match="of the queries are the same"):
        refuse_meeting_qrels({"q 1": frozenset("x"), "q_1": frozenset("y")})
    with pytest.raises(ConfigError, match="of the corpus are the same in a TREC file"):
        refuse_meeting_papers(papers)


def test_nasty_names_are_written_drawn_and_printed(tmp_path: Path) -> None:
    runs = [Run(name, shifted(n)) for n, name in enumerate(NASTY)]
    report = assess(replace(evaluation(*runs), corpus="$\\frac{"))

    write_report(report, tmp_path / "out")
    with (tmp_path / "printed").open("w", encoding="utf-8") as file:
        Console(file=file, width=120).print(terminal(summary_table(report)))

    assert len(list((tmp_path / "out").glob("*.run"))) == len(NASTY)
    assert "_hidden" in (tmp_path / "printed").read_text(encoding="utf-8")


def test_the_summary_fits_a_terminal_of_80_columns(report: Assessment, tmp_path: Path) -> None:
    with (tmp_path / "printed").open("w") as file:
        Console(file=file, width=80).print(terminal(summary_table(report)))

    text = (tmp_path / "printed").read_text()
    low, high = report.systems[0].ci95["f1@20"]
    f1 = report.systems[0].metrics["f1@20"]
    row = next(line for line in text.splitlines() if "bm25" in line)
    assert f"{decimal(f1)} [{decimal(low)}, {decimal(high)}]" in row
    assert row.rstrip().endswith("2.0")
    assert "…" not in text


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


def test_a_former_report_is_replaced_whole(report: Assessment, tmp_path: Path) -> None:
    write_report(report, tmp_path / "out")
    other = assess(evaluation(Run("new", shifted(1))))

    write_report(other, tmp_path / "out")

    assert (tmp_path / "out" / "new.run").exists()
    assert not (tmp_path / "out" / "bm25.run").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def spoil_with_a_note(folder: Path) -> None:
    (folder / "notes.md").write_text("mine")


def spoil_with_a_run(folder: Path) -> None:
    (folder / "mine.run").write_text("mine")


def spoil_the_report(folder: Path) -> None:
    (folder / "report.json").write_text("[]")


@pytest.mark.parametrize("spoil", [spoil_with_a_note, spoil_with_a_run, spoil_the_report])
def test_a_folder_with_anything_else_in_it_is_left_alone(
    report: Assessment, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    write_report(report, tmp_path / "out")
    spoil(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    with pytest.raises(ConfigError, match="no part of a report"):
        write_report(report, tmp_path / "out")

    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_an_empty_folder_is_used_and_a_file_is_refused(report: Assessment, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "file").write_text("mine")

    write_report(report, tmp_path / "out")
    with pytest.raises(ConfigError, match="is a file"):
        write_report(report, tmp_path / "file")

    assert (tmp_path / "out" / "report.json").exists()


def test_recall_by_depth_rises_where_gold_is_found() -> None:
    qrels = {"q": frozenset({"a", "b"}), "missing": frozenset({"c"})}
    run = Run("x", {"q": Ranking(("a", "no", "b"), (3.0, 2.0, 1.0))})

    curve = recall_by_depth(run, qrels)

    assert curve[:3].tolist() == [0.25, 0.25, 0.5]
    assert (len(curve), curve[-1]) == (1000, 0.5)


def test_a_system_does_not_depend_on_those_beside_it(report: Assessment) -> None:
    alone = assess(evaluation(Run("best", shifted(0))))

    assert alone.systems[0].ci95 == report.systems[1].ci95


def test_what_cannot_be_evaluated_is_refused() -> None:
    run = Run("bm25", shifted(3))

    with pytest.raises(ConfigError, match="two runs are named 'bm25'"):
        evaluation(run, run)
    with pytest.raises(ConfigError, match="no query"):
        replace(evaluation(), qrels={})
    with pytest.raises(ConfigError, match="no run"):
        replace(evaluation(), runs=())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, ".000"), (0.1755, ".175"), (1.0, "1.000"), (-0.25, "-.250"), (12.5, "12.500")],
)
def test_decimals_have_no_leading_zero(value: float, text: str) -> None:
    assert decimal(value) == text
