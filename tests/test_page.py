"""The page of a report: one file that loads nothing, the same bytes each time, harmless whatever is named in it."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.pages import Seen
from support.tools import browser_fault, run_browser

from citerec.evaluate.assessment import Assessment, Evaluation, assess
from citerec.evaluate.bins import years_of
from citerec.evaluate.contents import report_of
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.report.html import html
from citerec.evaluate.report.plots import sorted_line, thinned
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.run import Run
from citerec.types import Ranking


@pytest.fixture(scope="module")
def evaluation(sample_index: IndexFolder) -> Evaluation:
    task = load_task(sample_index, "test")
    systems = Systems(sample_index, task, EvalConfig())
    return Evaluation(
        corpus="sample",
        split="test",
        known_graph="train",
        qrels=task.qrels,
        runs=[systems.run(name)[0] for name in ("bm25", "bm25-title", "random", "oracle")],
        query_words=task.words,
        query_years=years_of(task.queries),
        provenance={"versions": {"citerec": "0.1"}},
        ceilings=frozenset({"oracle"}),
        resamples=500,
    )


@pytest.fixture(scope="module")
def report(evaluation: Evaluation) -> Assessment:
    return assess(evaluation)


@pytest.fixture(scope="module")
def page(report: Assessment) -> str:
    return html(report_of(report))


def test_the_page_has_every_part(page: str, report: Assessment) -> None:
    seen = Seen(page)

    assert seen.texts["h1"] == ["sample, test split"]
    assert seen.texts["h2"] == [
        "Systems",
        "Significance",
        "Recall by depth",
        "Query by query",
        "Calibration",
        "By year",
        "Kinds of queries",
        "Provenance",
    ]
    mrr = report.systems[0].metrics["mrr"]
    assert f"{mrr:.3f}".lstrip("0") in seen.texts["td"]
    assert '"citerec": "0.1"' in "".join(seen.texts["pre"])


def test_the_page_loads_nothing(page: str) -> None:
    seen = Seen(page)

    assert not any("src" in attributes for _, attributes in seen.tags)
    assert not {"link", "iframe", "img", "object", "embed", "base", "form"} & {
        t for t, _ in seen.tags
    }
    targets = [a[key] for _, a in seen.tags for key in ("href", "xlink:href") if key in a]
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert "@import" not in page
    assert set(re.findall(r"url\((.)", page)) == {"#"}
    assert "http://" not in page
    assert "https://" not in page
    policy = next(a["content"] for a in seen.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")


def test_every_place_that_the_page_refers_to_is_there_once(page: str) -> None:
    seen = Seen(page)

    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = {a["href"][1:] for _, a in seen.tags if a.get("href", "").startswith("#")}
    wanted |= {a["aria-labelledby"] for _, a in seen.tags if "aria-labelledby" in a}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", page))
    assert wanted <= set(ids)


def test_figures_have_a_title_and_tables_have_headings(page: str) -> None:
    seen = Seen(page)

    drawings = [a for a in seen.all("svg") if "aria-hidden" not in a]
    assert len(drawings) == 6
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in drawings)
    assert any("bm25-title" in title for title in seen.texts["title"][1:])
    assert len(seen.texts["caption"]) == len(seen.all("table"))
    assert {a["scope"] for a in seen.all("th")} == {"row", "col"}
    assert seen.all("html") == [{"lang": "en"}]


def test_the_same_report_gives_the_same_bytes(
    report: Assessment, page: str, evaluation: Evaluation
) -> None:
    assert html(report_of(report)) == page
    assert html(report_of(assess(evaluation))) == page
    assert "<dc:" not in page


def test_a_ceiling_is_drawn_but_not_tested(page: str) -> None:
    seen = Seen(page)

    headings = seen.texts["th"]
    assert "oracle" in headings
    matrix = page.partition("F1@20: row minus column")[2].partition("</table>")[0]
    assert "random" in matrix
    assert "oracle" not in matrix
    assert "oracle is made from the gold: a ceiling, which is not compared." in seen.texts["li"]


def test_the_matrix_holds_every_pair_both_ways(page: str, report: Assessment) -> None:
    matrix = page.partition("MRR: row minus column")[2].partition("</table>")[0]

    cells = re.findall(
        r"<td[^>]*>(?:[▲▼] )?([+−]?[.\d]+)<small>p ([<. \d]+)</small>", matrix.replace("&lt;", "<")
    )
    assert len(cells) == 3 * 2
    tests = {(c.a, c.b): c for c in report.comparisons if c.metric == "mrr"}
    gain = tests["bm25", "bm25-title"].difference  # of the title, in its row
    below = cells[2]
    assert float(below[0].replace("−", "-")) == pytest.approx(gain, abs=0.0005)
    assert cells[0][1] == below[1]


def test_one_system_and_one_query_are_a_page() -> None:
    run = Run("only", {"q": Ranking(("a",), (1.0,))})
    empty = Run("nothing", {})
    alone = Evaluation(
        corpus="c",
        split="s",
        known_graph=None,
        qrels={"q": frozenset("a")},
        runs=[run],
        resamples=10,
    )

    one = Seen(html(report_of(assess(alone))))
    two = Seen(html(report_of(assess(replace(alone, runs=[run, empty], query_years={"q": 2020})))))
    none = Seen(html(report_of(assess(replace(alone, runs=[empty])))))

    assert one.texts["h2"] == ["Systems", "Recall by depth", "Calibration", "Kinds of queries"]
    assert "By year" in two.texts["h2"]
    assert "nothing has an empty ranking for 1 queries." in two.texts["li"]
    assert "Calibration" not in none.texts["h2"]


@pytest.mark.slow
def test_ten_systems_on_a_thousand_queries_stay_below_a_megabyte() -> None:
    rng = np.random.default_rng(0)
    qrels = {f"q{n}": frozenset({"d1", "d5", f"d{n % 40}"}) for n in range(1000)}
    docids = [f"d{n}" for n in range(50)]

    def run(name: str) -> Run:
        scores = rng.random((1000, 50)).tolist()
        return Run(
            name,
            {
                qid: Ranking.from_scores(dict(zip(docids, row, strict=True)))
                for qid, row in zip(qrels, scores, strict=True)
            },
        )

    big = Evaluation(
        corpus="big",
        split="test",
        known_graph="train",
        qrels=qrels,
        runs=[run(f"system {n}") for n in range(10)],
        query_years={qid: 2000 + n % 15 for n, qid in enumerate(qrels)},
        resamples=20,
    )

    assert len(html(report_of(assess(big))).encode()) < 500_000


def test_a_line_keeps_its_ends_and_is_sorted() -> None:
    assert thinned(1000)[[0, 1, -1]].tolist() == [1, 2, 1000]
    assert thinned(3).tolist() == [1, 2, 3]
    share, height = sorted_line(np.array([0.1, -0.5, 0.3, 0.0]))
    assert share.tolist() == [12.5, 37.5, 62.5, 87.5]
    assert height.tolist() == [0.3, 0.1, 0.0, -0.5]
    share, height = sorted_line(np.arange(1000.0))
    assert len(share) == 200
    assert (height[0], height[-1]) == (999, 0)


CLICK = """<script>
addEventListener("load", () => {
  const table = document.querySelector("table.sortable"), names = () =>
    [...table.tBodies[0].rows].map(row => row.cells[0].textContent.trim()).join(" ");
  const before = names(); table.tHead.rows[0].cells[1].querySelector("button").click();
  const down = names(); table.tHead.rows[0].cells[1].querySelector("button").click();
  document.title = [before, down, names()].join("; ");
});
</script>"""


Browse = Callable[..., str]


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Browse:
    """Open a page in a browser and return the page as it is then; the test is skipped where no browser works."""
    folder = tmp_path_factory.mktemp("browser")
    if fault := browser_fault(folder):
        pytest.skip(fault)

    def open_page(page: Path, *, is_loud: bool = False) -> str:
        done = run_browser(page, folder / "profile", "--dump-dom")
        assert done.returncode == 0, done.stderr
        assert ("CONSOLE" in done.stderr) == is_loud, done.stderr
        return done.stdout

    return open_page


def test_a_browser_sorts_the_table_by_a_click(page: str, tmp_path: Path, browse: Browse) -> None:
    # The page forbids other scripts than its own, ours here, too.
    open_page = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("</body>", f"{CLICK}</body>")
    file = tmp_path / "page.html"
    file.write_text(open_page, encoding="utf-8")

    seen = Seen(browse(file))

    before, down, up = seen.texts["title"][0].split("; ")
    assert before == "bm25 bm25-title random oracle"
    assert down.split()[0] == "oracle"
    assert up.split() == down.split()[::-1]


def test_a_browser_runs_the_pages_script_and_no_other(
    page: str, tmp_path: Path, browse: Browse
) -> None:
    evil = "<script>document.title = 'evil'</script>"
    files = [tmp_path / "page.html", tmp_path / "evil.html"]
    files[0].write_text(page, encoding="utf-8")
    files[1].write_text(page.replace("<main>", f"<main>{evil}"), encoding="utf-8")

    clean = browse(files[0])
    spoilt = browse(files[1], is_loud=True)

    assert "<button" in clean
    assert "<title>sample, test split</title>" in clean
    assert "<title>sample, test split</title>" in spoilt
