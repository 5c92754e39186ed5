"""OpenSearch finds what the index itself finds, over HTTP, at a small server that follows its documentation.

It is no server of OpenSearch. With CITEREC_TEST_OPENSEARCH=http://localhost:9200 the searches run at one.
"""

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from secrets import token_hex
from shutil import copytree
from typing import Any

import pytest
from support.corpora import records
from support.types import Build, MonkeyPatch, Write

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed")

from support.opensearch import FakeServer, opensearch_server

from citerec.build.vectors import EmbedConfig, embed_anew
from citerec.cli import run
from citerec.cluster.opensearch import (
    OpenSearchBm25,
    OpenSearchIndex,
    OpenSearchVectors,
    load,
    open_retrievers,
)
from citerec.config import Bm25Config, RecommendConfig
from citerec.encode.encoder import open_encoder
from citerec.errors import ConfigError, OpenSearchError
from citerec.index.folder import IndexFolder, open_index
from citerec.recommend import Recommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.rules.eligible import eligible
from citerec.text import QueryForm
from citerec.types import Eligibility, Hits, Query

PAPERS = records(
    """
{"id": "b", "title": "Drawing graphs", "year": 2001},
{"id": "a", "title": "Drawing graphs", "year": 2001},
{"id": "c", "title": "Drawing graphs of trees"},
{"id": "d", "title": "Drawn graphs, drawn trees", "year": 2010},
{"id": "e", "title": "Neural parsing", "year": 2005}
"""
)
DRAFT = Query(id="q", title="How to draw a graph", year=2005)
ALL = Eligibility()


@pytest.fixture(scope="module")
def fake() -> Generator[FakeServer]:
    with opensearch_server() as server:
        yield server


@pytest.fixture(scope="module")
def sample(fake: FakeServer, dense_sample: IndexFolder) -> Generator[OpenSearchIndex]:
    """The sample, loaded: at the server of the environment, or at the small one."""
    import opensearchpy

    url = os.environ.get("CITEREC_TEST_OPENSEARCH")
    server = OpenSearchIndex(url or fake.url, f"citerec-{token_hex(4)}")
    assert load(server, dense_sample) == 300
    yield server
    opensearchpy.OpenSearch(hosts=[url]).indices.delete(
        index=server.name
    ) if url else None


@pytest.fixture(autouse=True)
def healthy(fake: FakeServer) -> Iterator[None]:
    yield
    fake.failed_shards = 0


@pytest.fixture
def made(fake: FakeServer, build: Build) -> tuple[OpenSearchIndex, IndexFolder]:
    """Five papers, loaded."""
    index, server = build(PAPERS), OpenSearchIndex(fake.url, f"made-{token_hex(4)}")
    load(server, index)
    return server, index


def drafts(index: IndexFolder) -> list[Query]:
    papers = index.papers.at(range(0, 300, 17)).values()
    return [
        Query(id=p.id, title=p.title, abstract=p.abstract, year=p.year) for p in papers
    ]


def ids(index: IndexFolder, hits: Hits) -> list[str]:
    return index.papers.ids_at(hits.rows)


