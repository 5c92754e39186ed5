"""The calibrated probability that a paper is cited."""

from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_ranker import tiny_ranker

from citerec.config import RecommendConfig
from citerec.errors import ModelError
from citerec.export import Format, Result, dump
from citerec.folder import IndexFolder
from citerec.io import seal_model
from citerec.rank.features import FEATURES
from citerec.rank.ltr import DEFAULT, TOP, Calibration, Variant, open_ranker, relative
from citerec.recommend import Recommender
from citerec.retrieve.fuse import sigmoid
from citerec.text import percentage
from citerec.train.boost import RankerExamples, calibrated, top_lists
from citerec.types import Query

CALIBRATION = Calibration(scale=2.0, offset=-1.0)
DRAFT = Query(id="d", title="Dense retrieval of passages")


def test_a_probability_is_the_sigmoid_of_a_score_less_the_mean_of_its_list() -> None:
    probabilities = CALIBRATION.probabilities(np.array([3.0, 1.0, 2.0], np.float32))

    assert probabilities.tolist() == pytest.approx(
        [1 / (1 + exp(1 - 2)), 1 / (1 + exp(1 + 2)), 1 / (1 + exp(1 - 0))]
    )


def test_only_the_best_of_a_long_list_are_the_measure() -> None:
    scores = np.concatenate([np.ones(TOP), np.full(5000, -50.0)])

    assert relative(scores)[:TOP].tolist() == [0.0] * TOP


@given(st.lists(st.integers(-80, 80), min_size=1, unique=True), st.integers(-9, 9))
def test_the_order_by_probability_is_that_by_score_and_a_shift_changes_nothing(
    eighths: list[int], shift: int
) -> None:
    scores = np.array(eighths, np.float32) / 8

    probabilities = CALIBRATION.probabilities(scores)

    assert np.argsort(probabilities).tolist() == np.argsort(scores).tolist()
    assert CALIBRATION.probabilities(scores + shift) == pytest.approx(probabilities)


def lists_that_follow(calibration: Calibration, queries: int, shift: float) -> RankerExamples:
    """Make whole lists whose papers are cited as often as a calibration says."""
    rng = np.random.default_rng(7)
    scores = [rng.normal(0, 1.5, 2 * TOP) + shift for _ in range(queries)]
    cited = [rng.random(2 * TOP) < calibration.probabilities(one) for one in scores]
    parts = []
    for values, flags in zip(scores, cited, strict=True):
        matrix = np.zeros((len(values), len(FEATURES)), np.float32)
        matrix[:, 0] = values
        parts.append(RankerExamples.one(matrix, flags, int(flags.sum())))
    return RankerExamples.joined(parts)


def test_what_is_fitted_agrees_with_how_often_papers_are_cited_in_any_shift() -> None:
    dev, test = lists_that_follow(CALIBRATION, 100, -4), lists_that_follow(CALIBRATION, 50, 3)

    made = calibrated([top_lists(dev, dev.matrix[:, 0], TOP)])

    assert made is not None
    assert made.scale == pytest.approx(CALIBRATION.scale, abs=0.15)
    assert made.offset == pytest.approx(CALIBRATION.offset, abs=0.15)
    relative_scores, cited = top_lists(test, test.matrix[:, 0], 20)
    probabilities = sigmoid(made.scale * relative_scores + made.offset)
    assert len(probabilities) == 50 * 20
    assert probabilities.mean() == pytest.approx(cited.mean(), abs=0.03)


def test_too_few_cited_papers_make_no_calibration() -> None:
    nothing = np.zeros(200), np.zeros(200, np.bool_)

    assert calibrated([nothing]) is None
    assert calibrated([]) is None


@pytest.mark.parametrize("variant", Variant)
def test_the_default_ranker_has_a_calibration_for_each_variant(variant: Variant) -> None:
    assert open_ranker(DEFAULT, variant).calibration is not None


def test_a_calibration_that_cannot_be_is_refused(tmp_path: Path) -> None:
    folder = tiny_ranker(tmp_path / "ranker", {}, calibration=CALIBRATION)
    assert open_ranker(folder).calibration == CALIBRATION

    spec = orjson.loads((folder / "ranker.json").read_bytes())
    for bad in ({"top": 100, "scale": -1, "offset": 0}, {"top": 100, "scale": 1}, 7):
        spec["variants"]["full"]["calibration"] = bad
        (folder / "ranker.json").write_bytes(orjson.dumps(spec))
        seal_model(folder)
        with pytest.raises(ModelError, match="cannot be parsed"):
            open_ranker(folder)


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(None, "-"), (0.0, "<1%"), (0.004, "<1%"), (0.006, "1%"), (0.624, "62%"), (0.999, ">99%")],
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
    heading, first, *_ = dump([result], Format.TABLE, batch=False).splitlines()
    assert heading.endswith("Probability")
    assert first.endswith(percentage(likely[0]))
    items = orjson.loads(dump([result], Format.JSON, batch=False))
    assert [item["probability"] for item in items] == likely
    assert [item["score"] for item in items] == [one.score for one in result.recommendations]


def test_a_list_without_a_calibration_shows_no_percentage(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    old = str(tiny_ranker(tmp_path / "old", {"bm25": 1}))

    for result in (recommended(sample_index, "none"), recommended(sample_index, old)):
        assert {one.probability for one in result.recommendations} == {None}
        text = dump([result], Format.TABLE, batch=False)
        assert "Score" in text.splitlines()[0]
        assert "%" not in text
        items = orjson.loads(dump([result], Format.JSON, batch=False))
        assert [item["probability"] for item in items] == [None] * 5


def test_a_paper_without_a_probability_in_a_list_that_has_them_shows_a_dash(
    sample_index: IndexFolder,
) -> None:
    result = recommended(sample_index, "none")
    first, *others = result.recommendations
    mixed = Result(DRAFT, (replace(first, probability=0.5), *others))

    lines = dump([mixed], Format.TABLE, batch=False).splitlines()

    assert [line.split()[-1] for line in lines if line[:1].isdigit()] == ["50%", *["-"] * 4]
