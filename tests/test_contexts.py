"""The sentences in which papers cite: in an index, in a search, as reasons, and the sentence of an abstract."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.types import Build, MonkeyPatch, Write

from citerec.build import vectors
from citerec.build.corpora import merge, open_corpus, sample
from citerec.build.index import BuildConfig, grow_index
from citerec.build.vectors import EmbedConfig, embed_anew
from citerec.config import RecommendConfig
from citerec.encode.encoder import open_encoder
from citerec.errors import BadRecordError, IndexDamagedError
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder, open_index, verify_index
from citerec.index.vectors import vectors_of_contexts
from citerec.pipeline import contexts_of
from citerec.rank.passages import passages
from citerec.recommend import Recommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import open_hybrid
from citerec.types import Eligibility, Paper, Query, QueryKind


def cites(text: str, *ids: str) -> Mapping[str, Any]:
    return {"text": text, "cites": [*ids]}


TREES = "Treemaps show hierarchies as nested boxes [CITE]."
ZEBRAS = "Zebras are striped [CITE]."
PAPERS: list[dict[str, Any]] = [
    {"id": "map", "title": "Space filling", "year": 1992},
    {"id": "old", "title": "Survey", "year": 2000, "citations": ["map"]},
    {
        "id": "xu",
        "title": "Survey of surveys",
        "year": 2010,
        "authors": ["Xu, Li"],
        "contexts": [cites(TREES, "map", "zoo"), cites(ZEBRAS, "zoo")],
    },
]
ZOO = {"id": "zoo", "title": "Animals", "year": 1980}


def linked(index: IndexFolder) -> list[tuple[str, list[str]]]:
    """Return the sentences of an index, with the ids of the papers that each cites."""
    assert index.contexts
    found: list[tuple[str, list[str]]] = []
    for number in range(len(index.contexts)):
        one = np.array([number], np.int32)
        ids = index.papers.ids_at(index.contexts.cited(one)[0].tolist())
        found.append((index.contexts.texts(one)[0], ids))
    return found


# --- in an index


def test_an_index_has_the_sentences_that_cite_its_papers(build: Build) -> None:
    index = build(PAPERS)

    # the sentence about zebras cites no paper of the corpus
    assert linked(index) == [(TREES, ["map"])]
    assert index.manifest.counts["contexts"] == 1
    # what a sentence cites is a reference, though xu states none
    assert index.graph.references(2).tolist() == [0]
    assert index.manifest.counts["citations"] == 2


def test_an_index_that_grows_keeps_all_sentences_and_drops_those_of_removed_papers(
    build: Build, write_jsonl: Write, tmp_path: Path
) -> None:
    index = build(PAPERS)

    grow_index(index.path, BuildConfig(), corpus=write_jsonl([ZOO], "more.jsonl"))

    # the new paper has row 3: those that are added come last
    assert linked(open_index(index.path)) == [
        (TREES, ["map", "zoo"]),
        (ZEBRAS, ["zoo"]),
    ]

    removed = tmp_path / "removed.txt"
    removed.write_text("xu\n")
    grow_index(index.path, BuildConfig(), removed=removed)
    assert open_index(index.path).contexts is None
    assert not (index.path / "contexts").exists()
    assert "contexts" not in verify_index(index.path).counts


def test_an_index_without_sentences_has_no_trace_of_them(build: Build) -> None:
    index = build(PAPERS[:2])

    assert index.contexts is None
    assert not [name for name in index.manifest.checksums if "contexts" in name]
    assert not [name for name in index.manifest.counts if "contexts" in name]


@pytest.mark.parametrize("file", ["indices.npy", "contexts.arrow", "postings/docs.npy"])
def test_a_flipped_byte_of_a_sentence_is_found(build: Build, file: str) -> None:
    path = build(PAPERS).path
    damaged = path / "contexts" / file
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)

    with pytest.raises(IndexDamagedError, match=f"contexts/{file}"):
        verify_index(path)


def test_from_some_number_on_sentences_have_vectors_which_encode_makes_anew(
    build: Build, tiny_model: str, monkeypatch: MonkeyPatch
) -> None:
    few = build(PAPERS, encoder=tiny_model)
    assert vectors_of_contexts(few) is None

    monkeypatch.setattr(vectors, "LEAST_EMBEDDED", 1)
    embed_anew(few.path, open_encoder(tiny_model), EmbedConfig())

    index = open_index(few.path)
    found = vectors_of_contexts(index)
    assert found
    # what is encoded has no marks
    plain = Paper(id="x", title="Treemaps show hierarchies as nested boxes.")
    expected = open_encoder(tiny_model).encode([plain])
    assert found.vectors(np.array([0], np.int32)) == pytest.approx(expected, abs=1e-6)
    verify_index(index.path)


@pytest.mark.parametrize(
    ("contexts", "fault"),
    [
        (["Treemaps [CITE]."], "must be a list of objects"),
        ([{"cites": ["map"]}], "needs a 'text' and 'cites'"),
        ([{"text": "Treemaps [CITE].", "cite": ["map"]}], "needs a 'text' and 'cites'"),
        ([{"text": 7, "cites": ["map"]}], "'text' must be a string"),
    ],
)
def test_a_context_of_the_wrong_shape_is_refused_with_its_line(
    build: Build, contexts: Any, fault: str
) -> None:
    wrong = {**PAPERS[2], "contexts": contexts}

    with pytest.raises(BadRecordError, match=f"line 2: .*{fault}"):
        build([PAPERS[0], wrong])


# --- in a corpus


def test_merged_corpora_rename_what_sentences_cite(
    write_jsonl: Write, tmp_path: Path
) -> None:
    doi = "10.1000/space"
    first = write_jsonl(
        [{"id": "space", "title": "Space filling", "doi": doi}], "a.jsonl"
    )
    second = write_jsonl([{**PAPERS[0], "doi": doi}, PAPERS[2]], "b.jsonl")

    merge([open_corpus(first), open_corpus(second)], tmp_path / "c.jsonl")

    # "map" is the paper that the first corpus calls "space"; "zoo" is in none
    assert contexts_in(tmp_path / "c.jsonl") == {
        "xu": [(TREES, ("space", "zoo")), (ZEBRAS, ("zoo",))]
    }


def test_a_sample_keeps_what_cites_its_papers(
    write_jsonl: Write, tmp_path: Path
) -> None:
    corpus = open_corpus(write_jsonl(PAPERS))

    sample(corpus, tmp_path / "s.jsonl", 3, seed=0)

    assert contexts_in(tmp_path / "s.jsonl") == {"xu": [(TREES, ("map",))]}


def contexts_in(path: Path) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return the contexts of each paper of a file that has some."""
    from citerec.corpus.collector import RecordCounter

    papers = open_corpus(path).papers(RecordCounter(skip_bad=False))
    return {p.id: [(c.text, c.cites) for c in p.contexts] for p in papers if p.contexts}


