"""Drafts as Markdown, Word, PDF and HTML: what is read of them, and how the user is told."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.documents import pdf, rezipped, word

from citerec.drafts import QueryFile, parse_queries, read_queries
from citerec.drafts.document import MAX_FIRST_PARAGRAPHS, first_sentences
from citerec.errors import BadInputError, ConfigError, MissingExtraError

ABSTRACT = "We rank the papers that a manuscript should cite. It needs no figures at all."
TITLE = "Ranking References for Manuscripts"


def parse(data: bytes | str, name: str = "draft") -> QueryFile:
    return parse_queries(data.encode() if isinstance(data, str) else data, name=name)


def read(data: bytes | str, name: str = "draft") -> tuple[str, str]:
    """Return title and abstract."""
    [query] = parse(data, name).queries
    return query.title, query.abstract


# --- Markdown


MARKDOWN = f"""---
title: "{TITLE}: a *study*"
author: [Ada Lovelace, {{name: Charles Babbage}}]
date: 2021-03-04
bibliography: refs.bib
nocite: "@hidden"
---

# Introduction

As @first and others [see @second, p. 3; -@{{third}}] say; mail ada@example.org, see @fig:one and `@code`.

```
@fenced
```

## Abstract

{ABSTRACT} [@first]
"""
BIB = "".join(f"@misc{{{k}, title={{The {k} paper}}}}\n" for k in ("first", "second", "other"))


def test_front_matter_and_citations_of_markdown_are_read(tmp_path: Path) -> None:
    (tmp_path / "draft.md").write_text(MARKDOWN)
    (tmp_path / "refs.bib").write_text(BIB)

    file = read_queries(tmp_path / "draft.md")

    [query] = file.queries
    assert query.title == f"{TITLE}: a study"
    assert query.abstract == ABSTRACT
    assert (query.authors, query.year) == (("Ada Lovelace", "Charles Babbage"), 2021)
    assert file.cited is not None
    assert file.cited.titles == ("The first paper", "The second paper")
    assert file.notices[1].endswith("2 citation keys are not in refs.bib: third, hidden")


def test_an_abstract_in_front_matter_cites_like_the_text(tmp_path: Path) -> None:
    front = f"title: {TITLE}\nbibliography: refs.bib\nabstract: |\n  {ABSTRACT} [@first; `@other`]"
    (tmp_path / "draft.md").write_text(f"---\n{front}\n---\nAs @second says.\n")
    (tmp_path / "refs.bib").write_text(BIB)

    file = read_queries(tmp_path / "draft.md")

    assert file.queries[0].abstract == ABSTRACT
    assert file.cited is not None
    assert file.cited.titles == ("The first paper", "The second paper")


def test_headings_of_markdown_are_title_and_abstract_by_their_content() -> None:
    text = f"# {TITLE}\n\n## Abstract\n\n{ABSTRACT}\n\n## Introduction\n\nMore text.\n"

    assert read(text) == (TITLE, ABSTRACT)
    assert read(text.replace(f"# {TITLE}", f"{TITLE}\n======"), "a.md") == (TITLE, ABSTRACT)


def test_plain_text_is_still_plain_text() -> None:
    assert read(f"{TITLE}\n\n{ABSTRACT}") == (TITLE, ABSTRACT)
    assert read(f"# {TITLE}\n\n{ABSTRACT}") == (TITLE, ABSTRACT)


def test_references_in_front_matter_are_used_without_a_file() -> None:
    file = parse("---\ntitle: T\nreferences:\n- {id: a, title: Alpha beta}\n---\nSee [@a].\n")

    assert file.cited is not None
    assert file.cited.titles == ("Alpha beta",)
    assert file.cited_from == "draft"


@settings(deadline=None, max_examples=60)
@given(st.text("#*_`~[]()!<>@{}|:-\\ \nab", max_size=80))
def test_any_markdown_gives_a_draft_or_a_clear_error(text: str) -> None:
    try:
        file = parse(f"---\ntitle: T\n---\n{text}")
    except BadInputError:
        return

    assert file.queries[0].title == "T"


# --- Word


def test_styles_and_headings_of_a_word_document_are_read() -> None:
    data = word(
        ("Title", TITLE), ("", "Ada Lovelace"), ("Heading 1", "Abstract"), ("", ABSTRACT),
        ("Heading 1", "Introduction"), ("", "More text."),
    )  # fmt: skip

    assert read(data) == (TITLE, ABSTRACT)
    assert parse(data).notices == (
        f"draft (Word): title {TITLE!r}, abstract 'We rank the papers that a manuscript should cite. It needs…' "
        "(77 characters)",
    )


def test_a_labelled_paragraph_of_a_word_document_is_its_abstract() -> None:
    data = word(("Title", TITLE), ("", f"Abstract: {ABSTRACT}"), ("", "Some other paragraph."))

    assert read(data) == (TITLE, ABSTRACT)


def test_properties_of_a_word_document_stand_in_for_missing_styles() -> None:
    assert read(word(("", "Page 1"), title=TITLE, comments=ABSTRACT)) == (TITLE, ABSTRACT)


def test_the_first_line_of_a_word_document_is_the_last_resort_for_a_title() -> None:
    file = parse(word(("", TITLE), ("", ABSTRACT)))

    assert (file.queries[0].title, file.queries[0].abstract) == (TITLE, ABSTRACT)
    assert "the first 77 characters of the text are used" in file.notices[1]
    assert "the first line is used as the title" in file.notices[2]


# --- PDF


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("heading", "after"), [("Abstract", "1 Introduction"), ("ABSTRACT", "Keywords: x")]
)
def test_title_and_abstract_of_a_pdf_are_found_by_layout(
    columns: int, heading: str, after: str
) -> None:
    long_title = "Ranking References for the Manuscripts of Authors Who Have Not Read Them"

    data = pdf(long_title, ABSTRACT, heading=heading, after=after, columns=columns)

    assert read(data) == (long_title, ABSTRACT)


def test_words_that_a_pdf_hyphenates_are_whole_again() -> None:
    data = pdf(TITLE, "We rank the refer-\nences of a manu-\nscript that has none at all.")

    assert read(data)[1] == "We rank the references of a manuscript that has none at all."


def test_a_pdf_without_an_abstract_uses_its_introduction() -> None:
    file = parse(pdf(TITLE, "Ada Lovelace wrote this.", heading="", after="1 Introduction"))

    assert file.queries[0].abstract.startswith("The first section begins here")
    assert len(file.queries[0].abstract) <= MAX_FIRST_PARAGRAPHS
    assert file.queries[0].abstract.endswith("abstract.")
    assert "no abstract was found: the first" in file.notices[1]


# --- HTML


def test_meta_tags_of_a_publisher_are_read() -> None:
    page = f"""<!doctype html><head><title>{TITLE} | Journal</title>
    <meta name="citation_title" content="{TITLE}"><meta name="citation_author" content="Lovelace, Ada">
    <meta name="citation_abstract" content="{ABSTRACT}"><meta name="citation_publication_date" content="2021/05/06">
    <meta name="citation_doi" content="10.1234/x"></head><body><h1>Journal</h1></body>"""

    [query] = parse(page).queries

    assert (query.title, query.abstract, query.authors) == (TITLE, ABSTRACT, ("Ada Lovelace",))
    assert (query.year, query.doi) == (2021, "10.1234/x")


@pytest.mark.parametrize(
    "abstract",
    [
        f'<div id="abstract"><h2>Abstract</h2><p>{ABSTRACT}</p></div>',
        f"<h2>Abstract</h2><p>{ABSTRACT}</p><h2>1 Introduction</h2><p>More.</p>",
        f'<section class="ltx_abstract"><p>Abstract. {ABSTRACT}</p></section>',
    ],
)
def test_headings_and_marks_of_a_page_are_read(abstract: str) -> None:
    page = f"<html><head><title>x</title></head><body><nav>Menu</nav><h1>{TITLE}</h1>{abstract}</body></html>"

    assert read(page) == (TITLE, ABSTRACT)


def test_the_encoding_that_a_page_declares_is_used() -> None:
    page = "<html><head><meta charset='iso-8859-1'><title>Über</title></head><body></body></html>"

    assert read(page.encode("latin-1"))[0] == "Über"


# --- what all of them share


def test_a_stated_title_and_abstract_override_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"title": "Old", "abstract": "Old text", "year": 2020}')
    (tmp_path / "a.md").write_text("---\nyear: 2020\n---\nText without a heading.\n")

    both = read_queries(tmp_path / "a.json", title="New", abstract="New text").queries[0]
    title = read_queries(tmp_path / "a.md", title="New").queries[0]

    assert (both.title, both.abstract, both.year) == ("New", "New text", 2020)
    assert (title.title, title.abstract, title.year) == ("New", "Text without a heading.", 2020)


def test_a_batch_has_no_stated_title() -> None:
    with pytest.raises(
        ConfigError, match="--title and --abstract are for one draft, but b holds 2"
    ):
        parse_queries(b'{"title": "A"}\n{"title": "B"}\n', name="b", title="T")


def test_a_long_text_is_cut_at_a_sentence() -> None:
    assert first_sentences("One two. Three four. Five six.", 22) == "One two. Three four."
    assert first_sentences("no end of a sentence here", 10) == "no end of"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docx", None)

    with pytest.raises(MissingExtraError, match=r"docx is not installed.*'citerec\[drafts\]'"):
        parse(SAVED)


SAVED = word(("Title", TITLE))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40_000), st.binary(min_size=1, max_size=4))
def test_a_damaged_word_document_is_a_draft_or_a_clear_error(place: int, noise: bytes) -> None:
    data = SAVED[:place] + noise + SAVED[place + len(noise) :]
    try:
        parse(data)
    except BadInputError as error:
        assert "\n" not in str(error)


def test_a_word_document_without_its_text_is_a_clear_error() -> None:
    with pytest.raises(BadInputError, match="zip archive"):
        parse(rezipped(SAVED, word_document=None))
