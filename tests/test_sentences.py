"""Every sentence of a draft without a reference: which they are in each format, and what is recommended for them."""

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from support.documents import pdf, word
from support.types import Capture

from citerec import Recommender, Request
from citerec.cli import run
from citerec.drafts import QueryFile, parse_queries
from citerec.errors import ConfigError
from citerec.index.folder import IndexFolder

CLAIM = "Dense retrieval with two encoders answers open-domain questions."
SECOND = "Pretrained language models improve the ranking of passages."
BODY = f"""{CLAIM} Is it cheap enough? Late interaction is better [@lee]. {SECOND} [@lee] agree. It is so.[@wu]

See below for
more

"""
MARKDOWN = f"""---
title: Retrieval
abstract: We search text by vectors of its words.
---
# 1 Introduction

{BODY}Figure 1: A caption has words and a full stop.

It ends in a note with many words.[^1]

[^1]: As in @lee.

# Acknowledgements

We thank all the people who helped us.

# References

Lee, A. A title of a paper with words. 2019.
"""
LATEX = (
    "\\documentclass{article}\\title{Retrieval}\\begin{document}\\section{1 Introduction}"
    + BODY.replace("[@lee]", "\\citep[p.~3]{lee}").replace(
        ".[@wu]", ".\\textsuperscript{12}"
    )
    + "\\begin{figure}\\caption{A caption has many words.}\\end{figure}\\end{document}"
)
TEXT = "Retrieval\n\n1 Introduction\n" + BODY.replace("[@lee]", "(Lee et al., 2020)")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (MARKDOWN.encode(), "draft.md"),
        (LATEX.encode(), "draft.tex"),
        (TEXT.encode(), "draft.txt"),
        (word(TEXT.replace("1 Introduction\n", "# 1 Introduction\n\n")), "draft.docx"),
        (pdf("Retrieval of text", TEXT.replace("Retrieval\n", "Short.")), "draft.pdf"),
    ],
    ids=["md", "tex", "txt", "docx", "pdf"],
)
def test_claims_without_a_reference_are_found_in_every_format(
    data: bytes, name: str
) -> None:
    found = parse_queries(data, name=name).stated(context="all")

    claims = [
        (one.context, one.section) for one in found.queries if one.section[:1] == "1"
    ]
    assert claims[:2] == [(CLAIM, "1 Introduction"), (SECOND, "1 Introduction")]
    assert found.by_sentence
    if name == "draft.md":
        assert [one.id for one in found.queries] == ["2", "5"]  # of all, from 1


NOTES = [
    "Richard Evans, *Rituals of Retribution* (Oxford 1996), 45.",
    "Doe 2010.",
    "Evans, *Rituals*, 45.",
    "Ebd., S. 12 f.",
    "Vgl. Kocka, *Arbeiter*.",
    "PRO, FO 371/1234.",
    "See https://example.org/a.",
]
NO_SOURCES = ["We thank a friend.", "The names of the 12 villages are invented."]


def noted(sentence: str = "Sentence {} is about the land.") -> str:
    """Return Markdown of a paragraph with a note after each sentence."""
    notes = NOTES + NO_SOURCES
    text = " ".join(f"{sentence.format(n)}[^{n}]" for n in range(len(notes)))
    ends = "\n\n".join(f"[^{n}]: {note}" for n, note in enumerate(notes))
    return f"# Sugar\n\n## 1 Introduction\n\n{text}\n\n{ends}\n"


@pytest.mark.parametrize("kind", ["md", "docx", "odt", "latex"])
@pytest.mark.parametrize(
    "sentence",
    ["Sentence {} is about the land.", "They called it “the bitter harvest of {}.”"],
)
def test_a_sentence_whose_note_cites_has_a_reference(kind: str, sentence: str) -> None:
    draft = noted(sentence)
    data = draft.encode() if kind == "md" else word(draft, kind)

    found = parse_queries(data, name=f"draft.{kind}").stated(context="all")

    unreferenced = [sentence.format(n) for n in (len(NOTES), len(NOTES) + 1)]
    assert [query.context for query in found.queries] == unreferenced


RAISED = (
    'Sugar was the main export of the islands.1 It was called a bitter harvest for all."2,3 '
    "Prices rose by 3.5 percent in every year. Rain fell on the land of others.12"
)


@pytest.mark.parametrize("suffix", ["txt", "pdf"])
def test_a_raised_number_after_a_sentence_is_a_reference(suffix: str) -> None:
    body = f"1 Introduction\n{RAISED}"
    text = f"Retrieval of text\n\n{body}\n"
    page = pdf("Retrieval of text", "Short.", after=body)
    data = text.encode() if suffix == "txt" else page

    found = parse_queries(data, name=f"draft.{suffix}").stated(context="all")

    # a page has more text after it
    claims = [query.context for query in found.queries]
    assert claims[:1] == ["Prices rose by 3.5 percent in every year."]
    assert not any("1" in claim for claim in claims)


