"""Derived tables of an index: a lookup finds what a search of all papers finds, also after a change."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from citerec.bibliography.keys import title_key
from citerec.bibliography.paper_list import Entry, PaperList
from citerec.config import RecommendConfig
from citerec.corpus.citedby import transpose_of, transposed
from citerec.corpus.lookup import FOLDER, NAMES, Lookup, Table, code_of, open_lookup
from citerec.corpus.papers import Papers
from citerec.folder import PAPERS, IndexFolder, open_index, verify_index
from citerec.manifest import write_manifest
from citerec.matching.recognise import listed_rows, recognise
from citerec.matching.tables import write_tables
from citerec.rank.expand import SparseVector
from citerec.rank.features import Authors
from citerec.recommend import BatchRecommender
from citerec.types import Query
from citerec.update.compact import compact_index
from citerec.update.index import update_index
from citerec.update.replace import UpdateConfig

Build = Callable[..., IndexFolder]

CORPUS: list[dict[str, Any]] = [
    {"id": "10.1000/A", "title": "Graph Drawing: A Survey of Methods", "authors": ["Ann Bee"], "year": 2001},
    {"id": "b", "title": "A survey of maps of all trees", "doi": "https://doi.org/10.1000/B",
     "authors": ["Dee, C.", "Bee, A."],
     "year": 2003, "citations": ["10.1000/A"]},
    {"id": "c", "title": "Grâph drawing -- a survey of methods", "year": 2002, "citations": ["10.1000/A", "b"]},
    {"id": "d", "title": "", "abstract": "No title.", "authors": ["?"], "year": None, "citations": ["b"]},
]  # fmt: skip


def older(index: IndexFolder, folder: Path) -> IndexFolder:
    """Return a copy of an index as an earlier version built it, without derived tables."""
    shutil.copytree(index.path, folder)
    names = [n for n in index.manifest.checksums if n.startswith((FOLDER, "citations/cited_by"))]
    for name in names:
        (folder / name).unlink()
    kept = {n: s for n, s in index.manifest.checksums.items() if n not in names}
    write_manifest(folder, replace(index.manifest, checksums=kept))
    return open_index(folder)


def test_a_list_finds_by_tables_what_a_search_of_all_papers_finds(build: Build) -> None:
    index = build(CORPUS)
    scanned = Papers(index.path / PAPERS)
    entries = [Entry(ids=(i,)) for i in ("b", "10.1000/a", "doi:10.1000/b", "nobody", "10.9/x")]
    titles = ["Graph drawing", "graph drawing a survey of methods", "Survey of maps of all trees",
              "A survey of all maps of tress", "Unknown"]  # fmt: skip
    entries += [Entry(title=title, year=2003, authors=("Bee, A.",)) for title in titles]

    found = listed_rows(PaperList(tuple(entries)), index.papers)

    assert found == listed_rows(PaperList(tuple(entries)), scanned)
    assert found[:5] == [{1}, {0}, {1}, frozenset(), frozenset()]
    drafts = [
        Query(id="x", title="Graph drawing, a survey of methods"),
        Query(id="y", title="Y", doi="10.1000/b"),
    ]
    assert recognise(drafts, index.papers) == recognise(drafts, scanned)
    assert index.papers.rows_of(["c", "nobody", "c"]).tolist() == [2, -1, 2]


def test_the_papers_of_authors_are_the_same_with_and_without_tables(build: Build) -> None:
    index = build(CORPUS)
    looked_up, read = Authors(index.papers), Authors(Papers(index.path / PAPERS))

    by_both = [authors.written_by(["A. Bee", "Carl Dee", "?"]) for authors in (looked_up, read)]

    assert by_both[0].rows.tolist() == by_both[1].rows.tolist() == [0, 1, 1]
    assert by_both[0].author_count == by_both[1].author_count == 2


def test_two_keys_of_one_code_are_distinguished_by_their_texts(build: Build) -> None:
    index = build(CORPUS)
    papers = index.papers
    assert papers.lookup is not None
    everything = Table(np.full(4, code_of("c"), np.uint64), np.arange(4, dtype=np.int32))

    papers.lookup = replace(papers.lookup, ids=everything)

    assert papers.rows_of(["c"]).tolist() == [2]


def test_an_update_leaves_the_tables_of_a_new_build(
    build: Build, write_jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    changed = build(CORPUS[:3]).path
    (tmp_path / "gone").write_text("b\n")
    update_index(changed, UpdateConfig(), corpus=write_jsonl(CORPUS[3:]), removed=tmp_path / "gone")
    after = verify_and_open(changed)
    shutil.move(changed, tmp_path / "changed")

    anew = build([CORPUS[0], CORPUS[2], CORPUS[3]])

    check_same(after.papers.lookup, anew.papers.lookup)
    for index in (after, anew):
        stored, expected = index.graph.transpose, transposed(index.graph, index.papers.years)
        assert stored is not None
        assert stored.indices.tolist() == expected.indices.tolist() == [1]  # c cites A
        assert stored.years.tolist() == expected.years.tolist() == [2002]


def check_same(stored: Lookup | None, expected: Lookup | None) -> None:
    assert stored is not None
    assert expected is not None
    for name in NAMES:
        one, other = getattr(stored, name), getattr(expected, name)
        assert one.codes.tolist() == other.codes.tolist()
        assert one.rows.tolist() == other.rows.tolist()


def check_tables(index: IndexFolder) -> None:
    """Check that the tables of an index are those that are made of its papers."""
    with TemporaryDirectory() as made:
        write_tables(Path(made), Papers(index.path / PAPERS))
        check_same(index.papers.lookup, open_lookup(Path(made)))


def verify_and_open(path: Path) -> IndexFolder:
    verify_index(path)
    return open_index(path)


def test_an_older_index_gives_the_same_lists(sample_index: IndexFolder, tmp_path: Path) -> None:
    before = older(sample_index, tmp_path / "older")
    papers = [sample_index.papers[row] for row in (40, 290)]
    drafts = [replace(Query.of(paper), id="draft", title=f"On {paper.title}") for paper in papers]
    config = RecommendConfig(encoder="none", reranker="none")

    lists = [
        BatchRecommender(index, config).recommend(drafts, cited=[1, 2], explain=True)
        for index in (sample_index, before)
    ]

    assert before.papers.lookup is None
    assert before.graph.transpose is None
    assert lists[0] == lists[1]
    assert sample_index.graph.transpose is not None
    counts = sample_index.graph.citation_counts().tolist()
    assert before.graph.citation_counts().tolist() == counts
    for row in range(len(counts)):
        citing = before.graph.cited_by(row).tolist()
        assert len(citing) == counts[row]
        assert sample_index.graph.cited_by(row).tolist() == citing
        assert transpose_of(before.graph, before.papers.years).citers(row).tolist() == citing
    assert title_key(lists[0][0][0].paper.title)


def test_a_change_of_an_older_index_adds_the_tables(
    build: Build, write_jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    before = older(build(CORPUS[:3]), tmp_path / "older")
    changed = {**CORPUS[0], "title": "Graph Drawing, Revised"}

    update_index(before.path, UpdateConfig(), corpus=write_jsonl([changed, CORPUS[3]]))

    after = verify_and_open(before.path)
    assert after.graph.transpose is not None
    drafts = [Query(id="x", title=title) for title in ("Graph Drawing, Revised", "Graph drawing")]
    assert recognise(drafts, after.papers) == recognise(drafts, Papers(after.path / PAPERS))
    check_tables(after)

    # a second change moves rows of the tables
    update_index(after.path, UpdateConfig(), corpus=write_jsonl([CORPUS[0], CORPUS[1]]))

    check_tables(verify_and_open(before.path))


def test_compacting_an_older_index_adds_the_tables(build: Build, tmp_path: Path) -> None:
    before = older(build(CORPUS), tmp_path / "older")

    compact_index(before.path, UpdateConfig())

    after = verify_and_open(before.path)
    check_tables(after)
    assert [after.graph.cited_by(row).tolist() for row in range(4)] == [[1, 2], [2, 3], [], []]


@pytest.mark.parametrize("seed", range(3))
def test_a_product_is_that_of_scipy_bit_by_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = csr_array((rng.random((50, 50)) < 0.2).astype(np.float32))
    rows = rng.permutation(50)[:20].astype(np.int32)
    weights = rng.random(20)
    start = csr_array((weights, rows, [0, 20]), shape=(1, 50))

    def lists(of: np.ndarray) -> Any:
        parts = [matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]] for row in of.tolist()]
        return np.concatenate(parts).astype(np.int32), np.array([len(part) for part in parts])

    scratch = np.empty(50, np.int32)
    product = SparseVector(rows, weights).times(lists, scratch).times(lists, scratch)

    expected = (start @ matrix) @ matrix
    assert product.rows.tolist() == expected.indices.tolist()
    assert product.weights.tolist() == expected.data.tolist()
