"""Derived tables of an index: papers are found by id, DOI, title and author without reading all."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from citerec.bibliography.entry import Entry, PaperList
from citerec.corpus.papers import Table, code_of
from citerec.folder import IndexFolder
from citerec.matching import listed_rows, recognise
from citerec.rank.expand import SparseVector
from citerec.types import Query

Build = Callable[..., IndexFolder]

CORPUS: list[dict[str, Any]] = [
    {"id": "10.1000/A", "title": "Graph Drawing: A Survey of Methods", "authors": ["Ann Bee"], "year": 2001},
    {"id": "b", "title": "A survey of maps of all trees", "doi": "https://doi.org/10.1000/B",
     "authors": ["Dee, C.", "Bee, A."],
     "year": 2003, "citations": ["10.1000/A"]},
    {"id": "c", "title": "Grâph drawing -- a survey of methods", "year": 2002, "citations": ["10.1000/A", "b"]},
    {"id": "d", "title": "", "abstract": "No title.", "authors": ["?"], "year": None, "citations": ["b"]},
]  # fmt: skip


def test_a_list_and_drafts_are_found_by_id_doi_and_title(build: Build) -> None:
    papers = build(CORPUS).papers
    entries = [Entry(ids=(i,)) for i in ("b", "10.1000/a", "doi:10.1000/b", "nobody", "10.9/x")]
    titles = ["Graph drawing", "graph drawing a survey of methods", "Survey of maps of all trees",
              "A survey of all maps of tress", "Unknown"]  # fmt: skip
    entries += [Entry(title=title, year=2003, authors=("Bee, A.",)) for title in titles]
    drafts = [
        Query(id="x", title="Graph drawing, a survey of methods"),
        Query(id="y", title="Y", doi="10.1000/b"),
        Query(id="z", title="Graph drawing"),
    ]

    found = listed_rows(PaperList(tuple(entries)), papers)

    assert found == [{1}, {0}, {1}, set(), set(), set(), {0, 2}, set(), set(), set()]
    assert [r.query.corpus_ids for r in recognise(drafts, papers)] == [
        ("10.1000/A", "c"),
        ("b",),
        (),
    ]
    assert papers.rows_of(["c", "nobody", "c"]).tolist() == [2, -1, 2]


def test_two_keys_of_one_code_are_distinguished_by_their_texts(build: Build) -> None:
    index = build(CORPUS)
    papers = index.papers
    assert papers.lookup is not None
    everything = Table(np.full(4, code_of("c"), np.uint64), np.arange(4, dtype=np.int32))

    papers.lookup = replace(papers.lookup, ids=everything)

    assert papers.rows_of(["c"]).tolist() == [2]


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
