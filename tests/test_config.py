"""Settings are validated on construction; a fault is one `ConfigError` that names the setting."""

from typing import Any

import pytest

from citerec.config import (
    Bm25Config,
    FuseConfig,
    FuseMethod,
    RecommendConfig,
    RerankConfig,
    Settings,
    read_settings,
)
from citerec.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Bm25Config, "k1", -0.1),
        (Bm25Config, "k1", float("nan")),
        (Bm25Config, "k1", 1e39),  # which Lucene cannot take
        (Bm25Config, "b", 1.01),
        (Bm25Config, "key_terms", 0),
        (RerankConfig, "model", ""),
        (RerankConfig, "weight", -0.1),
        (RecommendConfig, "k", 0),
        (RecommendConfig, "k", 2.5),
        (RecommendConfig, "k", float("nan")),
        (RecommendConfig, "unknown", 1),
    ],
)
def test_an_invalid_setting_is_refused_by_name(
    kind: type[Settings], name: str, value: Any
) -> None:
    with pytest.raises(ConfigError, match=name):
        kind(**{name: value})


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="both 0"):
        FuseConfig(bm25_weight=0, dense_weight=0)
    with pytest.raises(ConfigError, match="ranker"):
        RecommendConfig(ranker="none", authors=False)


def test_values_of_a_file_become_settings_and_a_fault_has_its_full_name() -> None:
    config = read_settings(
        RecommendConfig, {"bm25": {"k1": 2}, "fuse": {"method": "weighted"}}
    )

    weighted = FuseConfig(method=FuseMethod.WEIGHTED)
    assert config == RecommendConfig(bm25=Bm25Config(k1=2), fuse=weighted)
    with pytest.raises(
        ConfigError, match=r"^row\.toml: bm25\.k1 must be at least 0, got -1$"
    ):
        read_settings(RecommendConfig, {"bm25": {"k1": -1}}, "row.toml: ")


def test_a_string_is_the_model_of_a_reranker() -> None:
    deep = RerankConfig(model="scibert", depth=50)

    assert RecommendConfig(reranker="scibert").rerank == RerankConfig(model="scibert")
    assert RecommendConfig(reranker=deep).rerank == deep
    assert RecommendConfig().rerank.model == "auto"


def test_a_changed_copy_is_validated_again() -> None:
    config = RecommendConfig()

    assert (config.replace(k=5).k, config.k) == (5, 20)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        config.replace(k=0)
