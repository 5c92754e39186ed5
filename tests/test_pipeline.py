"""One pipeline: a system of an evaluation answers as `recommend` does, and a user's own stages fit in."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from support.retrievers import Shelf

from citerec.config import (
    FuseConfig,
    FuseMethod,
    RecommendConfig,
    RerankConfig,
)
from citerec.errors import ConfigError
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import Systems
from citerec.graph.temporal import CitationScope
from citerec.index.folder import IndexFolder
from citerec.rank.features import NAMES
from citerec.recommend import Recommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Paper, Query

DEPTH = 1000  # papers per query, of both
PLAIN = RecommendConfig(k=DEPTH, reranker="none", ranker="none")


def answers(
    index: IndexFolder,
    system: str,
    config: RecommendConfig,
    rerank: RerankConfig | None = None,
) -> None:
    """Check that a system and `recommend` give the test queries the same papers with the same scores."""
    eval_set = load_eval_set(index, "test")
    settings = EvalConfig(known_graph=CitationScope.EARLIER, rerank=rerank, depth=DEPTH)
    evaluated = Systems(index, eval_set, settings).hits(system)

    recommended = Recommender(index, config).recommend_many(eval_set.queries)

    for query, hits, items in zip(
        eval_set.queries, evaluated, recommended, strict=True
    ):
        ids = index.papers.ids_at(hits.rows.tolist())
        assert [item.paper.id for item in items] == ids, query.id
        assert [item.score for item in items] == hits.scores.tolist(), query.id


@pytest.mark.parametrize(
    ("system", "config"),
    [
        ("bm25", PLAIN.replace(encoder="none")),
        ("rrf", PLAIN),
        ("weighted", PLAIN.replace(fuse=FuseConfig(method=FuseMethod.WEIGHTED))),
        ("ranker", PLAIN.replace(ranker="auto")),
        ("ranker-no-popularity", PLAIN.replace(ranker="auto", popularity=False)),
        ("ranker-no-authors", PLAIN.replace(ranker="auto", authors=False)),
    ],
)
def test_a_system_answers_as_recommend_does(
    dense_sample: IndexFolder, system: str, config: RecommendConfig
) -> None:
    answers(dense_sample, system, config)


@pytest.mark.parametrize(
    ("system", "encoder", "ranker", "weight"),
    [
        ("rerank", "auto", "none", 0.3),
        ("rerank-alone", "auto", "none", 1.0),
        ("bm25+rerank", "none", "none", 1.0),
        ("ranker", "auto", "auto", None),
        ("ranker", "auto", "auto", 0.7),
    ],
)
def test_a_system_that_reranks_answers_as_recommend_does(
    dense_sample: IndexFolder,
    tiny_reranker_model: str,
    system: str,
    encoder: str,
    ranker: str,
    weight: float | None,
) -> None:
    rerank = RerankConfig(model=tiny_reranker_model, depth=30, weight=weight)
    config = PLAIN.replace(encoder=encoder, ranker=ranker, reranker=rerank)

    answers(dense_sample, system, config, rerank)


# --- stages of one's own


class ByTitle:
    """Prefers short titles: a reranker in one line."""

    def score(self, query: Query, papers: Sequence[Paper]) -> list[float]:
        return [-float(len(paper.title)) for paper in papers]


class ByRank:
    """Prefers papers by one feature: a learning-to-rank model in two lines."""

    def score(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.nan_to_num(features[:, NAMES.index("bm25")])


DRAFT = Query(
    id="draft", title="Dense passage retrieval for question answering", year=2021
)


def test_a_retriever_of_ones_own_is_fused_with_others(
    dense_sample: IndexFolder,
) -> None:
    bm25 = Bm25Retriever(dense_sample)
    recommender = Recommender(
        dense_sample, PLAIN.replace(k=5), retrievers=[bm25, Shelf(dense_sample)]
    )

    items = recommender.recommend(DRAFT)

    assert recommender.retriever_names == ("bm25", "shelf")
    assert {name for item in items for name in item.stages} == {"bm25", "shelf"}
    for item in items:  # each score is the reciprocal rank fusion of the two
        ranks = [stage.rank for stage in item.stages.values()]
        assert item.score == pytest.approx(sum(1 / (60 + rank) for rank in ranks))


def test_a_reranker_of_ones_own_orders_the_best_fifty(
    dense_sample: IndexFolder,
) -> None:
    plain = Recommender(dense_sample, PLAIN.replace(k=50)).recommend(DRAFT)

    items = Recommender(
        dense_sample, PLAIN.replace(k=50), reranker=ByTitle()
    ).recommend(DRAFT)

    lengths = [len(item.paper.title) for item in items]
    assert {item.paper.id for item in items} == {item.paper.id for item in plain}
    assert lengths == sorted(lengths)
    assert all(item.probability is None for item in items)  # nothing is calibrated


def test_a_reranker_of_ones_own_is_mixed_with_the_default_model(
    dense_sample: IndexFolder,
) -> None:
    plain = Recommender(dense_sample, RecommendConfig(k=50)).recommend(DRAFT)
    recommender = Recommender(dense_sample, RecommendConfig(k=50), reranker=ByTitle())

    items = recommender.recommend(DRAFT, explain=True)

    # Both orders count: (1 - 0.2) of the model's score and 0.2 of the reranker's, each of mean 0.
    assert {item.paper.id for item in items} == {item.paper.id for item in plain}
    assert [item.paper.id for item in items] != [item.paper.id for item in plain]
    assert sum(item.score for item in items) == pytest.approx(0, abs=1e-4)
    # the probabilities are those of the model, paper by paper
    before = {item.paper.id: item.probability for item in plain}
    assert {item.paper.id: item.probability for item in items} == before


def test_a_model_of_ones_own_orders_by_features(dense_sample: IndexFolder) -> None:
    by_bm25 = Recommender(dense_sample, PLAIN.replace(k=5, encoder="none")).recommend(
        DRAFT
    )

    ranked = Recommender(dense_sample, PLAIN.replace(k=5), ranker=ByRank())
    items = ranked.recommend(DRAFT, explain=True)

    assert str(ranked.ranker) == "ByRank"
    assert [item.paper.id for item in items] == [item.paper.id for item in by_bm25]


class Broken:
    """Forgets a paper."""

    def score(self, query: Query, papers: Sequence[Paper]) -> list[float]:
        return [1.0] * (len(papers) - 1)


def test_stages_that_do_not_fit_are_refused_in_one_line(
    dense_sample: IndexFolder,
) -> None:
    recommender = Recommender(dense_sample, PLAIN, reranker=Broken())

    with pytest.raises(
        ConfigError, match=r"Broken.score must return 50 finite numbers"
    ):
        recommender.recommend(DRAFT)
    with pytest.raises(ConfigError, match="distinct names, got shelf, shelf"):
        Recommender(
            dense_sample, PLAIN, retrievers=[Shelf(dense_sample), Shelf(dense_sample)]
        )
    weighted = PLAIN.replace(fuse=FuseConfig(method=FuseMethod.WEIGHTED))
    with pytest.raises(ConfigError, match="no weight for the retriever 'shelf'"):
        Recommender(
            dense_sample,
            weighted,
            retrievers=[Bm25Retriever(dense_sample), Shelf(dense_sample)],
        )
