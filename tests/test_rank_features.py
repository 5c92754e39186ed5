"""Features: what is known of each candidate, as of the query's year; arithmetic by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.corpora import built, records
from support.tiny_ranker import column
from support.types import Build

from citerec.bibliography.keys import name_key, same_person
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.index.folder import IndexFolder
from citerec.index.graph import Graph
from citerec.index.vectors import unit
from citerec.rank.expand import CandidateExpander, ExpandedCandidates
from citerec.rank.features import (
    FEATURES,
    NAMES,
    NEAR,
    Features,
    Group,
    Matrix,
    found_in,
    jaccard,
    near,
    same_venue,
    standardised,
    table_ranks,
    title_words,
    without_groups,
    written_by,
)
from citerec.rank.ltr import Variant
from citerec.retrieve.dense import LEAST_WORDS, MAX_SENTENCES, sentence_queries
from citerec.rules.eligible import eligible
from citerec.types import (
    CandidateSet,
    Hits,
    Query,
    QueryBatch,
    QueryVector,
    SentenceScores,
)

# rows 0 to 6; a query of 2010 does not know what 4, 5 and 6 cite
CORPUS = records(
    """
{"id": "near", "title": "Drawing graphs", "year": 2008, "authors": ["Ann Bee"], "citations": ["cited", "old"]},
{"id": "next", "title": "Trees", "year": 2009, "authors": ["C. Dee"], "citations": ["old"], "abstract": "Tall.",
 "venue": "VIS"},
{"id": "cited", "title": "Drawing", "year": 2000, "authors": ["Bee, A."], "venue": "VIS 1"},
{"id": "old", "title": "Graphs", "year": 1970, "venue": "Elsewhere"},
{"id": "same year", "title": "S", "year": 2010, "citations": ["cited", "near"]},
{"id": "later", "title": "L", "year": 2012, "citations": ["near", "next", "old"]},
{"id": "undated", "title": "U", "citations": ["cited"]}
"""
)
QUERY = Query(
    id="q", title="Drawing trees", year=2010, authors=("A. Bee", "X. Y."), venue="VIS 2"
)
VECTORS = np.array([[3, 4], [0, 2], [1, 0], [0, 1], [1, 1], [9, 9], [9, 9]], np.float32)
VECTOR = QueryVector(np.array([2, 0], np.float32), lambda rows: unit(VECTORS[rows]))


def hits(*rows: int) -> Hits:
    return Hits(
        np.array(rows, np.int32), np.linspace(4, 1, len(rows), dtype=np.float32)
    )


FOUND = CandidateSet(
    hits(0, 1), {"bm25": hits(0, 1), "dense": hits(1, 0)}, query_vector=VECTOR
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    return built(tmp_path_factory.mktemp("features"), CORPUS)


def computed(
    index: IndexFolder,
    query: Query = QUERY,
    found: CandidateSet = FOUND,
    cited: Sequence[int] = (),
    names: Sequence[str] = NAMES,
) -> tuple[ExpandedCandidates, Matrix]:
    """The candidates of a query, the two retrieved and two that they cite, and their features."""
    graph = TemporalGraph(index, CitationScope.EARLIER)
    expander = CandidateExpander(graph, neighbours=2)
    [candidates] = expander.run(
        QueryBatch([query], eligible([query], index.papers)), [found]
    )
    return candidates, Features(graph, names).matrix(query, candidates, cited)


def test_each_feature_is_what_its_meaning_states(index: IndexFolder) -> None:
    candidates, matrix = computed(index)

    def of(name: str) -> list[float]:
        return column(matrix, name)

    assert index.papers.ids_at(candidates.rows) == ["near", "next", "old", "cited"]
    assert of("bm25") == [1, 0.25, 0, 0]
    assert of("bm25_rank") == pytest.approx([1 / 61, 1 / 62, 0, 0])
    assert of("dense") == [0, 1, 0, 0]
    assert of("rrf") == pytest.approx([(1 / 61 + 1 / 62) / 2] * 2 + [0, 0])
    assert np.isnan(of("rerank")).all()
    assert of("cited_by_similar") == pytest.approx(
        [0, 0, 1, (1 / 61) / (1 / 61 + 1 / 62)]
    )
    # two neighbours are all the closest
    assert of("cited_by_closest") == of("cited_by_similar")
    assert of("cited_by_similar_count") == [0, 0, 2, 1]
    near, next_ = (
        (1 / 61 / (1 / 61 + 1 / 62) / 2**0.5),
        (1 / 62 / (1 / 61 + 1 / 62) / 2**0.5),
    )
    # both cite old: 1 / sqrt(2 * 1)
    assert of("coupled") == pytest.approx([next_, near, 0, 0])
    assert np.isnan(of("coupling")).all()  # no reference of the query is known
    assert of("citations") == pytest.approx([0, 0, log(3), log(2)])
    assert of("citations_3y") == of("citations")
    assert of("age") == [2, 1, 30, 10]
    assert of("author_overlap") == pytest.approx([1 / 2, 0, np.nan, 1 / 2], nan_ok=True)
    # near, by Bee, cites both
    assert of("self_cited") == pytest.approx([0, 0, log(2), log(2)])
    assert of("venue_match") == pytest.approx([np.nan, 1, 0, 1], nan_ok=True)
    # next, of VIS, cites old alone, of Elsewhere
    assert of("venue_citations") == pytest.approx([np.nan, 0, 1, 0], nan_ok=True)
    assert of("title_overlap") == pytest.approx([1 / 3, 1 / 2, 0, 1 / 2])
    assert of("no_abstract") == [1, 0, 1, 1]
    assert of("abstracts") == [1 / 4] * 4
    # near cites cited (1, 0) and old (0, 1), next cites old; near (.6, .8) cites cited, and both cite old
    by_both = 0.6 / sqrt(0.6**2 + 1.8**2)
    cosines = np.array([1 / sqrt(2), 0, by_both, 0.6])
    assert of("linked_similarity") == pytest.approx(cosines * sqrt(2))  # min-max scaled
    # from near (1/61) and next (1/62) to old and cited, and back
    start = np.array([1 / 61, 1 / 62, 1 / 63, 1 / 64])
    steps = np.array([[0, 0, 0.5, 0.5], [0, 0, 1, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    visits = start @ steps + 0.85 * start @ steps @ steps
    assert of("walk") == pytest.approx(visits / visits.max())


def test_features_of_the_whole_list_are_for_its_calibration(index: IndexFolder) -> None:
    _, matrix = computed(index)
    _, after = computed(index, cited=[3])

    # near (.6, .8), cited (1, 0), next and old (0, 1); the draft (1, 0); each mean is over three others
    to_draft = (0.6 + 1 + 0 + 0) / 4
    to_others = ((0.8 + 0.6 + 0.8) / 3 + (0.6 + 0 + 0) / 3 + 2 * (0.8 + 0 + 1) / 3) / 4
    assert to_draft / to_others == pytest.approx(0.75)
    assert column(matrix, "coverage") == pytest.approx([0.75 - 0.8] * 4)
    # next, of 2009, cites one paper
    assert column(matrix, "references") == pytest.approx([log(1 / 5)] * 4)
    assert (column(matrix, "known"), column(after, "known")) == ([0] * 4, [1] * 4)
    assert not any(
        Variant.FULL.reads(one) for one in FEATURES if one.group is Group.LIST
    )


def test_known_references_couple_papers_that_share_them(index: IndexFolder) -> None:
    candidates, matrix = computed(index, cited=[3])

    coupling = dict(
        zip(candidates.rows.tolist(), column(matrix, "coupling"), strict=True)
    )
    assert coupling == pytest.approx({0: 1 / 2**0.5, 1: 1, 3: 0, 2: 0})


def test_an_unknown_value_is_nan_and_not_zero(index: IndexFolder) -> None:
    bare = Query(id="q", title="Drawing trees", year=1960)  # no citation is known
    _, matrix = computed(index, bare, CandidateSet(hits(6), {"bm25": hits(6)}))

    known = {
        name
        for name, value in zip(NAMES, matrix[0], strict=True)
        if not np.isnan(value)
    }
    of_text = {"title_overlap", "title_found", "no_abstract", "abstracts", "known"}
    assert known == {"bm25", "bm25_rank", "rrf", *of_text}


def test_undated_citations_are_not_recent(build: Build) -> None:
    undated = [
        {key: value for key, value in paper.items() if key != "year"}
        for paper in CORPUS
    ]

    _, matrix = computed(build(undated), replace(QUERY, year=None))

    # near, next
    assert column(matrix, "citations")[:2] == pytest.approx([log(3), log(2)])
    assert column(matrix, "citations_3y")[:2] == [0, 0]


def with_citations(index: IndexFolder, added: Sequence[tuple[int, int]]) -> IndexFolder:
    """Return the index with more citations, each from a citing to a cited row."""
    graph = index.graph
    pairs = sorted(
        {*zip(graph.citing.tolist(), graph.indices.tolist(), strict=True), *added}
    )
    counts = np.bincount([a for a, _ in pairs], minlength=len(index.papers))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(
        index, graph=Graph(indptr, np.array([b for _, b in pairs], np.int32))
    )


@settings(max_examples=30)
@given(
    added=st.lists(st.tuples(st.sampled_from([4, 5, 6]), st.integers(0, 6)), min_size=1)
)
def test_no_citation_of_the_querys_year_or_later_changes_anything(
    index: IndexFolder, added: list[tuple[int, int]]
) -> None:
    candidates, matrix = computed(index)

    others, changed = computed(with_citations(index, added))

    assert others.rows.tolist() == candidates.rows.tolist()
    assert changed.tobytes() == matrix.tobytes()
    # of 2009
    assert computed(with_citations(index, [(1, 2)]))[1].tobytes() != matrix.tobytes()


def test_a_disabled_group_is_missing(index: IndexFolder) -> None:
    _, whole = computed(index)

    matrix = without_groups(whole, [Group.SEMANTIC])

    missing = {f.name for f in FEATURES if np.isnan(column(matrix, f.name)).all()}
    assert missing >= {"dense", "dense_rank", "linked_similarity"}
    assert column(matrix, "rrf") == column(matrix, "bm25_rank")


def test_only_features_that_the_model_reads_are_computed(index: IndexFolder) -> None:
    _, whole = computed(index)
    _, some = computed(index, names=["bm25", "walk"])

    assert column(some, "walk") == column(whole, "walk")
    assert np.isnan(column(some, "linked_similarity")).all()


# --- sentences


DRAFT = replace(
    QUERY,
    title="Maps of bees",
    abstract="We draw large maps. Bees, e.g. A. mellifera, dance for food. Short one. Fields are mown in June.",
)


def test_title_and_sentences_are_compared_alone() -> None:
    parts = sentence_queries(DRAFT)

    assert [part.title for part in parts] == [
        "Maps of bees",
        "We draw large maps.",
        "Bees, e.g. A. mellifera, dance for food.",
        "Fields are mown in June.",
    ]
    assert {(p.abstract, p.authors, p.venue, p.year) for p in parts} == {
        ("", (), "", 2010)
    }
    long = replace(
        DRAFT, abstract=f"Word{' word' * LEAST_WORDS}. " * (MAX_SENTENCES + 5)
    )
    assert len(sentence_queries(long)) == 1 + MAX_SENTENCES


def test_scores_of_a_sentence_are_compared_with_its_other_scores() -> None:
    falling = -np.arange(NEAR + 2, dtype=np.float32)
    table = np.stack([falling, falling[::-1], np.zeros(NEAR + 2, np.float32)])

    # The first two papers are the farthest of the second sentence; of equal papers the first are the closest.
    assert near(table).tolist() == [2, 2, *[3] * (NEAR - 2), 1, 1]
    spread = standardised(np.array([[1, 3], [10, 50], [7, 7]], np.float32))
    assert spread.tolist() == [[-1, 1], [-1, 1], [0, 0]]
    ranks = table_ranks(np.array([[0, 0, 0], [3, 5, 3]], np.float32))
    assert ranks == pytest.approx(np.array([[0, 0, 0], [1 / 62, 1 / 61, 1 / 63]]))


def of_sentences(index: IndexFolder, sentences: SentenceScores) -> Matrix:
    """The features of the papers of the rows 2, 3 and 4, which cite nothing that is known, in this order."""
    found = replace(FOUND, hits=hits(2, 3, 4), sentences=sentences)
    candidates, matrix = computed(index, DRAFT, found)
    assert candidates.rows.tolist() == [2, 3, 4]
    return matrix


def test_features_are_those_of_the_best_sentence(index: IndexFolder) -> None:
    # of title and two sentences; the title does not count here: cosines 0, 1, s and 1, 0, s with s = sqrt(1/2)
    vectors = np.array([[2, 0], [0, 1], [5, 0]], np.float32)
    bm25 = np.array([[0, 0, 0], [1, 2, 0], [0, 0, 1]], np.float32)

    matrix = of_sentences(
        index, SentenceScores(lambda: vectors, lambda rows: bm25[:, rows - 2])
    )

    s = sqrt(1 / 2)
    mean = (1 + s) / 3
    spread = sqrt(((1 - mean) ** 2 + mean**2 + (s - mean) ** 2) / 3)
    expected = (np.array([1, 1, s]) - mean) / spread
    assert column(matrix, "sentence") == pytest.approx(expected, rel=1e-5)
    # of three candidates all are near
    assert column(matrix, "sentences_near") == [
        3,
        3,
        3,
    ]
    # BM25's first sentence gives 1, 2 and 0; the second one 0, 0 and 1
    assert column(matrix, "sentence_bm25") == pytest.approx(
        [0, 1 / sqrt(2 / 3), (2 / 3) / (sqrt(2) / 3)], abs=1e-6
    )
    assert column(matrix, "sentence_bm25_rank") == pytest.approx(
        [1 / 62, 1 / 61, 1 / 61]
    )


def test_without_an_abstract_the_title_is_the_sentence(index: IndexFolder) -> None:
    matrix = of_sentences(index, SentenceScores(vectors=lambda: VECTORS[2:3]))

    assert np.argmax(column(matrix, "sentence")) == 0
    assert np.isnan(column(matrix, "sentence_bm25")).all()


# --- titles, authors, venues


ALL = np.arange(3, dtype=np.int32)


def test_titles_are_compared_by_their_words() -> None:
    titles = [
        *map(title_words, ["The Drawing of Graphs", "Drawing trees, fast", "???"])
    ]

    shared = jaccard(title_words("On drawing large graphs"), titles)
    shares = found_in("Drawing with graphs", titles)

    # of drawing, large, graphs
    assert shared.tolist() == pytest.approx([2 / 3, 1 / 5, 0])
    common, rare = log(4 / 2), log(4 / 1)  # drawing is in two of three titles
    assert shares == pytest.approx([1, common / (common + 2 * rare), 0])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(
            (name, "r ribler")
            for name in (
                *(
                    "Ribler, R. L.",
                    "Randy L. Ribler",
                    "R.L. Ribler",
                    "Ribler RL",
                    "RL Ribler",
                ),
                *("Randy Ribler 0001", "R. Ribler Jr."),
            )
        ),
        ("Laurens van der Maaten", "l maaten"),
        ("Mu\u0308ller, J.", "j muller"),
        ("Plato", "plato"),
        ("Brooks, Frederick P., Jr.", "f brooks"),
        ("李明", "李明"),
        ("—", ""),
    ],
)
def test_one_author_has_one_key_however_the_name_is_written(
    name: str, key: str
) -> None:
    assert name_key(name) == key


def test_the_papers_of_some_authors_are_found(build: Build) -> None:
    authors = [["Ann Bee", "C. Dee"], [], ["Dee, Carl"]]
    papers = build(
        [{"id": str(n), "title": "T", "authors": a} for n, a in enumerate(authors)]
    ).papers

    rows, count = written_by(
        papers, ["Ann B. Bee", "C Dee", "Carl Dee", "Nobody Else", "?"]
    )

    assert (rows.tolist(), count) == ([0, 0, 2], 3)  # the first by both; Bee, Dee, Else
    assert written_by(papers, ["?"])[0].tolist() == []
    # C. may be Cora
    assert written_by(papers, ["Alan Bee", "Cora Dee"])[0].tolist() == [0]


@pytest.mark.parametrize(
    ("name", "other", "same"),
    [
        ("Hyeok Kim", "Hannah Kim", False),
        ("H. Kim", "Hannah Kim", None),
        ("Kim H", "H. Kim", None),
        ("Kim, Hannah", "Hannah J. Kim", True),
        ("Hyung-Kwon Kim", "Hyungkwon Kim", True),
        ("Jean Paul Roe", "Jean Pierre Roe", False),
        ("Wei Wang 0001", "Wei Wang 0002", False),
        ("Wei Wang 0001", "Wei Wang", True),
        ("Jos\u00e9 M\u00fcller", "Jose Muller", True),
        ("Ann Roe", "Ann Lee", False),
    ],
)
def test_full_given_names_say_whether_two_names_are_one_person(
    name: str, other: str, same: bool | None
) -> None:
    assert same_person(name, other) is same_person(other, name) is same


def test_a_venue_is_the_same_in_another_year(build: Build) -> None:
    venues = ["Proc. IEEE VIS 2019", "PacificVis", ""]
    papers = build(
        [{"id": str(n), "title": "T", "venue": v} for n, v in enumerate(venues)]
    ).papers

    same = same_venue(papers, "Proc. IEEE VIS (2004)", ALL)

    assert same.tolist() == pytest.approx([1, 0, np.nan], nan_ok=True)
    assert np.isnan(same_venue(papers, "", ALL)).all()
