"""A learned ranker: its folder, its variants, its reasons, and lists that do not say the same thing twice."""

import re
from math import log1p
from pathlib import Path

import numpy as np
import orjson
import pytest
from support.tiny_ranker import tiny_ranker
from support.types import Build

from citerec.errors import ModelError
from citerec.files.checksums import model_faults, seal_model
from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.rank.diversify import by_vectors, by_words, diversified
from citerec.rank.expand import neighbour_scores
from citerec.rank.features import FEATURES, NAMES, Matrix
from citerec.rank.ltr import DEFAULT, Variant, open_ranker
from citerec.rank.reasons import Facts, reasons, semantic
from citerec.types import Hits, Paper, Recommendation, StageHit


def matrix_of(**columns: list[float]) -> Matrix:
    matrix = np.full(
        (len(next(iter(columns.values()))), len(NAMES)), np.nan, np.float32
    )
    for name, values in columns.items():
        matrix[:, NAMES.index(name)] = values
    return matrix


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_ranker(
        tmp_path_factory.mktemp("models") / "ranker", {"bm25": 1, "citations": 2}
    )


def test_a_ranker_scores_what_its_features_say(folder: Path) -> None:
    ranker = open_ranker(folder)

    scores = ranker.score(matrix_of(bm25=[0.1, 0.9, 0.1], citations=[0.1, 0.1, 0.9]))

    assert scores.argsort().tolist() == [0, 1, 2]
    assert scores.dtype == np.float32
    assert ranker.score(matrix_of(bm25=[])).shape == (0,)


def test_contributions_sum_to_the_score(folder: Path) -> None:
    ranker = open_ranker(folder)
    matrix = matrix_of(bm25=[0.1, 0.9], citations=[0.9, 0.2])

    added = ranker.contributions(matrix)

    assert added.shape == (2, len(NAMES) + 1)
    assert added.sum(axis=1) == pytest.approx(ranker.score(matrix), abs=1e-5)


def test_weights_of_a_linear_part_are_added_to_score_and_contributions(
    tmp_path: Path,
) -> None:
    folder = tiny_ranker(tmp_path / "ranker", {"bm25": 1}, variants=[Variant.FULL])
    matrix = matrix_of(bm25=[0.1, 0.9], bm25_rank=[1 / 61, 1 / 62])
    trees = open_ranker(folder).score(matrix)
    spec = orjson.loads((folder / "ranker.json").read_bytes())
    spec["variants"]["full"]["linear"] = {"bm25_rank": 122, "dense_rank": 50}
    (folder / "ranker.json").write_bytes(orjson.dumps(spec))
    seal_model(folder)

    ranker = open_ranker(folder)

    ranks = [122 / 61, 122 / 62]  # none by vectors
    assert ranker.score(matrix) == pytest.approx(trees + np.array(ranks))
    added = ranker.contributions(matrix)
    assert added.sum(axis=1) == pytest.approx(ranker.score(matrix), abs=1e-5)
    assert added[0, NAMES.index("dense_rank")] == 0


def test_a_variant_does_not_see_what_it_may_not_read(folder: Path) -> None:
    blind = open_ranker(folder, Variant.NO_POPULARITY)

    little, much = blind.score(matrix_of(bm25=[0.5, 0.5], citations=[0.0, 1.0]))

    assert little == much
    assert "age" not in blind.features
    assert "author_overlap" in blind.features


def test_a_ranker_that_cannot_be_used_is_refused(folder: Path, tmp_path: Path) -> None:
    only_full = tiny_ranker(tmp_path / "full", {}, variants=[Variant.FULL])
    with pytest.raises(
        ModelError, match="has no ranker of the kind no-authors; it has: full"
    ):
        open_ranker(only_full, Variant.NO_AUTHORS)

    spec = orjson.loads((only_full / "ranker.json").read_bytes())
    spec["variants"]["full"]["features"][0] = "horoscope"
    (only_full / "ranker.json").write_bytes(orjson.dumps(spec))
    seal_model(only_full)
    with pytest.raises(ModelError, match="no feature 'horoscope'"):
        open_ranker(only_full)

    (only_full / "ranker.json").write_text("{")
    seal_model(only_full)
    with pytest.raises(ModelError, match="cannot be parsed"):
        open_ranker(only_full)


@pytest.fixture
def facts(build: Build) -> Facts:
    """Of a query that is like two papers, both of which cite the paper at row 0."""
    papers = [
        {
            "id": "p",
            "title": "P",
            "year": 2009,
            "authors": ["Bo Lee", "Ann B. Roe", "C. Dee"],
        },
        {"id": "q", "title": "Q", "year": 2010, "citations": ["p"]},
        {"id": "r", "title": "R", "year": 2011, "citations": ["p"]},
    ]
    known = TemporalGraph(build(papers), CitationScope.EARLIER).snapshot_before(None)
    found = neighbour_scores(known, np.array([2, 1], np.int32))
    return Facts(known, found, authors=["Ann Roe", "Cy Dee", "Ben Lee"])