def test_bm25_finds_what_lucene_finds_in_the_index(
    sample: OpenSearchIndex, dense_sample: IndexFolder
) -> None:
    queries = drafts(dense_sample)
    rules = eligible(queries, dense_sample.papers, excluded=frozenset({5, 150, 290}))

    expected = Bm25Retriever(dense_sample).retrieve(queries, rules, 50)
    found = OpenSearchBm25(sample, dense_sample).retrieve(queries, rules, 50)

    for one, other in zip(found, expected, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        scale = one.scores[:1] / other.scores[:1]  # k1 + 1 in OpenSearch 2
        assert one.scores == pytest.approx(scale * other.scores, rel=1e-5)


def test_vectors_find_what_the_index_finds(
    sample: OpenSearchIndex, dense_sample: IndexFolder, tiny_model: str
) -> None:
    queries, encoder = drafts(dense_sample), open_encoder(tiny_model)
    rules = eligible(queries, dense_sample.papers, excluded=frozenset({5, 150, 290}))
    vectors = OpenSearchVectors(sample, dense_sample)

    expected = DenseRetriever(dense_sample, encoder).retrieve(queries, rules, 50)
    found = DenseRetriever(dense_sample, encoder, nearest=vectors.nearest).retrieve(
        queries, rules, 50
    )

    for one, other in zip(found, expected, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-6)
        # the last ones are as near as the next
        sure = other.scores > other.scores[-1:] + 1e-6
        assert {*other.rows[sure].tolist()} <= {*one.rows.tolist()}


@pytest.mark.parametrize("ranker", ["none", "auto"])
def test_papers_are_recommended_as_without_opensearch(
    sample: OpenSearchIndex, dense_sample: IndexFolder, ranker: str
) -> None:
    config = RecommendConfig(k=10, ranker=ranker, reranker="none", diversity=0.3)
    queries = drafts(dense_sample)[:6]

    retrievers = open_retrievers(sample, dense_sample, config)
    recommender = Recommender(dense_sample, config, retrievers=retrievers)
    expected = [*Recommender(dense_sample, config).recommend_many(queries)]
    found = [*recommender.recommend_many(queries)]

    assert recommender.retriever_names == ("bm25", "dense")
    assert recommender.encoder  # whose vectors the ranking reads from the index folder
    for one, other in zip(found, expected, strict=True):
        assert [item.paper.id for item in one] == [item.paper.id for item in other]


def test_a_paper_without_a_year_is_eligible_and_ties_are_ordered_by_id(
    made: tuple[OpenSearchIndex, IndexFolder],
) -> None:
    server, index = made
    bm25 = OpenSearchBm25(server, index)
    bound, without_a = Eligibility(2005), Eligibility(2005, frozenset({1}))

    hits = bm25.retrieve([DRAFT] * 3, [ALL, bound, without_a], 10)

    assert [ids(index, one) for one in hits] == [
        ["a", "b", "c", "d"],
        ["a", "b", "c"],
        ["b", "c"],
    ]
    assert bm25.retrieve([DRAFT], [bound], 1)[0].rows.tolist() == [1]


def test_a_query_of_stop_words_finds_nothing_and_one_of_many_words_is_shortened(
    made: tuple[OpenSearchIndex, IndexFolder],
) -> None:
    server, index = made
    words = " ".join(f"word{number}" for number in range(2000))
    queries = [
        Query(id="q", title="the of"),
        Query(id="r", title=f"{words} graph graph"),
    ]

    empty, long = OpenSearchBm25(server, index).retrieve(queries, [ALL] * 2, 10)

    assert len(empty) == 0
    assert ids(index, long)[:2] == ["a", "b"]  # the most frequent terms are searched


# --- loading


def test_a_load_may_be_repeated(
    fake: FakeServer, made: tuple[OpenSearchIndex, IndexFolder]
) -> None:
    server, index = made
    shelf = fake.shelves[server.name]
    before = dict(shelf.visible)
    calls: list[tuple[str, int, int]] = []

    written = load(server, index, progress=lambda *call: calls.append(call))

    assert (written, calls) == (5, [("loading", 5, 5)])
    assert shelf.visible == before
    assert shelf.visible["c"] == {"id": "c", "contents": "Drawing graphs of trees"}


def test_a_load_that_was_not_completed_is_not_searched(
    fake: FakeServer, build: Build, monkeypatch: MonkeyPatch
) -> None:
    index, server = build(PAPERS), OpenSearchIndex(fake.url, "half")

    def progress(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(server, index, progress=progress)
    with pytest.raises(OpenSearchError, match="'half': no load was completed"):
        OpenSearchBm25(server, index)

    load(server, index)
    assert OpenSearchBm25(server, index).retrieve([DRAFT], [ALL], 1)


def test_papers_that_were_appended_are_loaded_by_another_load(
    fake: FakeServer, build: Build, tmp_path: Path, write_jsonl: Write
) -> None:
    server, index = OpenSearchIndex(fake.url, "grown"), build(PAPERS[:3])
    load(server, index)
    more = write_jsonl(PAPERS[3:])
    assert run(["index", "--index", str(index.path), "--append", str(more)]) == 0
    other = open_index(index.path)

    with pytest.raises(OpenSearchError, match="it holds other papers than"):
        OpenSearchBm25(server, other)
    assert load(server, other) == 5

    [hits] = OpenSearchBm25(server, other).retrieve([DRAFT], [ALL], 10)
    assert ids(other, hits) == ["a", "b", "c", "d"]
    with pytest.raises(
        OpenSearchError, match=r"it holds 5 papers, .* holds 3; load all of them"
    ):
        load(server, index)
    with pytest.raises(OpenSearchError, match="no load was completed"):
        OpenSearchBm25(server, index)


def test_vectors_of_another_encoder_are_refused(
    sample: OpenSearchIndex, dense_sample: IndexFolder, tmp_path: Path, tiny_model: str
) -> None:
    folder = copytree(dense_sample.path, tmp_path / "index")
    copytree(tiny_model, tmp_path / "title")
    import json

    spec = json.loads((tmp_path / "title" / "citerec_encoder.json").read_text())
    (tmp_path / "title" / "citerec_encoder.json").write_text(
        json.dumps(spec | {"max_tokens": 8})
    )
    embed_anew(folder, open_encoder(str(tmp_path / "title")), EmbedConfig())
    changed = open_index(folder)

    assert OpenSearchBm25(sample, changed)  # the papers are the same
    with pytest.raises(OpenSearchError, match="it holds other vectors than"):
        OpenSearchVectors(sample, changed)


# --- what goes wrong


def test_a_server_that_is_not_there_is_one_line_without_the_password(
    build: Build,
) -> None:
    server = OpenSearchIndex("http://me:secret@127.0.0.1:1", "papers", {"timeout": 5})

    with pytest.raises(OpenSearchError) as error:
        OpenSearchBm25(server, build(PAPERS))

    assert str(error.value).startswith("OpenSearch at 127.0.0.1:1, index 'papers': ")
    assert "refused" in str(error.value)
    assert "secret" not in str(error.value)


def test_a_search_that_is_not_whole_is_an_error(
    fake: FakeServer, made: tuple[OpenSearchIndex, IndexFolder]
) -> None:
    bm25 = OpenSearchBm25(*made)
    fake.failed_shards = 2
    with pytest.raises(
        OpenSearchError, match=r"2 of 5 shards did not answer.*Data too large"
    ):
        bm25.retrieve([DRAFT], [ALL], 10)
    fake.failed_shards = 0
    del fake.shelves[made[0].name]
    with pytest.raises(OpenSearchError, match="no such index"):
        bm25.retrieve([DRAFT], [ALL], 10)


def test_what_opensearch_cannot_do_is_refused(
    made: tuple[OpenSearchIndex, IndexFolder],
) -> None:
    server, index = made

    with pytest.raises(ConfigError, match="not by key-terms"):
        OpenSearchBm25(server, index, Bm25Config(form=QueryForm.KEY_TERMS))
    with pytest.raises(OpenSearchError, match="Result window is too large"):
        OpenSearchBm25(server, index).retrieve([DRAFT], [ALL], 10_001)


def test_the_block_of_the_guide_runs(
    fake: FakeServer,
    dense_sample: IndexFolder,
    tmp_path: Path,
    capsys: Any,
    monkeypatch: Any,
) -> None:
    guide = Path(__file__).parent.parent / "docs" / "guides" / "opensearch.md"
    [code] = re.findall(
        r"^```py\n(.*?)^```", guide.read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "acm").symlink_to(dense_sample.path)
    monkeypatch.chdir(tmp_path)

    exec(code.replace("http://localhost:9200", fake.url), {})

    assert len(capsys.readouterr().out.splitlines()) > 5
    assert fake.shelves["acm"].settings["number_of_shards"] == 8
