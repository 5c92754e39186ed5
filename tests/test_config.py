"""Settings are checked at birth."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from citerec.config import Bm25Config, CrossEncoderConfig, RecommendConfig, RerankConfig
from citerec.errors import ConfigError


def test_the_defaults_of_bm25_are_lucenes() -> None:
    config = Bm25Config()

    assert (config.k1, config.b) == (1.2, 0.75)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k1": -0.1},
        {"k1": float("nan")},
        {"k1": float("inf")},
        {"b": -0.01},
        {"b": 1.01},
        {"b": float("nan")},
        {"key_terms": 0},
        {"threads": -1},
    ],
)
def test_a_bm25_that_cannot_be_is_refused_by_name(wrong: dict[str, Any]) -> None:
    name, value = next(iter(wrong.items()))

    with pytest.raises(ConfigError, match=rf"{name.replace('_', '-')} must .*, got {value}"):
        Bm25Config(**wrong)


@pytest.mark.parametrize("edge", [{"k1": 0}, {"b": 0}, {"b": 1}, {"key_terms": 1}])
def test_the_edges_of_what_can_be_are_taken(edge: dict[str, Any]) -> None:
    assert Bm25Config(**edge)


def test_at_least_one_paper_must_be_asked_for() -> None:
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        RecommendConfig(k=0)


def test_settings_do_not_change() -> None:
    config = RecommendConfig()

    with pytest.raises(FrozenInstanceError):
        config.k = 5  # type: ignore[misc]


def stages(*depths: int) -> tuple[CrossEncoderConfig, ...]:
    return tuple(CrossEncoderConfig(model="m", depth=depth) for depth in depths)


def test_a_cascade_reads_less_from_stage_to_stage() -> None:
    assert RerankConfig(cross_encoders=stages(1000, 100, 10))
    assert RerankConfig(cross_encoders=stages(1000, 0, 10))  # 0: what suits the model


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"cross_encoders": ()}, "no reranker is named"),
        ({"cross_encoders": stages(10, 10)}, "must fall, cheapest first, got 10, 10"),
        ({"cross_encoders": stages(100, 0, 200)}, "must fall, cheapest first, got 100, 200"),
        ({"weight": -0.1}, r"the weight of the reranker must lie in \[0, 1\], got -0.1"),
        ({"weight": float("nan")}, "must lie in"),
        ({"weight": 1, "early_stop": True}, "stopping early needs a weight below 1"),
        ({"threads": -1}, "threads must be at least 0"),
    ],
)
def test_a_reranking_that_cannot_be_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        RerankConfig(**wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": " "}, "reranker is empty"),
        ({"depth": -1}, "depth must be at least 0"),
        ({"query_tokens": -1}, "query_tokens must be at least 0"),
    ],
)
def test_a_stage_that_cannot_be_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        CrossEncoderConfig(**wrong)


def test_a_reranker_is_named_by_a_config() -> None:
    with pytest.raises(ConfigError, match="must be auto, none or a RerankConfig, got 'scibert'"):
        RecommendConfig(reranker="scibert")  # type: ignore[arg-type]