def said_of(
    facts: Facts, weights: dict[str, float], **features: float
) -> tuple[str, ...]:
    paper = Paper(id="p", title="P", year=2009)
    item = Recommendation(
        rank=1, paper=paper, score=1, stages={"dense": StageHit(3, 0.9)}
    )
    known = dict.fromkeys(NAMES, float("nan")) | features
    added = np.array([weights.get(name, 0) for name in (*NAMES, "base")])
    return reasons(
        item, known, added, matched=("sparse", "attention"), row=0, facts=facts
    )


def test_reasons_are_what_weighed_most_in_words(facts: Facts) -> None:
    weights = {
        "bm25": 0.2,
        "dense": 0.1,
        "cited_by_similar": 0.5,
        "author_overlap": 0.4,
    }

    said = said_of(facts, weights, author_overlap=0.5)

    assert said == (
        'cited by 2 of the 2 papers most like yours, such as "R"',
        "shares an author with you: Ann B. Roe",
        "matches: sparse, attention",
    )  # of three papers all are among the 3 closest


@pytest.mark.parametrize(
    ("rank", "papers", "bound"), [(3, 6, 3), (3, 5, 0), (9, 30, 10), (11, 30, 0)]
)
def test_a_rank_is_a_reason_where_it_tells_papers_apart(
    rank: int, papers: int, bound: int
) -> None:
    paper = Paper(id="p", title="P")
    item = Recommendation(
        rank=1, paper=paper, score=1, stages={"dense": StageHit(rank, 0.9)}
    )
    text = f"its text is among the {bound} closest to yours"

    assert semantic(item, papers) == (text if bound else "")


def test_an_author_known_by_initials_alone_is_stated_as_such(build: Build) -> None:
    papers = [
        {"id": "p", "title": "P", "authors": ["C. Dee", "Bo Lee"]},
        {"id": "q", "title": "Q", "authors": ["Cy Dee"], "citations": ["p"]},
    ]
    known = TemporalGraph(build(papers), CitationScope.EARLIER).snapshot_before(None)
    found = neighbour_scores(known, np.array([1], np.int32))
    facts = Facts(known, found, authors=["Cy Dee", "Ben Lee"])

    assert facts.author_overlap(0) == (
        "may share an author with you, by initials alone: C. Dee"
    )
    assert facts.author_overlap(1) == "shares an author with you: Cy Dee"
    assert facts.self_cited(0) == "cited by 1 earlier paper of your authors, by name"


def test_what_lowered_a_score_or_is_not_so_is_no_reason(facts: Facts) -> None:
    weights = {"citations": -0.2, "venue_match": 0.3, "citations_3y": 0.2, "age": 0.1}
    features = {
        "citations": log1p(9),
        "citations_3y": log1p(5),
        "venue_match": 0,
        "age": 1,
    }

    said = said_of(facts, weights, **features)

    assert said == ("cited 5 times in the last 3 years",)


HITS = Hits(np.array([7, 8, 9], np.int32), np.array([1.0, 0.9, 0.0], np.float32))
VECTORS = np.array([[1, 0], [1, 0.1], [0, 1]], np.float32)


def test_a_diverse_list_prefers_what_is_unlike_the_papers_above() -> None:
    alike = by_vectors(VECTORS)

    assert diversified(HITS, alike, 0.0, 3).rows.tolist() == [7, 8, 9]
    assert diversified(HITS, alike, 0.6, 3).rows.tolist() == [7, 9, 8]
    assert diversified(HITS, alike, 0.6, 2).scores.tolist() == pytest.approx([0.4, 0])
    # where all are worth the same
    assert diversified(HITS, alike, 1.0, 1).rows.tolist() == [7]


def test_titles_tell_likeness_where_there_are_no_vectors() -> None:
    words = [frozenset("ab"), frozenset("abc"), frozenset("x")]

    assert by_words(words)(0).tolist() == pytest.approx([1, 2 / 3, 0])


def test_the_card_of_the_default_model_describes_the_features_as_they_are() -> None:
    _, features = (
        (DEFAULT / "README.md").read_text(encoding="utf-8").split("## Features")
    )

    described = dict(
        re.findall(r"^\| (\w+) \| [\d.]+% \| (.*) \|$", features, re.MULTILINE)
    )

    meanings = {feature.name: feature.meaning for feature in FEATURES}
    assert described == {name: meanings[name] for name in open_ranker(DEFAULT).features}


def test_the_model_of_the_package_is_as_it_was_written() -> None:
    assert model_faults(DEFAULT) == []
