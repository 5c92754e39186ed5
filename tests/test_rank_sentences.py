"""Features of single sentences: a paper that one sentence of a draft is about, and the draft as a whole is not."""

from collections.abc import Callable
from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from support.tiny_ranker import column

from citerec.config import ExpandConfig, RecommendConfig
from citerec.folder import IndexFolder
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import (
    NEAR,
    Features,
    Matrix,
    Titles,
    near,
    reciprocal_ranks,
    standardised,
)
from citerec.retrieve.dense import LEAST_WORDS, MOST, sentence_queries
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.known import CitationScope, TemporalGraph, eligible
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Query,
    QueryBatch,
    QueryVector,
    SentenceScores,
)

DRAFT = Query(
    id="q",
    title="Maps of bees",
    abstract="We draw large maps. Bees, e.g. A. mellifera, dance for food. Short one. Fields are mown in June.",
    year=2010,
    authors=("A. Bee",),
    venue="Vis",
)
CORPUS = [
    {"id": "maps", "title": "Drawing maps", "year": 2000},
    {"id": "bees", "title": "How bees dance", "year": 2001},
    {"id": "none", "title": "Something else", "year": 2002},
]
ROWS = np.arange(3, dtype=np.int32)
VECTORS = np.array([[1, 0], [0, 2], [3, 3]], np.float32)  # of the papers
# of the title and two sentences: cosines 1, 0, s; 0, 1, s; 1, 0, s with s = sqrt(1/2)
OF_SENTENCES = np.array([[2, 0], [0, 1], [5, 0]], np.float32)


def hits(*rows: int) -> Hits:
    return Hits(np.array(rows, np.int32), np.arange(len(rows), 0, -1, dtype=np.float32))


# of the title and two sentences; the title has no word of any paper
BY_BM25 = np.array([[0, 0, 0], [1, 2, 0], [0, 0, 1]], np.float32)
SEARCH = SentenceScores(vectors=lambda: OF_SENTENCES, bm25=lambda rows: BY_BM25[:, rows])


def computed(
    index: IndexFolder, sentences: SentenceScores = SEARCH, query: Query = DRAFT
) -> Matrix:
    """The features of the three papers, in their order."""
    graph = TemporalGraph(index, CitationScope.EARLIER)
    vector = QueryVector(np.array([1, 1], np.float32), lambda rows: VECTORS[rows])
    both = CandidateSet(
        hits(0, 1, 2), {"bm25": hits(0, 1, 2)}, query_vector=vector, sentences=sentences
    )
    expander = CandidateExpander(graph, ExpandConfig(extra=0))
    batch = QueryBatch([query], eligible([query], index.papers))
    [expanded] = expander.run(batch, [both])
    assert expanded.rows.tolist() == [0, 1, 2]
    return Features(index, graph).matrix(query, expanded)


def test_title_and_sentences_are_compared_alone() -> None:
    parts = sentence_queries(DRAFT)

    assert [part.title for part in parts] == [
        "Maps of bees",
        "We draw large maps.",
        "Bees, e.g. A. mellifera, dance for food.",
        "Fields are mown in June.",
    ]
    assert {(part.abstract, part.authors, part.venue, part.year) for part in parts} == {
        ("", (), "", 2010)
    }


def test_of_a_long_draft_the_first_sentences_are_compared() -> None:
    words = " ".join(["word"] * LEAST_WORDS)
    long = replace(DRAFT, abstract=f"{words.capitalize()}. " * (MOST + 5))

    assert len(sentence_queries(long)) == 1 + MOST
    assert len(sentence_queries(replace(DRAFT, abstract=""))) == 1


def test_scores_of_a_sentence_are_compared_with_its_own_scores() -> None:
    table = np.array([[1, 3], [10, 50], [7, 7]], np.float32)

    assert standardised(table).tolist() == [[-1, 1], [-1, 1], [0, 0]]


