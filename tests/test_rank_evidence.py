"""Features of linked papers, authors, venues and a walk: each against arithmetic by hand or a brute-force oracle."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from support.tiny_ranker import column

from citerec.build import BuildConfig, build_index
from citerec.config import ExpandConfig
from citerec.corpus.graph import Graph
from citerec.evaluate.audit import audit
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder, open_index
from citerec.rank.expand import MOST, CandidateExpander, thinned, walk
from citerec.rank.features import (
    FEATURES,
    NAMES,
    Features,
    Group,
    Matrix,
    VenueRates,
    Venues,
    without_groups,
)
from citerec.rules.known import CitationScope, TemporalGraph, eligible
from citerec.types import CandidateSet, Hits, Query, QueryBatch, QueryVector, SentenceScores

CORPUS = [  # rows 0 to 6; the query, of 2010, does not know what 5 and 6 cite
    {"id": "maps", "title": "Maps", "year": 2000, "authors": ["A. Bee"], "venue": "Vis"},
    {"id": "bees", "title": "Bees", "year": 2000, "authors": ["C. Dee"], "venue": "Bio"},
    {
        "id": "draw",
        "title": "Drawing maps",
        "year": 2005,
        "citations": ["maps", "bees"],
        "venue": "Vis",
    },
    {
        "id": "tree",
        "title": "Trees",
        "year": 2006,
        "citations": ["maps"],
        "authors": ["A. Bee", "E. Fox"],
        "venue": "Vis",
    },
    {"id": "alone", "title": "Alone", "year": 2007, "authors": ["E. Fox"]},
    {
        "id": "same",
        "title": "Drawing maps",
        "year": 2010,
        "citations": ["bees", "alone"],
        "venue": "Vis",
    },
    {"id": "later", "title": "Drawing maps", "year": 2011, "citations": ["bees", "alone"]},
]
QUERY = Query(id="q", title="Drawing maps", year=2010, venue="Vis 2010")
VECTORS = np.array([[1, 0], [0, 1], [3, 4], [0, 2], [1, 1], [9, 9], [9, 9]], np.float32)
VECTOR = QueryVector(np.array([2, 0], np.float32), lambda rows: VECTORS[rows])
NONE = np.zeros(0, np.int32)
EVIDENCE = (
    "linked_similarity",
    "walk",
    "venue_citations",
    "title_found",
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, java: None) -> IndexFolder:
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "corpus.jsonl").write_text("".join(json.dumps(paper) + "\n" for paper in CORPUS))
    build_index(folder / "corpus.jsonl", folder / "index", BuildConfig())
    return open_index(folder / "index")


def computed(
    index: IndexFolder,
    query: Query = QUERY,
    vector: QueryVector | None = VECTOR,
    names: Sequence[str] = NAMES,
) -> Matrix:
    """The features of rows 0 to 4, in this order."""
    graph = TemporalGraph(index, CitationScope.EARLIER)
    hits = Hits(np.arange(5, dtype=np.int32), np.arange(5, 0, -1, dtype=np.float32))
    candidates = CandidateSet(hits, {"bm25": hits}, query_vector=vector)
    batch = QueryBatch([query], eligible([query], index.papers))
    expander = CandidateExpander(graph, ExpandConfig(extra=0))
    [expanded] = expander.run(batch, [candidates])
    return Features(index, graph, names).matrix(query, expanded)


def test_the_vectors_of_linked_papers_are_compared_with_that_of_the_query(
    index: IndexFolder,
) -> None:
    linked = column(computed(index), "linked_similarity")

    # draw cites maps and bees, tree cites maps; directions: maps (1, 0), bees and tree (0, 1), draw (.6, .8)
    maps = 0.6 / (0.6**2 + 1.8**2) ** 0.5  # draw and tree, against the query's (1, 0)
    cosines = np.array([maps, 0.6, 0.5**0.5, 1, np.nan])
    assert linked == pytest.approx((cosines - maps) / (1 - maps), nan_ok=True)


def test_a_walk_of_two_steps_agrees_with_dense_linear_algebra(index: IndexFolder) -> None:
    scores = column(computed(index), "walk")

    known = np.zeros((5, 5))
    for citing, cited in ((2, 0), (2, 1), (3, 0)):
        known[citing, cited] = known[cited, citing] = 1
    steps = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    start = np.array([1 / 61, 1 / 62, 1 / 63, 1 / 64, 0])  # alone has no known citation
    start /= start.sum()
    visits = 0.15 * (0.85 * start @ steps + 0.85**2 * start @ steps @ steps)
    assert scores == pytest.approx(visits / visits.max())
    assert visits.sum() == pytest.approx(0.15 * (0.85 + 0.85**2))


def test_a_walk_over_a_random_graph_agrees_with_dense_linear_algebra(index: IndexFolder) -> None:
    rng = np.random.default_rng(0)
    papers = 7
    edges = [(a, b) for a in range(papers) for b in range(papers) if a != b and rng.random() < 0.4]
    graph = TemporalGraph(with_citations(index, edges), CitationScope.EARLIER)
    snapshot = graph.snapshot_before(2011)  # what 6 cites is unknown

    visited = walk(graph, snapshot, np.array([3, 1], np.int32))
    visits = visited.at(np.arange(papers, dtype=np.int32), graph.scratch)

    cites = np.zeros((papers, papers))
    cites[graph.index.graph.citing, graph.index.graph.indices] = 1
    cites *= snapshot.is_citing(np.arange(papers, dtype=np.int32))[:, None]
    steps = (cites + cites.T) / np.maximum((cites + cites.T).sum(axis=1, keepdims=True), 1)
    start = np.zeros(papers)
    start[[3, 1]] = np.array([1 / 61, 1 / 62]) / (1 / 61 + 1 / 62)
    assert visits == pytest.approx(0.15 * 0.85 * (start @ steps + 0.85 * start @ steps @ steps))


def test_of_a_large_venue_an_even_sample_of_papers_is_counted(
    build: Callable[..., IndexFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the four papers of Vis, the first and the third are read: they cite Bio, the others Geo."""
    monkeypatch.setattr("citerec.rank.features.MOST", 2)
    cited = [{"id": name, "title": name, "year": 2000, "venue": name} for name in ("Bio", "Geo")]
    citing = [
        {"id": f"v{i}", "title": "Vis", "year": 2005, "venue": "Vis", "citations": [other]}
        for i, other in enumerate(["Bio", "Geo", "Bio", "Geo"])
    ]
    index = build([*cited, *citing])
    graph = TemporalGraph(index, CitationScope.PUBLISHED)
    rows = np.arange(2, dtype=np.int32)

    rates = VenueRates(graph, Venues(index.papers)).rates(graph.snapshot_before(2010), "Vis", rows)

    assert rates.tolist() == [1, 0]