# --- in a search


SENTENCE = "Hierarchies are shown as nested boxes"


def sentence(year: int | None = None, id: str = "draft") -> Query:
    return Query(id=id, title=SENTENCE, year=year, kind=QueryKind.SENTENCE)


def found_by_contexts(
    index: IndexFolder, query: Query, scope: CitationScope = CitationScope.PUBLISHED
) -> list[str]:
    """Return the ids of the papers that known sentences like a query cite."""
    graph = TemporalGraph(index, scope)
    retriever = contexts_of(graph, open_hybrid(index, RecommendConfig()))
    assert retriever
    rules = [Eligibility(query.year)]
    known = retriever.known(graph.snapshots([query], rules))
    [by_source] = retriever.papers([query], known, rules)
    return index.papers.ids_at(by_source["bm25"].rows.tolist())


def test_a_paper_is_found_by_a_sentence_that_cites_it(build: Build) -> None:
    index = build(PAPERS)

    [hits] = Bm25Retriever(index).retrieve([sentence()], [Eligibility()], 10)

    assert not len(hits)  # its title is "Space filling"
    assert found_by_contexts(index, sentence()) == ["map"]
    with Recommender(index) as recommender:
        assert "map" in recommender.recommend(context=SENTENCE).ids


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (sentence(), ["map"]),
        (sentence(2010), ["map"]),  # a draft of the same year
        (sentence(2011, id="old"), []),  # which the corpus knows to be of 2000
        (sentence(id="xu"), []),  # its own sentence
    ],
)
def test_only_known_sentences_are_evidence(
    build: Build, query: Query, found: list[str]
) -> None:
    index = build(PAPERS)
    if query.id == "old":
        query = replace(query, year=2000)

    assert found_by_contexts(index, query) == found


