"""What editors and reference managers use: the recipes of docs/recipes, and answers in their formats."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi")


from citerec import Recommender
from citerec.export import Format
from citerec.folder import IndexFolder
from citerec.serve.exports import MEDIA_TYPES, accepted_format, bibliography, headers
from citerec.serve.service import QueryAnswer
from citerec.types import Paper, Query, Recommendation

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "docs" / "recipes"
GUIDE = ROOT / "docs" / "guides" / "editors.md"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="Node.js is not installed")


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("", None),
        ("*/*", None),
        ("application/json", None),
        ("application/x-bibtex", Format.BIBTEX),
        ("text/x-bibtex; charset=utf-8", Format.BIBTEX),
        ("application/x-research-info-systems, application/json", Format.RIS),
        ("application/json, application/x-bibtex", None),
        ("application/json;q=0.5, application/x-bibtex", Format.BIBTEX),
        ("application/x-bibtex;q=0.2, */*", None),
        ("Application/VND.CitationStyles.CSL+JSON;q=1", Format.CSL),
        ("application/x-bibtex;q=nan, application/x-bibtex;q=7", None),
        ("text/html, application/xhtml+xml, */*;q=0.8", None),
    ],
)
def test_a_format_must_be_named_and_preferred_to_json(accept: str, format: Format | None) -> None:
    assert accepted_format(accept) is format


def test_a_bibliography_holds_each_paper_once_and_has_the_type_of_its_format() -> None:
    paper = Paper(id="a", title="Maps of trees", year=2001, doi="10.1234/maps", venue="VIS")
    items = (Recommendation(rank=1, paper=paper, score=2.0),)
    answers = [QueryAnswer(Query(id=name, title="Trees"), items) for name in ("q1", "q2")]

    [item] = json.loads(bibliography(answers, Format.CSL))

    assert (item["type"], item["DOI"]) == ("paper-conference", "10.1234/maps")
    assert headers(Format.CSL)["Content-Type"] == (
        "application/vnd.citationstyles.csl+json; charset=utf-8"
    )


@pytest.fixture
def server(address: str) -> str:
    """The URL of the server that all tests share."""
    return address.removesuffix("/")


@pytest.mark.parametrize("format", [*MEDIA_TYPES])
def test_an_answer_in_a_format_is_what_the_python_api_exports(
    server: str, sample_index: IndexFolder, format: Format
) -> None:
    answer = httpx.post(
        f"{server}/v1/recommend",
        json={"title": "Dense retrieval of passages", "k": 3},
        headers={"Accept": f"{MEDIA_TYPES[format]}, application/json;q=0.1"},
        timeout=60,
    )

    with Recommender(sample_index) as recommender:
        papers = recommender.recommend(title="Dense retrieval of passages", k=3)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(MEDIA_TYPES[format])
    assert answer.text == papers.export(format)


@needs_node
def test_the_script_of_the_editor_prints_papers_and_entries(
    server: str, sample_index: IndexFolder
) -> None:
    text = "Late interaction keeps token vectors [CITE]."

    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs"],
        env={"CITEREC_SERVER": server, "CITEREC_TEXT": text, "CITEREC_K": "2"},
        capture_output=True,
        text=True,
        check=False,
    )

    with Recommender(sample_index) as recommender:
        papers = recommender.recommend(context=text, k=2)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"1. {papers[0].paper.title}\n   {papers[0].paper.authors[0]}")
    assert done.stdout.endswith(f"\n{papers.export('bibtex')}\n")


@needs_node
def test_the_script_shows_the_error_of_the_server(server: str) -> None:
    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs", "[CITE]"],
        env={"CITEREC_SERVER": server},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "the context has no words besides citation markers" in done.stderr


@needs_node
def test_the_bookmarklet_opens_the_page_with_the_selected_text() -> None:
    address = (RECIPES / "bookmarklet.js").read_text()
    stubs = """
    globalThis.getSelection = () => "  Trees & maps #1\\nare [CITE]. ";
    globalThis.open = (...given) => console.log(JSON.stringify(given));
    """

    done = subprocess.run(
        [NODE, "-e", stubs + address.removeprefix("javascript:")],
        capture_output=True,
        text=True,
        check=True,
    )

    url = "http://127.0.0.1:8000/#context=Trees+%26+maps+%231%0Aare+%5BCITE%5D."
    assert json.loads(done.stdout) == [url, "citerec"]


def test_the_guide_shows_the_bookmarklet_on_one_line() -> None:
    one_line = " ".join((RECIPES / "bookmarklet.js").read_text().split())

    assert one_line in GUIDE.read_text().splitlines()


def test_the_task_of_the_editor_runs_the_script() -> None:
    [task] = json.loads((RECIPES / "tasks.json").read_text())["tasks"]

    assert task["args"] == ["${userHome}/cite.mjs"]
    assert f'"args": "{task["label"]}"' in GUIDE.read_text()
    assert len((RECIPES / "cite.mjs").read_text().splitlines()) <= 32


@needs_node
def test_the_script_says_that_there_is_no_server() -> None:
    done = subprocess.run(
        [NODE, RECIPES / "cite.mjs", "Trees [CITE]."],
        env={"CITEREC_SERVER": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("http://127.0.0.1:9: ")
    assert done.stderr.count("\n") == 1
