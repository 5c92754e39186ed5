"""The page at `/`, in a real browser against a real server."""

import json
import re
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import SECONDS, axe_script, free_port, open_browser, open_page, serving
from support.pages import NASTY

from citerec.config import RecommendConfig
from citerec.folder import IndexFolder
from citerec.recommend import BatchRecommender
from citerec.serve.page.backend import PageBackend
from citerec.serve.page.messages import in_words_of_the_page
from citerec.serve.page.uploads import Upload, read_uploads
from citerec.serve.page.view import marked, snippet, stem
from citerec.serve.service import Service
from citerec.types import Paper, Query

TITLE = "Dense retrieval of passages"
ABSTRACT = "We train a bi-encoder for open-domain question answering with hard negatives from BM25."
DRAFT = {"#title": TITLE, "#abstract": ABSTRACT}


@pytest.fixture(scope="module")
def service(sample_index: IndexFolder) -> Generator[Service]:
    """The sample without vectors, by two names."""
    opened = Service({"sample": sample_index.path, "again": sample_index.path})
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(service: Service) -> Generator[str]:
    with serving(service) as at:
        yield at


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, address: str) -> Generator[Any]:
    with open_page(browser, address) as opened:
        yield opened


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as of

    of.set_options(timeout=SECONDS * 1000)
    return of(locator)


def find(page: Any, draft: dict[str, str] = DRAFT) -> None:
    """Fill the form, search, and wait for the last order."""
    for field, text in draft.items():
        page.fill(field, text)
    page.click("#find")
    expect(page.locator("#status")).to_contain_text("after")


def ids(page: Any) -> list[str]:
    return page.eval_on_selector_all(".row:not([hidden])", "rows => rows.map(row => row.dataset.id)")


# The short story


def test_an_author_finds_marks_and_exports_papers(page: Any) -> None:
    find(page)
    first, second, *_ = ids(page)

    page.hover(".row >> nth=0")
    page.click(".row .act.known >> nth=0")
    expect(page.locator("#known li")).to_have_count(1)
    expect(page.locator(f'.row[data-id="{first}"]')).to_have_count(0)
    page.check(f'.row[data-id="{second}"] input')
    with page.expect_download() as download:
        page.click("[data-save=bibtex]")

    assert second in Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == "references.bib"
    page.reload()  # the draft and the marks are in the browser
    expect(page.locator("#title")).to_have_value(TITLE)
    expect(page.locator("#known li")).to_have_count(1)
    expect(page.locator(".row").first).to_be_visible()
    assert first not in ids(page)


# What the server does for the page


def test_words_are_marked_by_their_stem_as_parts_of_the_text() -> None:
    assert marked("Graphs of a graph", ["graph"]) == ["", "Graphs", " of a ", "graph", ""]
    assert marked("No word", []) == ["No word"]
    assert stem("Networks") == stem("network")


def test_a_snippet_starts_with_the_sentence_that_holds_most_words() -> None:
    abstract = "Nothing here. Trees are drawn as maps. The end."

    assert snippet(abstract, ["tree", "map"]) == "… Trees are drawn as maps. The end."
    assert snippet("", ["tree"]) == ""


def test_messages_name_fields_of_the_page_in_place_of_options() -> None:
    late = "all papers are later; give --year-max 1990 or a later year, or correct the draft's year"
    damaged = "it is damaged; pass its text: pdftotext paper.pdf - | citerec recommend --query -"

    assert "set the latest year to 1990 or later" in in_words_of_the_page(late)
    assert in_words_of_the_page(damaged, "; paste its text") == "it is damaged; paste its text"


def test_rows_name_the_papers_of_reasons_by_id(sample_index: IndexFolder) -> None:
    backend = Service({"sample": sample_index.path})
    view = PageBackend(backend).papers(None, [sample_index.papers[0].id])
    backend.close()

    assert view["rows"][0]["title"] == [sample_index.papers[0].title]
    assert view["links"] == []


def test_a_bib_with_a_tex_is_its_bibliography_and_alone_a_list(sample_index: IndexFolder) -> None:
    paper = sample_index.papers[3]
    bib = Upload("my.bib", f"@article{{one, title={{{paper.title}}}, year={paper.year}}}".encode())
    tex = Upload(
        "draft.tex",
        rb"\documentclass{article}\title{Maps of trees}\begin{document}\maketitle"
        rb"\begin{abstract}We draw trees as maps, as in \cite{one}.\end{abstract}"
        rb"\bibliography{my}\end{document}",
    )

    both, alone = read_uploads([bib, tex], sample_index), read_uploads([bib], sample_index)

    assert both["draft"]["title"] == "Maps of trees"
    assert alone["draft"] is None
    assert [one["id"] for one in both["cited"]] == [one["id"] for one in alone["cited"]] == [paper.id]
