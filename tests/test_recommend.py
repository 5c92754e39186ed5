"""The pipeline as one object."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp
from pathlib import Path
from typing import Any

import pytest
from support.corpora import records
from support.tiny_ranker import tiny_ranker
from support.types import Build

from citerec.config import RecommendConfig, RerankConfig
from citerec.display import percentage
from citerec.drafts import QueryFile
from citerec.errors import ConfigError
from citerec.index.folder import IndexFolder
from citerec.recommend import Recommender
from citerec.request import Request
from citerec.types import Query, Recommendation, StageHit


def ids(found: Sequence[Recommendation]) -> list[str]:
    return [item.paper.id for item in found]


PLAIN = RecommendConfig(ranker="none")  # as the stages before the ranker leave the list


def test_papers_come_best_first_with_the_rank_and_score_of_each_stage(
    sample_index: IndexFolder,
) -> None:
    recommender = Recommender(sample_index, PLAIN.replace(k=7))

    found = recommender.recommend(
        Query(id="d", title="Citation recommendation", year=2018)
    )

    assert [item.rank for item in found] == [1, 2, 3, 4, 5, 6, 7]
    assert all(a.score >= b.score for a, b in pairwise(found))
    assert all(
        item.stages == {"bm25": StageHit(item.rank, item.score)} for item in found
    )
    assert all(item.reasons == () for item in found)
    assert ids(found)[0] == "he2010context"
    assert found[0].paper.title == "Context-Aware Citation Recommendation"
    assert found[0].paper.authors[0] == "Qi He"


def test_what_progress_raises_ends_a_batch_between_two_steps(
    sample_index: IndexFolder,
) -> None:
    config = RecommendConfig(few_queries=True, diversity=0.5)
    recommender = Recommender(sample_index, config)
    drafts = [
        Query(id=f"{n}", title=f"Attention to {n} trees", named=False)
        for n in range(10)
    ]
    steps: list[tuple[str, int]] = []

    def progress(task: str, done: int, total: int) -> None:
        steps.append((task, done))
        if len(steps) == 20:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        request = Request.of(drafts, k=120, explain=True)
        list(recommender.recommend_many(request, progress=progress))

    # eight drafts are searched together
    ranked = [("ranking", place) for place in range(8)]
    # without vectors, 1,000 papers take a second for each draft
    chosen = [("diversifying", place) for place in range(8)]
    # the last of the second draft
    explained = [("explaining", done) for done in (0, 100, 0)]
    assert steps == [("searching", 0), *ranked, *chosen, *explained]


def test_of_many_sentences_progress_ends_the_choice(sample_index: IndexFolder) -> None:
    recommender = Recommender(sample_index, RecommendConfig(few_queries=True))
    draft = Query(id="d", title="Dense retrieval", named=False)
    sentences = [
        replace(draft, id=f"{n}", context=f"We search {n} texts.") for n in range(40)
    ]
    steps: list[int] = []

    def progress(task: str, done: int, total: int) -> None:
        steps.append(done)
        if done == 32:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        request = Request(
            drafts=QueryFile((*sentences,), by_sentence=True), most_sentences=2
        )
        list(recommender.recommend_many(request, progress=progress))

    assert steps == [0, 8, 16, 24, 32]  # eight sentences are searched together


def test_a_corpus_without_citations_is_said_to_be_one(
    build: Build, sample_index: IndexFolder
) -> None:
    bare = build([{"id": "a", "title": "Maps of bees"}])
    lines: list[str] = []

    Recommender(sample_index, log=lines.append)
    Recommender(bare, RecommendConfig(ranker="none"), lines.append)
    assert lines == []

    Recommender(bare, log=lines.append)
    assert [line.partition(":")[0] for line in lines] == [
        "this corpus has no citations"
    ]


def test_a_draft_that_is_in_the_corpus_under_another_id_is_treated_as_that_paper(
    sample_index: IndexFolder,
) -> None:
    lines: list[str] = []
    recommender = Recommender(sample_index, RecommendConfig(k=50), lines.append)
    papers = [sample_index.papers[row] for row in range(290, 299)]
    by_id = [Query.of(paper) for paper in papers]
    drafts = [
        replace(q, id=f"draft{n}", title=q.title.upper()) for n, q in enumerate(by_id)
    ]

    lists = [*recommender.recommend_many([*by_id, *drafts])]
    one = recommender.recommend(drafts[0])

    for paper, own, draft in zip(papers, lists[:9], lists[9:], strict=True):
        assert paper.id not in [r.paper.id for r in draft]
        assert {r.paper.id for r in draft} == {r.paper.id for r in own}
    assert [r.paper.id for r in one] == [r.paper.id for r in lists[9]]
    assert lines[0].startswith(
        "9 of 18 drafts are in the corpus; the first: draft0: this draft is in"
    )
    assert lines[1].startswith("this draft is in the corpus already, by its title")
    assert len(lines) == 1 + 1  # one line a batch


# --- reranking


def reranking(model: str, **settings: Any) -> RerankConfig:
    depth = settings.pop("depth", 30)
    return RerankConfig(
        model=model, depth=depth, precision="float32", threads=1, **settings
    )


DRAFT = Query(
    id="d", title="Citation recommendation", abstract="Retrieval of papers.", year=2018
)


def test_a_reranked_list_is_in_the_order_of_its_scores_then_as_it_was(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    config = PLAIN.replace(k=10, reranker=reranking(tiny_reranker_model, depth=4))
    plain = Recommender(sample_index, PLAIN.replace(k=10)).recommend(DRAFT)

    recommender = Recommender(sample_index, config)
    found = recommender.recommend(DRAFT, explain=True)

    assert recommender.reranker == tiny_reranker_model
    assert [item.stages["rerank"].rank for item in found[:4]] == [1, 2, 3, 4]
    for item in found[:4]:
        assert item.score == item.stages["rerank"].score
        likely = percentage(1 / (1 + exp(-item.score)))
        assert (
            f"a model that read both texts: {likely} likely to be cited" in item.reasons
        )
    assert set(ids(found)[:4]) == set(ids(plain)[:4])
    assert ids(found)[4:] == ids(plain)[4:]
    assert [set(item.stages) for item in found] == 4 * [{"bm25", "rerank"}] + 6 * [
        {"bm25"}
    ]
    assert all(a.score > b.score for a, b in pairwise(found[3:]))


CITING = records(
    """
{"id": "a", "title": "Drawing graphs", "year": 2010, "citations": ["classic", "tool"]},
{"id": "b", "title": "Drawing large graphs", "year": 2012, "citations": ["classic"]},
{"id": "classic", "title": "Planarity", "year": 1974},
{"id": "tool", "title": "Software for layout", "year": 2001, "authors": ["Ann Bee"]},
{"id": "late", "title": "Graphs", "year": 2019, "citations": ["tool", "b"]}
"""
)
DRAWING = Query(id="d", title="Drawing graphs", year=2015, authors=("A. Bee",))


def ranked(
    build: Build, folder: Path, weights: dict[str, float], **settings: Any
) -> Recommender:
    ranker = str(tiny_ranker(folder, weights))
    return Recommender(build(CITING), RecommendConfig(ranker=ranker, **settings))


def test_references_that_one_has_guide_the_ranker_and_stay_out(
    build: Build, tmp_path: Path
) -> None:
    recommender = ranked(build, tmp_path / "ranker", {"coupling": 1})

    found = recommender.recommend(DRAWING, cited=["tool"])

    assert ids(found)[0] == "a"  # which cites the tool, too
    assert "tool" not in ids(found)


CLAIMS = "Trees are drawn by levels in linear time. Maps are drawn by their borders as planar graphs."


@pytest.mark.parametrize(
    "draft",
    [
        {"title": "Drawing", "abstract": CLAIMS},
        {"title": "Drawing", "body": [CLAIMS]},
        {
            "title": "Drawing",
            "abstract": CLAIMS.split(".", maxsplit=1)[0] + ".",
        },  # one claim
    ],
)
def test_a_list_for_each_sentence_is_no_single_list(
    sample_index: IndexFolder, draft: dict[str, Any]
) -> None:
    with (
        Recommender(sample_index) as recommender,
        pytest.raises(ConfigError, match="recommend_many"),
    ):
        recommender.recommend(**draft, context="all")


def test_rejected_papers_leave_a_list_whose_order_stays(
    build: Build, tmp_path: Path
) -> None:
    recommender = ranked(build, tmp_path / "ranker", {"cited_by_similar_count": 1})
    every = recommender.recommend(DRAWING, k=5)

    found = recommender.recommend(DRAWING, rejected=[every.ids[1], "nobody"], k=4)

    assert found.ids == (every.ids[0], *every.ids[2:])
    assert [item.score for item in found] == [
        item.score for item in every if item.rank != 2
    ]
    assert found.not_found == ("nobody",)


def test_a_diverse_list_puts_the_unlike_before_the_alike(build: Build) -> None:
    index = build(CITING)
    plain, diverse = (
        Recommender(index, RecommendConfig(k=2, ranker="none", diversity=d))
        for d in (0, 0.9)
    )

    assert ids(plain.recommend(DRAWING)) == ["a", "b"]
    assert (
        ids(diverse.recommend(Query(id="d", title="Drawing graphs layout")))[1]
        == "tool"
    )


def test_a_batch_is_ranked_as_each_query_alone(build: Build, tmp_path: Path) -> None:
    recommender = ranked(build, tmp_path / "ranker", {"cited_by_similar": 1, "bm25": 1})
    queries = [
        DRAWING,
        Query(id="e", title="Planarity", year=2011),
        Query(id="f", title="None"),
    ]

    together = [*recommender.recommend_many(queries)]

    assert together == [recommender.recommend(query) for query in queries]
    assert together[2].recommendations == ()