def test_papers_near_a_sentence_are_its_closest() -> None:
    falling = -np.arange(NEAR + 2, dtype=np.float32)
    table = np.stack([falling, falling[::-1], np.zeros(NEAR + 2, np.float32)])

    # The first two papers are the farthest of the second sentence; of equal papers the first are the closest.
    assert near(table).tolist() == [2, 2, *[3] * (NEAR - 2), 1, 1]


def test_a_paper_without_a_word_of_a_sentence_has_no_rank() -> None:
    ranks = reciprocal_ranks(np.array([[0, 0, 0], [3, 5, 3]], np.float32))

    assert ranks == pytest.approx(np.array([[0, 0, 0], [1 / 62, 1 / 61, 1 / 63]]))


def test_features_are_those_of_the_best_sentence(build: Callable[..., IndexFolder]) -> None:
    matrix = computed(build(CORPUS))

    s = sqrt(1 / 2)
    mean = (1 + s) / 3
    spread = sqrt(((1 - mean) ** 2 + mean**2 + (s - mean) ** 2) / 3)
    # maps is closest to the second sentence, bees to the first; the title does not count here
    expected = (np.array([1, 1, s]) - mean) / spread
    assert column(matrix, "sentence") == pytest.approx(expected, rel=1e-5)
    assert column(matrix, "sentences_near") == [3, 3, 3]  # of three candidates all are near
    # BM25's first sentence gives 1, 2 and 0; the second one 0, 0 and 1
    assert column(matrix, "sentence_bm25") == pytest.approx(
        [0, 1 / sqrt(2 / 3), (2 / 3) / (sqrt(2) / 3)], abs=1e-6
    )
    assert column(matrix, "sentence_bm25_rank") == pytest.approx([1 / 62, 1 / 61, 1 / 61])


def test_without_an_abstract_the_title_is_the_sentence(build: Callable[..., IndexFolder]) -> None:
    title = SentenceScores(vectors=lambda: OF_SENTENCES[:1])

    matrix = computed(build(CORPUS), title)

    assert np.argmax(column(matrix, "sentence")) == 0
    assert np.isnan(column(matrix, "sentence_bm25")).all()


def test_without_such_scores_the_features_are_missing(build: Callable[..., IndexFolder]) -> None:
    matrix = computed(build(CORPUS), SentenceScores())

    for name in ("sentence", "sentences_near", "sentence_bm25", "sentence_bm25_rank"):
        assert np.isnan(column(matrix, name)).all()


def test_rare_words_of_a_title_count_more(build: Callable[..., IndexFolder]) -> None:
    corpus = [
        {"id": "a", "title": "Drawing maps"},
        {"id": "b", "title": "Drawing bees"},
        {"id": "c", "title": "The of"},
    ]
    titles = Titles(build(corpus).papers)

    shares = titles.found_in("Drawing with bees", ROWS)

    common, rare = log(4 / 2), log(4 / 1)  # drawing is in two of three titles
    assert shares == pytest.approx([common / (common + rare), 1, 0])


def test_a_sentence_scores_papers_as_a_search_does(dense_sample: IndexFolder) -> None:
    retriever = open_hybrid(dense_sample, RecommendConfig(), print)
    query = Query.of(dense_sample.papers[0])
    [rule] = eligible([query], dense_sample.papers)
    parts = sentence_queries(query)
    rows = np.arange(len(dense_sample.papers), dtype=np.int32)[::-3]

    [candidates] = retriever.candidates([query], [rule], 30)

    assert candidates.sentences.bm25 is not None
    assert candidates.sentences.vectors is not None
    table = candidates.sentences.bm25(rows)
    assert retriever.bm25 is not None
    for part, scores in zip(parts, table, strict=True):
        [hits] = retriever.bm25.retrieve([part], [Eligibility()], len(dense_sample.papers))
        alone = dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))
        assert scores.tolist() == [alone.get(row, 0) for row in rows.tolist()]
    assert retriever.dense is not None
    expected = [retriever.dense.query_vectors([part])[0].values for part in parts]
    assert candidates.sentences.vectors() == pytest.approx(np.array(expected), abs=1e-2)
