"""The body of a draft: how it is read, how its sentences are searched, and what that changes."""

import json
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from support.corpora import built, records
from support.types import Invoke

import citerec
from citerec.drafts import parse_queries
from citerec.drafts.sentences import body_of
from citerec.errors import ConfigError
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import NAMES
from citerec.rank.ltr import DEFAULT, LIBRARY, TEXTS, LtrStage, open_ranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import HybridRetriever
from citerec.rules.eligible import eligible
from citerec.types import BODY_SENTENCES, Query, QueryBatch

MARKDOWN = """---
title: Maps of bees
---
# Abstract

We draw maps of bees for all readers of newspapers.

# 1 Introduction

Bees dance in the dark of a hive [@frisch]. Maps are drawn for readers of newspapers.

# 2 Method

Figure 1: A caption has words and a full stop. We count dances by two cameras.

# References

Frisch, K. v. The dance language and orientation of bees. 1967.
"""
# rows 0 to 3
CORPUS = records(
    """
{"id": "maps", "title": "Maps of bees", "year": 2000},
{"id": "dance", "title": "The dance in a dark hive", "year": 1967},
{"id": "news", "title": "Newspapers and their readers", "year": 1990},
{"id": "late", "title": "A dark hive", "year": 2030}
"""
)
DRAFT = Query(id="q", title="Maps of bees", year=2010)
BODY = (
    "Bees dance in the dark of a hive.",
    "Maps are drawn for readers of newspapers.",
)


def test_the_body_is_what_follows_the_abstract_without_its_markers() -> None:
    [draft] = parse_queries(MARKDOWN.encode(), name="draft.md").queries

    assert draft.abstract == "We draw maps of bees for all readers of newspapers."
    assert draft.body == (*BODY, "We count dances by two cameras.")


def test_names_and_an_abstract_without_a_heading_are_before_the_introduction() -> None:
    lines = "A. Bee, C. Dee, all of the University\n\n1 Introduction\n\nBees dance in the dark of a hive."

    assert body_of(lines.splitlines()) == BODY[:1]


@pytest.mark.parametrize(
    "body",
    [
        "# 1 Introduction\n\nBees dance in the dark of a hive [CITE]. Maps are drawn for readers of newspapers.",
        [
            "# 1 Introduction",
            "Bees dance in the dark of a hive (Frisch, 1967).",
            "Maps are drawn for readers of newspapers.",
        ],
    ],
)
def test_a_record_has_its_body_as_a_text_or_as_paragraphs(
    body: str | list[str],
) -> None:
    record = {"title": "Maps of bees", "body": body}
    [draft] = parse_queries(json.dumps(record).encode()).queries

    assert draft.body == BODY


def test_each_sentence_of_the_body_of_a_record_may_lack_a_reference() -> None:
    text = "Bees dance in the dark of a hive [CITE]. Maps are drawn for readers of newspapers."
    record = {"title": "Maps of bees", "abstract": "We draw maps.", "body": text}
    drafts = parse_queries(json.dumps(record).encode()).stated(context="all")

    assert [query.context for query in drafts.queries] == [BODY[1]]


def test_a_paper_that_only_a_sentence_names_is_found(
    tmp_path: Path, java: None
) -> None:
    index = built(tmp_path, CORPUS)
    retriever = HybridRetriever(index, [Bm25Retriever(index)])
    drafts = [DRAFT, replace(DRAFT, body=BODY)]

    title, text = retriever.candidates(drafts, eligible(drafts, index.papers), 10)

    assert index.papers.ids_at(title.rows) == ["maps"]
    # "dance", "news" and "maps" by the sentences; "late" is later than the draft
    assert set(index.papers.ids_at(text.rows)) == {"maps", "dance", "news"}
    found = text.hits_by_source["body"]
    points = dict(zip(index.papers.ids_at(found.rows), found.scores, strict=True))
    # first of one sentence each; "maps", of which "bees" or "maps" is in both, is second twice
    assert points == pytest.approx({"maps": 2 / 12, "dance": 1 / 11, "news": 1 / 11})
    assert text.body.bm25
    assert (text.body.bm25(np.array([0, 1], np.int32)) > 0).tolist() == [
        [True, True],
        [True, False],
    ]


def test_the_model_of_texts_adds_to_the_score_and_nothing_without_a_text(
    tmp_path: Path, java: None
) -> None:
    index = built(tmp_path, CORPUS)
    graph = TemporalGraph(index, CitationScope.EARLIER)
    ranker = open_ranker(DEFAULT)
    stage = LtrStage(graph, ranker)
    drafts = [DRAFT, replace(DRAFT, body=BODY)]
    batch = QueryBatch(drafts, eligible(drafts, index.papers))
    retriever = HybridRetriever(index, [Bm25Retriever(index)])
    found = retriever.candidates(drafts, batch.eligible, 10)
    expanded = CandidateExpander(graph).run(batch, found)

    title, text = stage.run(batch, expanded)

    assert [model.folder for model in title.models] == [LIBRARY]  # no citation is known
    assert np.isnan(title.matrix[:, NAMES.index("body_bm25")]).all()
    assert [model.folder for model in text.models] == [DEFAULT, TEXTS]
    scores = ranker.score(text.matrix) + open_ranker(TEXTS).score(text.matrix)
    assert text.hits.scores == pytest.approx(sorted(scores, reverse=True))


def test_the_command_reads_the_body_unless_it_is_told_not_to(
    invoke: Invoke, sample_index: IndexFolder, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text(
        "# Maps of bees\n\n## Abstract\n\nWe draw maps of bees for all readers of newspapers.\n\n## Introduction\n\n"
        "Late interaction keeps the vectors of all tokens of a passage. It is compared with dense retrieval.\n"
    )
    command = ("recommend", "--query", draft, "--index", sample_index.path)

    code, listed, log = invoke(*command, "--format", "json")
    _, alone, log_alone = invoke(*command, "--format", "json", "--text", "abstract")

    assert code == 0
    assert "a body of 2 sentences" in log
    assert any("body" in found["stages"] for found in json.loads(listed))
    assert '"body"' not in alone
    assert "body of" not in log_alone
    code, _, log = invoke(*command, "--text", "title")
    assert (code, "body" in log) == (2, True)


def test_a_program_gives_title_abstract_and_body(sample_index: IndexFolder) -> None:
    text = "Late interaction keeps the vectors of all tokens of a passage."
    with citerec.open(sample_index) as recommender:
        found = recommender.recommend(title="Maps of bees", body=text)
        assert any("body" in paper.stages for paper in found)
        with pytest.raises(ConfigError, match="body needs --title"):
            recommender.recommend(body=text)


def test_a_client_sends_a_body_and_is_told_of_too_much(address: str) -> None:
    text = "Late interaction keeps the vectors of all tokens of a passage."
    ask = {"index": "sample", "title": "Maps of bees", "body": text}
    answer = httpx.post(f"{address}v1/recommend", json=ask)
    [found] = answer.json()["answers"]
    assert any("body" in paper["stages"] for paper in found["results"])

    sentences = [f"Bee {n} dances in the dark." for n in range(BODY_SENTENCES)]
    draft = {"title": "Maps of bees", "body": sentences}
    many = {"index": "sample", "query": [{**draft, "id": f"q{i}"} for i in range(17)]}
    answer = httpx.post(f"{address}v1/recommend", json=many)
    assert answer.status_code == 422
    assert "1,020 sentences of the texts of drafts" in answer.text
