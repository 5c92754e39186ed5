"""The page of a run of experiment rows: figures beside the expected and the published, tests, files."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pages import NASTY, Seen

from citerec.errors import ConfigError
from citerec.evaluate.bins import by_year, years_of
from citerec.evaluate.calibration import calibrate
from citerec.evaluate.metrics import evaluate_run, recall_by_depth
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.report.html import html
from citerec.evaluate.report.latex import latex
from citerec.evaluate.report.markdown import markdown
from citerec.evaluate.significance import holm
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.lab.experiment.compared import RowOutcome, groups, significance
from citerec.lab.experiment.page import paper_tables, rows_report, write_page


def row(title: str, *f1: float, **facts: Any) -> RowOutcome:
    usual: dict[str, Any] = {
        "file": f"experiments/t/{title}.toml",
        "table": "t",
        "corpus": "tiny",
        "split": "test",
        "claim": f"{title} is good",
        "verdict": "OK",
        "metrics": {"f1@20": float(np.mean(f1))} if f1 else {},
        "per_query": {"f1@20": f1} if f1 else {},
        "queries_sha256": "abc",
    }
    return RowOutcome(title=title, **usual | facts)


@pytest.fixture(scope="module")
def real(sample_index: IndexFolder) -> list[RowOutcome]:
    task = load_task(sample_index, "test")
    systems = Systems(sample_index, task, EvalConfig())
    rows: list[RowOutcome] = []
    for name in ("bm25", "bm25-title", "most-cited"):
        run, _ = systems.run(name)
        measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), resamples=200)
        rows.append(
            RowOutcome(
                title=name,
                file=f"experiments/sample/{name}.toml",
                table="sample",
                corpus="sample",
                split="test",
                claim="words find papers",
                verdict="near",
                why="mrr is 0.5, expected 0.4",
                metrics=measured.metrics,
                ci95=measured.ci95,
                expect={"mrr": 0.4, "recall@100": (0.3, 0.9)},
                published={"f1@20": 0.109},
                published_source="https://example.org/paper",
                per_query={m: measured.per_query[m].round(5).tolist() for m in ("f1@20", "mrr")},
                queries_sha256="abc",
                curve=recall_by_depth(run, task.qrels).tolist(),
                calibration=calibrate(run, task.qrels),
                by_year=by_year(
                    measured.per_query["f1@20"], sorted(task.qrels), years_of(task.queries)
                ),
            )
        )
    counted = RowOutcome(
        title="how many",
        file="experiments/statistics/sample.toml",
        table="statistics",
        corpus="sample",
        split="",
        claim="as many as it says",
        verdict="OK",
        metrics={"papers": 7_200_000, "first year": 1991},
    )
    absent = replace(
        counted,
        title="elsewhere",
        verdict="not run here",
        why="no data",
        metrics={},
        published={"papers": 50_227},
    )
    return [*rows, counted, absent]


def test_the_page_shows_every_row_with_what_it_should_give(real: list[RowOutcome]) -> None:
    seen = Seen(html(rows_report(real)))

    assert {"bm25", "bm25-title", "most-cited", "how many", "elsewhere"} <= {*seen.texts["th"]}
    assert {"expected .400", "expected .300 to .900", "published .109"} <= {*seen.texts["small"]}
    assert {"7,200,000", "1991", "not run here"} <= {*seen.texts["td"]}
    assert "published 50,227" in seen.texts["small"]
    assert "near: mrr is 0.5, expected 0.4" in seen.texts["td"]
    assert "citerec experiment run experiments/sample/bm25.toml" in seen.texts["td"]
    assert "5 rows: 3 near, 1 OK, 1 not run here" in seen.texts["dd"]
    links = {a["href"] for a in seen.all("a") if not a["href"].startswith("#")}
    assert links == {"https://example.org/paper"}
    assert not any("src" in attributes for _, attributes in seen.tags)


def test_only_rows_with_runs_are_drawn_and_tested(real: list[RowOutcome]) -> None:
    everything, counts = Seen(html(rows_report(real))), Seen(html(rows_report(real[3:])))

    assert everything.texts["h2"] == [
        "Rows",
        "Claims",
        "Significance: sample, test",
        "Recall by depth: sample, test",
        "Query by query: sample, test",
        "Calibration: sample, test",
        "By year: sample, test",
    ]
    assert len([a for a in everything.all("svg") if a.get("role") == "img"]) == 6
    assert counts.texts["h2"] == ["Rows", "Claims"]
    ids = [attributes["id"] for _, attributes in everything.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_rows_give_the_same_files(real: list[RowOutcome]) -> None:
    for write in (html, markdown):
        assert write(rows_report(real)) == write(rows_report(list(real)))
    assert latex(paper_tables(real)) == latex(paper_tables(list(real)))


def test_every_pair_is_tested_as_scipy_tests_it() -> None:
    from scipy import stats

    rng = np.random.default_rng(1)
    scores = [rng.random(9).round(3) for _ in range(4)]
    rows = [row(name, *values.tolist()) for name, values in zip("abcd", scores, strict=True)]

    tests = significance(rows, "f1@20")  # 512 swaps: each is tried

    pairs = [*combinations(range(4), 2)]
    exact = [
        stats.permutation_test(
            (scores[b], scores[a]),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        ).pvalue
        for a, b in pairs
    ]
    assert [(test.a, test.b) for test in tests] == [("abcd"[a], "abcd"[b]) for a, b in pairs]
    assert [test.p_fisher for test in tests] == pytest.approx(exact, abs=1e-9)
    assert [test.p_holm for test in tests] == pytest.approx(holm(exact), abs=1e-9)
    assert tests[0].difference == pytest.approx(scores[1].mean() - scores[0].mean())
    assert tests[0].p_student == pytest.approx(stats.ttest_rel(scores[0], scores[1]).pvalue)


def test_holm_counts_the_pairs_of_each_group_alone() -> None:
    better, worse = (0.9,) * 6, (0.1,) * 6  # 2 of the 64 swaps lie as far apart: p = 1/32
    here = [row("a", *worse), row("b", *better)]
    there = [replace(one, title=one.title + "2", queries_sha256="other") for one in here]

    tests = significance([*here, *there], "f1@20")

    assert [(t.a, t.b) for t in tests] == [("a", "b"), ("a2", "b2")]
    assert [t.p_holm for t in tests] == pytest.approx([1 / 32, 1 / 32])
    assert significance(here, "mrr") == []
    assert significance([row("no run"), *here[:1]], "f1@20") == []
    assert significance([here[0], replace(here[1], is_ceiling=True)], "f1@20") == []


def test_many_rows_can_still_differ_significantly() -> None:
    rng = np.random.default_rng(0)
    rows = [row(f"r{n}", *(rng.random(60) / 10 + n / 25).tolist()) for n in range(25)]

    tests = significance(rows, "f1@20")

    # 300 pairs, 30,000 swaps: the least p is 300/30,001. With 10,000 it would be 300/10,001 = .03.
    assert len(tests) == 300
    assert min(test.p_holm for test in tests) == pytest.approx(300 / 30_001)


def test_rows_of_unknown_queries_stand_alone() -> None:
    rows = [row("a", 0.1, 0.2, queries_sha256=""), row("b", 0.3, 0.2, queries_sha256="")]

    assert significance(rows, "f1@20") == []
    assert [[*group.rows] for group in groups(rows)] == [["a"], ["b"]]


def test_rows_of_one_title_are_told_apart() -> None:
    rows = [row("a", 0.1), row("a", 0.2, file="other.toml"), row("a", 0.3, file="other.toml")]

    [group] = groups(rows)

    assert [*group.rows] == ["a (experiments/t/a.toml)", "a (other.toml)", "a (other.toml) 2"]


def test_rows_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'a' has 1 queries, 'b' 2; .* run both rows again"):
        significance([row("a", 0.1), row("b", 0.1, 0.2)], "f1@20")
    with pytest.raises(ConfigError, match="different numbers of queries"):
        row("a", per_query={"f1@20": [0.1], "mrr": [0.1, 0.2]})
    with pytest.raises(ConfigError, match="interval of 'mrr'"):
        row("a", ci95={"mrr": [0.1]})


def test_markdown_holds_figures_claims_and_tests(real: list[RowOutcome]) -> None:
    text = markdown(rows_report(real))

    mrr, (low, high) = real[0].metrics["mrr"], real[0].ci95["mrr"]
    cell = f"{mrr:.3f} [{low:.3f}, {high:.3f}] (expected 0.400)".replace("0.", ".")
    assert cell in text
    assert "(published .109)" in text
    assert "| how many | sample | OK | 7,200,000 | 1991 |" in text
    assert "| elsewhere | sample | not run here | – (published 50,227) | – |" in text
    assert "| bm25 | words find papers | near: mrr is 0.5, expected 0.4 |" in text
    assert "| citerec experiment run experiments/sample/bm25.toml |" in text
    assert "## Significance: sample, test" in text
    assert text.count("\n| MRR | ") == 3


def test_latex_has_the_published_figures_below_ours(real: list[RowOutcome]) -> None:
    nasty = [replace(one, title=title) for one, title in zip(real, NASTY, strict=False)]

    text = latex(paper_tables(nasty))

    lines = text.splitlines()
    ours = next(i for i, line in enumerate(lines) if "script" in line)
    assert lines[ours + 1].startswith("published &  & .109 & – &".replace("–", "--"))


def test_the_files_are_written_and_a_former_page_replaced(
    real: list[RowOutcome], tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "page"

    write_page(real, folder)
    write_page(real[:1], folder)

    assert {path.name for path in folder.iterdir()} == {"report.html", "report.md", "report.tex"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "7,200,000" not in page
    link = next(a["href"] for a in Seen(page).all("a") if a["href"].endswith("bm25.toml"))
    assert (folder / link).resolve() == Path("experiments/sample/bm25.toml").absolute()


def test_a_folder_with_anything_else_is_left_alone(real: list[RowOutcome], tmp_path: Path) -> None:
    notes, other, file = tmp_path / "notes", tmp_path / "other", tmp_path / "file"
    write_page(real[3:], notes)
    (notes / "mine.txt").write_text("mine")
    other.mkdir()
    (other / "report.md").write_text("of somebody else")
    file.write_text("mine")

    for folder, why in ((notes, "'mine.txt'"), (other, "'report.md'"), (file, "is a file")):
        with pytest.raises(ConfigError, match=why):
            write_page(real, folder)
    with pytest.raises(ConfigError, match="no row"):
        write_page([], tmp_path / "new")

    assert (notes / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "new").exists()
