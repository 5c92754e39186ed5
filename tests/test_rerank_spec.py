"""What a model folder says of how its cross-encoder reads."""

from pathlib import Path

import pytest

from citerec.errors import ConfigError, ModelError
from citerec.rerank.spec import NAME, RerankerSpec, read_reranker_spec, write_reranker_spec


def test_a_spec_comes_back(tmp_path: Path) -> None:
    spec = RerankerSpec(
        query_tokens=128, candidate_tokens=64, scale=0.5, offset=-1.25, weight=0.3, depth=20
    )

    write_reranker_spec(tmp_path, spec)

    assert read_reranker_spec(tmp_path) == spec
    assert spec.tokens == 192


def test_a_folder_that_says_nothing_reads_256_and_256_tokens(tmp_path: Path) -> None:
    assert read_reranker_spec(tmp_path) == RerankerSpec(query_tokens=256, candidate_tokens=256)


def test_the_split_can_be_moved() -> None:
    spec = RerankerSpec(scale=2.0)

    assert spec.with_tokens() == spec
    assert spec.with_tokens(448, 64) == RerankerSpec(
        query_tokens=448, candidate_tokens=64, scale=2.0
    )


@pytest.mark.parametrize("tokens", [7, 449, -1])
def test_a_limit_that_cannot_be_is_refused(tokens: int) -> None:
    with pytest.raises(ConfigError, match=f"candidate_tokens must be from 8 to 448, got {tokens}"):
        RerankerSpec().with_tokens(candidate=tokens)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_calibration_that_would_turn_the_order_is_refused(scale: float) -> None:
    with pytest.raises(ConfigError, match="a calibration needs a scale above 0"):
        RerankerSpec(scale=scale)


def test_a_depth_is_no_negative_number() -> None:
    with pytest.raises(ConfigError, match="depth must be at least 0, got -1"):
        RerankerSpec(depth=-1)


def test_a_weight_is_a_share() -> None:
    with pytest.raises(ConfigError, match=r"weight must lie in \[0, 1\], got 1.5"):
        RerankerSpec(weight=1.5)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"query_tokens": 9999, "candidate_tokens": 8, "scale": 1}']
)
def test_a_spec_that_cannot_be_made_out_is_one_clear_line(tmp_path: Path, content: str) -> None:
    (tmp_path / NAME).write_text(content)

    with pytest.raises(ModelError, match=NAME) as told:
        read_reranker_spec(tmp_path)
    assert "\n" not in str(told.value)
