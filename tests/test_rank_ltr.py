"""The calibrated probability that a paper is cited."""

from math import exp
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_ranker import tiny_ranker

from citerec.config import RecommendConfig
from citerec.display import percentage
from citerec.errors import ModelError
from citerec.export import Format, Result, pieces
from citerec.files.checksums import seal_model
from citerec.index.folder import IndexFolder
from citerec.rank.features import NAMES, Matrix
from citerec.rank.ltr import DEFAULT, TOP, Calibration, Variant, open_ranker
from citerec.recommend import Recommender
from citerec.train.boost import RankerExamples, calibrated, top_lists
from citerec.types import Query

CALIBRATION = Calibration(
    scale=2.0, offset=-1.0, weights={"coverage": 10.0, "references": 1.0, "known": -0.5}
)
DRAFT = Query(id="d", title="Dense retrieval of passages")


def features(papers: int, **columns: float) -> Matrix:
    """Make the features of one list: some columns, the others are missing."""
    matrix = np.full((papers, len(NAMES)), np.nan, np.float32)
    for name, value in columns.items():
        matrix[:, NAMES.index(name)] = value
    return matrix


def test_a_probability_is_the_sigmoid_of_the_score_and_of_what_is_known_of_the_list() -> (
    None
):
    scores = np.array([3.0, 1.0, 2.0], np.float32)
    matrix = features(3, coverage=-0.3, references=1.0, known=1.0)

    probabilities = CALIBRATION.probabilities(scores, matrix)

    of_list = -1 + 10 * -0.3 + 1 * 1 - 0.5 * 1
    assert of_list == pytest.approx(-3.5)
    assert probabilities.tolist() == pytest.approx(
        [1 / (1 + exp(3.5 - 6)), 1 / (1 + exp(3.5 - 2)), 1 / (1 + exp(3.5 - 4))]
    )


@given(st.lists(st.integers(-80, 80), min_size=1, unique=True), st.floats(-0.75, 0))
def test_the_order_by_probability_is_that_by_score(
    eighths: list[int], coverage: float
) -> None:
    scores = np.array(eighths, np.float32) / 8

    probabilities = CALIBRATION.probabilities(
        scores, features(len(scores), coverage=coverage)
    )

    assert np.argsort(probabilities).tolist() == np.argsort(scores).tolist()


def lists_that_follow(
    calibration: Calibration, queries: int, **inputs: float
) -> RankerExamples:
    """Make whole lists whose papers are cited as often as a calibration says; their scores are the first feature."""
    rng, parts = np.random.default_rng(7), []
    for _ in range(queries):
        matrix = features(2 * TOP, **inputs)
        matrix[:, 0] = rng.normal(0, 1.5, len(matrix))
        cited = rng.random(len(matrix)) < calibration.probabilities(
            matrix[:, 0], matrix
        )
        parts.append(RankerExamples.one(matrix, cited, int(cited.sum())))
    return RankerExamples.joined(parts)


def test_what_is_fitted_agrees_with_how_often_papers_are_cited_in_each_field() -> None:
    kinds = [
        {"coverage": c, "references": r, "known": 0.0}
        for c in (-0.4, 0)
        for r in (-1, 1)
    ]
    kinds.append({"coverage": 0, "references": 0, "known": 1})
    made = [lists_that_follow(CALIBRATION, 50, **one) for one in kinds]
    start = Calibration(scale=1, offset=0, weights=CALIBRATION.weights)

    fitted = calibrated([top_lists(one, one.matrix[:, 0]) for one in made], start, 1e-3)

    assert fitted is not None
    assert fitted.scale == pytest.approx(2.0, rel=0.1)
    assert fitted.offset == pytest.approx(-1.0, abs=0.15)
    assert fitted.weights["coverage"] == pytest.approx(10, rel=0.15)
    assert fitted.weights["references"] == pytest.approx(1.0, rel=0.15)


def test_lists_of_one_corpus_move_the_offset_alone_and_a_few_papers_hardly_the_scale() -> (
    None
):
    rare = CALIBRATION.replace(offset=-4.0)
    one = lists_that_follow(rare, 50, coverage=0, references=0.5, known=0)
    first = one.of(np.arange(50) < 1)
    few = top_lists(first, first.matrix[:, 0])

    fitted = calibrated([top_lists(one, one.matrix[:, 0])], CALIBRATION)
    of_few = calibrated([few], CALIBRATION)

    assert fitted and of_few
    assert [*fitted.weights.values()] == pytest.approx([10, 1, -0.5], rel=1e-3)
    assert fitted.offset == pytest.approx(-4.0, abs=0.3)
    assert of_few.scale == pytest.approx(2.0, rel=0.3)


def test_where_nothing_is_cited_there_is_no_calibration() -> None:
    nothing = np.zeros(200), features(200), np.zeros(200, np.bool_)

    assert calibrated([nothing], CALIBRATION) is None
    assert calibrated([], CALIBRATION) is None


@pytest.mark.parametrize("variant", Variant)
def test_the_default_ranker_has_a_calibration_for_each_variant(
    variant: Variant,
) -> None:
    assert open_ranker(DEFAULT, variant).calibration is not None


def test_a_calibration_that_cannot_be_is_refused(tmp_path: Path) -> None:
    folder = tiny_ranker(tmp_path / "ranker", {}, calibration=CALIBRATION)
    assert open_ranker(folder).calibration == CALIBRATION

    spec = orjson.loads((folder / "ranker.json").read_bytes())
    for bad in ({"scale": -1, "offset": 0}, {"scale": 1}, 7):
        spec["variants"]["full"]["calibration"] = bad
        (folder / "ranker.json").write_bytes(orjson.dumps(spec))
        seal_model(folder)
        with pytest.raises(ModelError, match="cannot be parsed"):
            open_ranker(folder)


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (None, "-"),
        (0.0, "<1%"),
        (0.004, "<1%"),
        (0.006, "1%"),
        (0.624, "62%"),
        (0.999, ">99%"),
    ],
)
def test_a_probability_is_shown_in_whole_percents_and_never_as_certain(
    probability: float | None, shown: str
) -> None:
    assert percentage(probability) == shown


def recommended(index: IndexFolder, ranker: str) -> Result:
    config = RecommendConfig(k=5, encoder="none", ranker=ranker, reranker="none")
    return Recommender(index, config).recommend(DRAFT)


def test_the_default_ranker_shows_percentages_and_json_holds_both(
    sample_index: IndexFolder,
) -> None:
    result = recommended(sample_index, "auto")

    likely = [one.probability for one in result.recommendations]
    assert None not in likely
    assert likely == sorted(likely, reverse=True)  # type: ignore[type-var]
    heading, first, *_ = "".join(
        pieces([result], Format.TABLE, batch=False)
    ).splitlines()
    assert heading.endswith("Probability")
    assert first.endswith(percentage(likely[0]))
    items = orjson.loads("".join(pieces([result], Format.JSON, batch=False)))
    assert [item["probability"] for item in items] == likely
    assert [item["score"] for item in items] == [
        one.score for one in result.recommendations
    ]


def test_a_list_without_a_calibration_shows_no_percentage(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    old = str(tiny_ranker(tmp_path / "old", {"bm25": 1}))

    result = recommended(sample_index, old)

    assert {one.probability for one in result.recommendations} == {None}
    text = "".join(pieces([result], Format.TABLE, batch=False))
    assert "Score" in text.splitlines()[0]
    assert "%" not in text
