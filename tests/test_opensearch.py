"""The retriever of docs/guides/opensearch.md finds what the index finds, at a small server that is as documented."""

import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.types import MonkeyPatch

pytest.importorskip("opensearchpy", reason="opensearch-py is not installed")

from support.opensearch import FakeServer, opensearch_server

from citerec.config import RecommendConfig
from citerec.index.folder import IndexFolder
from citerec.recommend import Recommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.rules.eligible import eligible
from citerec.types import Query

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "opensearch.md"


@pytest.fixture
def fake() -> Generator[FakeServer]:
    with opensearch_server() as server:
        yield server


@pytest.fixture
def guide(
    fake: FakeServer,
    dense_sample: IndexFolder,
    tmp_path: Path,
    monkeypatch: MonkeyPatch,
) -> dict[str, Any]:
    """The names of the guide's program, after it ran on the sample."""
    module, program = re.findall(
        r"^```py\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "opensearch_bm25.py").write_text(module)
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "acm").symlink_to(dense_sample.path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = dict[str, Any]()
    exec(program.replace("http://localhost:9200", fake.url), names)
    del sys.modules["opensearch_bm25"]
    return names


def drafts(index: IndexFolder) -> list[Query]:
    papers = index.papers.at(range(0, 300, 17)).values()
    return [
        Query(id=p.id, title=p.title, abstract=p.abstract, year=p.year) for p in papers
    ]


def test_bm25_finds_what_lucene_finds_in_the_index(
    guide: dict[str, Any], fake: FakeServer, dense_sample: IndexFolder
) -> None:
    queries = [*drafts(dense_sample), Query(id="stop", title="the of")]
    rules = eligible(queries, dense_sample.papers, excluded=frozenset({5, 150, 290}))

    expected = Bm25Retriever(dense_sample).retrieve(queries, rules, 50)
    found = guide["retrievers"][0].retrieve(queries, rules, 50)

    assert len(fake.shelves["acm"].visible) == 300
    for hits, of_lucene in zip(found, expected, strict=True):
        assert hits.rows == of_lucene.rows.tolist()
        scale = hits.scores[:1] / of_lucene.scores[:1]  # k1 + 1 in OpenSearch 2
        assert hits.scores == pytest.approx(scale * of_lucene.scores, rel=1e-5)


def test_papers_are_recommended_as_without_opensearch(
    guide: dict[str, Any], dense_sample: IndexFolder
) -> None:
    config = RecommendConfig(k=10, reranker="none", diversity=0.3)
    queries = drafts(dense_sample)[:6]

    recommender = Recommender(dense_sample, config, retrievers=guide["retrievers"])
    expected = [*Recommender(dense_sample, config).recommend_many(queries)]
    found = [*recommender.recommend_many(queries)]

    assert recommender.retriever_names == ("bm25", "dense")
    for papers, without in zip(found, expected, strict=True):
        assert [item.paper.id for item in papers] == [item.paper.id for item in without]