def test_an_evaluation_knows_sentences_of_earlier_train_papers_alone(
    build: Build,
) -> None:
    index = build(PAPERS)
    test = (index.splits / "test.ids").read_text().split()

    # the newest paper is a test paper, so nothing that it cites is known
    assert test == ["xu"]
    assert not found_by_contexts(index, sentence(2020), CitationScope.TRAIN)
    assert found_by_contexts(index, sentence(2020), CitationScope.EARLIER) == ["map"]


# --- as reasons


def test_the_nearest_sentence_is_the_first_reason(build: Build) -> None:
    more = cites("A space is filled [CITE].", "map")
    papers = [*PAPERS[:2], {**PAPERS[2], "contexts": [more, cites(TREES, "map")]}]

    with Recommender(build(papers)) as recommender:
        [first, *_] = recommender.recommend(context=SENTENCE, explain=True)
        [draft, *_] = recommender.recommend(title="How to fill a space", explain=True)
        [early, *_] = recommender.recommend(title="Filling", year=2009, explain=True)

    assert first.paper.id == draft.paper.id == early.paper.id == "map"
    trees = "cited by Xu 2010 as: 'Treemaps show hierarchies as nested boxes'"
    assert first.reasons[0] == trees
    assert draft.reasons[0] == "cited by Xu 2010 as: 'A space is filled'"
    # Xu is not published yet
    assert not [reason for reason in early.reasons if "Xu" in reason]


def test_a_long_sentence_is_cut_at_a_word(build: Build) -> None:
    long = f"Nested boxes {'show ' * 60}trees [CITE]."
    papers = [*PAPERS[:2], {**PAPERS[2], "contexts": [cites(long, "map")]}]

    with Recommender(build(papers)) as recommender:
        [first, *_] = recommender.recommend(context=SENTENCE, explain=True)

    text = first.reasons[0].removeprefix("cited by Xu 2010 as: '").removesuffix("'")
    assert text.startswith("Nested boxes show") and text.endswith("show…")
    assert 190 < len(text) <= 200


# --- the sentence of an abstract


def test_the_passage_has_the_heaviest_words_of_the_draft(build: Build) -> None:
    abstract = "We study trees. Boxes are nested in boxes. Users like them."
    papers = [*PAPERS, {"id": "b", "title": "Boxes", "abstract": abstract}]
    index = build(papers)
    bm25 = Bm25Retriever(index)

    found = passages(sentence(), None, [*index.papers.at([3, 0]).values()], bm25, None)

    # by row: the paper without an abstract comes first
    assert found == ["", "Boxes are nested in boxes."]
    with Recommender(index) as recommender:
        plain = recommender.recommend(title="Nested boxes").to_dicts()
        shown = recommender.recommend(title="Nested boxes", explain=True).to_dicts()
    assert "passage" not in plain[0]
    assert shown[0]["passage"] == "Boxes are nested in boxes."


def test_the_passage_is_the_nearest_by_vectors_where_there_are_some() -> None:
    class Encoder:
        def encode(self, papers: list[Any]) -> Any:
            return np.array([[len(p.title), 10.0] for p in papers], np.float32)

    class Dense:
        encoder = Encoder()

    paper = Paper(
        id="a", title="T", abstract="Short one. This one is of twenty-one. Mid."
    )
    query = Query(id="q", title="Nested boxes")
    vector = np.array([26, 10], np.float32)

    found = passages(query, vector, [paper], None, Dense())  # pyright: ignore[reportArgumentType]

    assert found == ["This one is of twenty-one."]  # 26 letters