def test_a_venue_cites_some_venues_more_often(index: IndexFolder) -> None:
    # draw and tree, of Vis, cite maps twice (Vis) and bees once (Bio)
    rates = [2 / 3, 1 / 3, 2 / 3, 2 / 3, np.nan]

    assert column(computed(index), "venue_citations") == pytest.approx(rates, nan_ok=True)
    for venue in ("", "Elsewhere", "Bio"):  # no paper of Bio is known to cite
        matrix = computed(index, replace(QUERY, venue=venue))
        assert np.isnan(column(matrix, "venue_citations")).all()


def with_citations(index: IndexFolder, edges: Sequence[tuple[int, int]]) -> IndexFolder:
    """Return the index with more citations, each from a citing to a cited row."""
    old = zip(index.graph.citing.tolist(), index.graph.indices.tolist(), strict=True)
    pairs = sorted({*old, *edges})
    counts = np.bincount([citing for citing, _ in pairs], minlength=len(index.papers))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(index, graph=Graph(ends, np.array([cited for _, cited in pairs], np.int32)))


def test_citations_of_the_querys_year_or_later_change_nothing(index: IndexFolder) -> None:
    future = [(5, 0), (5, 2), (6, 3), (6, 1)]

    assert computed(with_citations(index, future)).tobytes() == computed(index).tobytes()

    changed = computed(with_citations(index, [(4, 1)])), computed(index)  # of 2007
    moved = {name for name in EVIDENCE if column(changed[0], name) != column(changed[1], name)}
    assert moved >= {"linked_similarity", "walk"}


def test_without_a_source_a_feature_is_missing(index: IndexFolder) -> None:
    of_vectors = {f.name for f in FEATURES if Group.SEMANTIC in f.needs}

    for matrix in (computed(index, vector=None), without_groups(computed(index), [Group.SEMANTIC])):
        missing = {name for name in EVIDENCE if np.isnan(column(matrix, name)).all()}
        assert missing == of_vectors

    no_citation = replace(index, graph=Graph(np.zeros(8, np.int64), NONE))
    missing = {name for name in EVIDENCE if np.isnan(column(computed(no_citation), name)).all()}
    assert missing == {"linked_similarity", "walk", "venue_citations"}


def test_only_features_that_the_model_reads_are_computed(index: IndexFolder) -> None:
    full, some = computed(index), computed(index, names=["bm25", "walk"])

    assert column(some, "walk") == column(full, "walk")
    left_out = [name for name in EVIDENCE if name != "walk"]
    assert all(np.isnan(column(some, name)).all() for name in left_out)
    others = [n for n, name in enumerate(NAMES) if name not in left_out]
    assert some[:, others].tobytes() == full[:, others].tobytes()


def test_of_many_citing_papers_an_even_sample_is_read() -> None:
    links = csr_array(([1.0] * 250, ([1] * 250, range(250))), shape=(3, 300))

    even = thinned(links, links.indices != 7)  # 249 links

    assert np.diff(even.indptr).tolist() == [0, MOST, 0]
    assert 7 not in even.indices
    gaps = np.diff(even.indices)
    assert (gaps.min(), gaps.max()) == (2, 4)  # every 2.49th, and once 7 between two of them


def test_the_audit_recomputes_features_of_vectors(index: IndexFolder) -> None:
    queries = tuple(replace(QUERY, id=paper, year=2010) for paper in ("same", "outside"))
    rules = tuple(eligible(queries, index.papers))
    task = EvalSet("test", queries, rules, {query.id: frozenset() for query in queries})
    hits = Hits(np.arange(5, dtype=np.int32), np.arange(5, 0, -1, dtype=np.float32))
    alone = SentenceScores(vectors=lambda: VECTORS[:2], bm25=lambda rows: hits.scores[None, rows])
    found = [CandidateSet(hits, {"bm25": hits}, query_vector=VECTOR, sentences=alone)] * 2

    config = EvalConfig(known_graph=CitationScope.EARLIER)
    checked = audit(index, task, config, found, [])

    assert checked.faults == ()
    missing = {"dense", "dense_rank", "rerank", "coupling", "author_overlap", "self_cited"}
    assert checked.features == len(NAMES) - len(missing)
