"""NNSelect: the nearest papers and what they cite, by similarity to the query."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from citerec.encode.encoder import Encoder
from citerec.encode.opening import open_encoder
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.lab.nnselect import nn_select, nnselected
from citerec.lab.words.bag import Bag
from citerec.lab.words.folder import write_words
from citerec.retrieve.dense import DenseRetriever
from citerec.rules.eligible import eligible
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.types import Query

Build = Callable[..., IndexFolder]

# Words as directions: "up" and "right", so that "up up right" lies nearer to "up" than "up right".
CORPUS = [
    {"id": "near", "title": "up up up right", "year": 2000, "citations": ["far", "later", "mid"]},
    {"id": "next", "title": "up up right", "year": 2003, "citations": ["mid", "other"]},
    {"id": "mid", "title": "up right", "year": 1999},
    {"id": "far", "title": "right", "year": 1999},
    {"id": "other", "title": "right right up", "year": 1999},
    {"id": "later", "title": "up", "year": 2010},
]


@pytest.fixture
def encoder(tmp_path: Path) -> Encoder:
    (tmp_path / "model").mkdir()
    words, vectors = ("right", "up"), np.eye(2, dtype=np.float32)
    write_words(
        tmp_path / "model",
        Bag(words=words, word_vectors=vectors, weights=np.ones(2, np.float32)),
    )
    return open_encoder(str(tmp_path / "model"))


def chosen(
    index: IndexFolder, encoder: Encoder, query: Query, *, k: int = 10, nearest: int = 1
) -> list[str]:
    known = TemporalGraph(index, CitationScope.EARLIER)
    rules = eligible([query], index.papers)
    dense = DenseRetriever(index, encoder)
    [hits] = nn_select(index, dense, encoder, known, [query], rules, k=k, nearest=nearest)
    assert (np.diff(hits.scores) <= 0).all()
    return index.papers.ids_at(hits.rows)


def test_what_the_nearest_cites_is_added_and_all_stand_by_similarity(
    build: Build, tmp_path: Path, encoder: Encoder
) -> None:
    index = build(CORPUS, encoder=str(tmp_path / "model"))
    query = Query(id="q", title="up", year=2003)

    assert chosen(index, encoder, query) == ["near", "mid", "far"]  # later is of 2010
    assert chosen(index, encoder, query, k=2) == ["near", "mid"]


def test_citations_of_the_querys_own_year_are_unknown(
    build: Build, tmp_path: Path, encoder: Encoder
) -> None:
    index = build(CORPUS, encoder=str(tmp_path / "model"))
    of_2003, of_2004 = (Query(id="q", title="up", year=year) for year in (2003, 2004))

    assert chosen(index, encoder, of_2003, nearest=2) == ["near", "next", "mid", "far"]
    assert chosen(index, encoder, of_2004, nearest=2) == ["near", "next", "mid", "other", "far"]


def test_a_query_of_the_corpus_neither_finds_nor_reads_itself(
    build: Build, tmp_path: Path, encoder: Encoder
) -> None:
    index = build(CORPUS, encoder=str(tmp_path / "model"))
    query = Query(id="next", title="up up right", year=2003)

    assert chosen(index, encoder, query) == ["near", "mid", "far"]


def test_bad_depths_are_refused_and_no_queries_are_no_hits(
    build: Build, tmp_path: Path, encoder: Encoder
) -> None:
    index = build(CORPUS, encoder=str(tmp_path / "model"))
    known, dense = TemporalGraph(index, CitationScope.TRAIN), DenseRetriever(index, encoder)

    assert nn_select(index, dense, encoder, known, [], [], k=5) == []
    with pytest.raises(ValueError, match="k must be at least 1"):
        chosen(index, encoder, Query(id="q", title="up"), k=0)


def test_a_task_is_run_to_its_settings_depth(
    build: Build, tmp_path: Path, encoder: Encoder
) -> None:
    index = build(CORPUS, encoder=str(tmp_path / "model"))
    queries = (Query(id="q", title="up", year=2003), Query(id="r", title="right", year=2003))
    task = EvalSet("test", queries, tuple(eligible(queries, index.papers)), {})
    setting = EvalConfig(depth=2, known_graph=CitationScope.EARLIER)

    found = nnselected(index, task, setting, encoder)

    assert [len(hits) for hits in found] == [2, 2]
    assert index.papers.ids_at(found[1].rows) == ["far", "other"]