def test_what_is_before_the_introduction_lacks_no_reference() -> None:
    front = "Ada Lovelace works in the School of Hives of the North."
    chapters = f"# Introduction\n\n## Motivation\n\n{SECOND}\n"
    text = f"# T\n\n{front}\n\nAbstract: {CLAIM}\n\n{chapters}"
    labelled = (
        f"# T\n\nAffiliations\n\n{front}\n\nAbstract: {CLAIM}\n\n# Bees\n\n{SECOND}\n"
    )

    for data in (text, labelled):
        found = parse_queries(data.encode(), name="a.md").stated(context="all")

        assert [query.context for query in found.queries] == [SECOND]
        assert found.batch


def test_a_plan_of_chapters_begins_no_text() -> None:
    plan = "".join(f"# {n}\n\n" for n in ("Introduction", "Hives", "Dances", "Ends"))
    text = f"# T\n\n# Aims\n\n{SECOND}\n\n{plan}# Weeks\n\nMay.\n"

    found = parse_queries(text.encode(), name="a.md").stated(context="all")

    assert [query.context for query in found.queries] == [SECOND]


def test_the_abstract_and_what_is_said_of_ones_own_work_are_left_out() -> None:
    own = "In this paper we ask whether it holds. Our models have effects of fields."
    text = f"# T\n\n## Abstract\n\n{CLAIM}\n\n# Introduction\n\n{own} As we know, {SECOND}\n"
    alone = f"# T\n\n## Abstract\n\n{CLAIM}\n"

    found, of_abstract = (
        parse_queries(data.encode(), name="a.md").stated(context="all")
        for data in (text, alone)
    )

    assert [query.context for query in found.queries] == [f"As we know, {SECOND}"]
    assert [query.context for query in of_abstract.queries] == [CLAIM]


def test_sentences_of_chinese_end_without_a_blank_and_count_by_characters() -> None:
    text = (
        "我们改进了图像分割方法，并进行了验证。该方法优于现有的方法（王，2010）。很好。"
    )
    draft = f"图像分割\n\n{text}结果表明误差降低了一半！是否足够快呢？"

    found = parse_queries(draft.encode(), name="draft.txt").stated(context="all")

    assert [one.context for one in found.queries] == [
        "我们改进了图像分割方法，并进行了验证。",
        "结果表明误差降低了一半！",
    ]


def test_the_surest_sentence_is_first_with_three_papers(
    sample_index: IndexFolder, tmp_path: Path, capsys: Capture, address: str
) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text(
        MARKDOWN.replace("See below", "Zebras like stripes of their own.\n\nSee below")
    )
    path = str(sample_index.path)

    assert (
        run(
            [
                "recommend",
                "--index",
                path,
                "-q",
                "--query",
                str(draft),
                "--context",
                "all",
            ]
        )
        == 0
    )
    table = capsys.readouterr().out
    options = ["--context", "all", "--format", "json", "-q"]
    assert run(["recommend", "--index", path, "--query", str(draft), *options]) == 0

    lists = json.loads(capsys.readouterr().out)
    sureness = [one["sureness"] for one in lists]
    assert sureness == sorted(sureness, reverse=True)
    assert {len(one["results"]) for one in lists} == {3}
    assert lists[-1]["sentence"].startswith("Zebras")
    assert f"{CLAIM} · 2 · 1 Introduction" in " ".join(table.split())
    body = {"text": draft.read_text(), "context": "all"}
    answer = httpx.post(f"{address}v1/recommend", json=body).json()
    shown = ("query", "sentence", "section", "sureness", "results")
    assert [{name: one[name] for name in shown} for one in answer["answers"]] == lists


def test_of_many_sentences_those_that_suit_the_draft_are_answered(
    sample_index: IndexFolder,
) -> None:
    [one] = parse_queries(b'{"title": "Dense passage retrieval"}').queries
    texts = ["Zebras have stripes of black and white.", CLAIM]
    queries = [replace(one, id=f"{i}", context=text) for i, text in enumerate(texts)]

    log: list[str] = []

    request = Request(drafts=QueryFile((*queries,), by_sentence=True), most_sentences=1)
    [found] = Recommender(sample_index, log=log.append).recommend_many(request)

    assert found.query.context == CLAIM
    assert "1 of 2 sentences" in log[0]


def test_a_draft_without_such_a_sentence_is_an_error(capsys: Capture) -> None:
    page = Path("citerec/serve/page/static/where.js").read_text(encoding="utf-8")
    # by which the page knows this error
    words = page.split('message.includes("')[1].split('"')[0]

    with pytest.raises(ConfigError, match=words):
        parse_queries(b"Trees\n\nTrees are tall in all of our forests [12].").stated(
            context="all"
        )

    assert run(["recommend", "--context", "all"]) == 2
    assert "--context all needs the text of a draft" in capsys.readouterr().err
