"""Several threads, several open indexes: no call may end up at another thread's object."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from citerec.config import Bm25Config
from citerec.folder import IndexFolder
from citerec.retrieve.bm25 import BY_LUCENE, Bm25Retriever
from citerec.rules.eligible import eligible
from citerec.text import QueryForm
from citerec.types import Query


@pytest.mark.parametrize("scorer", ["lucene", ""])
def test_searches_side_by_side_find_what_each_finds_alone(
    sample_index: IndexFolder, monkeypatch: pytest.MonkeyPatch, scorer: str
) -> None:
    monkeypatch.setenv(BY_LUCENE, scorer)
    papers = [sample_index.papers[row] for row in range(0, 300, 5)]
    queries = [Query.of(paper) for paper in papers]
    early = eligible(queries, sample_index.papers, year_max=1990)  # few: Lucene filters by year
    late = eligible(queries, sample_index.papers, year_max=2023)
    key_terms = Bm25Retriever(sample_index, Bm25Config(form=QueryForm.KEY_TERMS, threads=1))
    all_words = Bm25Retriever(sample_index, Bm25Config(threads=1))
    searches = [(key_terms, early), (all_words, late), (all_words, early), (key_terms, late)]
    alone = [found(retriever, queries, rules) for retriever, rules in searches]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda search: found(search[0], queries, search[1]), searches * 3))

    assert together == alone * 3


def found(retriever: Bm25Retriever, queries: list[Query], rules: list) -> list[list[float]]:
    hits = retriever.retrieve(queries, rules, k=20)
    return [[*one.rows.tolist(), *one.scores.tolist()] for one in hits]
