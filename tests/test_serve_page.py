"""The page at `/`: the short story in a real browser, and what the server does for it."""

from pathlib import Path
from textwrap import shorten
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server is not installed")
pytest.importorskip("uvicorn", reason="the server is not installed")

from support.browsing import TITLE, expect, find, ids

from citerec.folder import IndexFolder
from citerec.serve.page.messages import in_words_of_the_page
from citerec.serve.page.uploads import Upload, read_uploads
from citerec.serve.page.view import CorpusView, marked, snippet, stem


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


def test_papers_that_a_reason_names_are_linked(sample_index: IndexFolder) -> None:
    view = CorpusView(sample_index)
    row = next(row for row in range(300) if len(view.citing(row)) > 1)
    citing = sample_index.papers[int(view.citing(row)[0])]
    quoted = f'"{shorten(citing.title, 60, placeholder="…")}"'
    paper = sample_index.papers[row]
    item = {
        "id": paper.id,
        "rank": 1,
        "title": paper.title,
        "authors": [],
        "venue": "",
        "year": None,
        "doi": "",
        "url": "javascript:alert(1)",
        "abstract": "",
        "score": 1.0,
        "probability": None,
        "stages": {},
        "reasons": [
            "matches: trees, maps",
            f"cited by 2 of the 50 most similar papers, such as {quoted}",
        ],
    }

    [shown] = view.listed([item])["rows"]

    assert [piece for piece in shown["reasons"][0] if "mark" in piece] == [
        {"text": "trees", "mark": "1"},
        {"text": "maps", "mark": "1"},
    ]
    assert shown["reasons"][1] == [
        {"text": "cited by 2 of the 50 most similar papers, such as "},
        {"text": quoted, "id": citing.id},
    ]
    assert shown["url"] == ""
    assert shown["citations"] == len(view.citing(row))


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
    assert (
        [one["id"] for one in both["cited"]] == [one["id"] for one in alone["cited"]] == [paper.id]
    )
