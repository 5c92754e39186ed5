"""Which folders open as a cross-encoder, and what is said of those that do not."""

import shutil
from pathlib import Path

import pytest
from support.tiny import tiny_bert, tiny_reranker

from citerec.errors import ConfigError, ModelError
from citerec.rerank.model import RerankerParts, load_reranker
from citerec.rerank.spec import default_depth, pair_flops


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_reranker(tmp_path_factory.mktemp("tiny"))


def test_a_folder_says_how_it_reads(folder: Path) -> None:
    parts = load_reranker(folder)

    assert (parts.spec.query_tokens, parts.spec.candidate_tokens) == (32, 32)
    assert parts.typed
    assert load_reranker(folder, query_tokens=16).spec.tokens == 16 + 32


def test_an_encoder_is_refused_and_told_how_to_train_it(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")

    with pytest.raises(ModelError) as told:
        load_reranker(folder)
    assert "was not trained to rerank" in str(told.value)
    assert f"citerec train-reranker --model {folder}" in str(told.value)
    assert "\n" not in str(told.value)


def test_more_than_two_labels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has 3 labels; a cross-encoder has 1 or 2"):
        load_reranker(tiny_reranker(tmp_path, labels=3))


def test_too_few_positions_are_one_clear_line(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"128 positions, fewer than the 132 tokens .* --query-to"):
        load_reranker(folder, query_tokens=100, candidate_tokens=32)


def test_the_other_side_gets_what_one_leaves(tmp_path: Path) -> None:
    folder = tiny_reranker(tmp_path, positions=180, tokens=90)

    assert load_reranker(folder, query_tokens=100).spec.candidate_tokens == 80
    assert load_reranker(folder, candidate_tokens=110).spec.query_tokens == 70
    assert load_reranker(folder, query_tokens=64).spec.candidate_tokens == 90  # as it was made for
    with pytest.raises(
        ConfigError, match="128 of the query leave 52 for the candidate, which needs at least 64"
    ):
        load_reranker(folder, query_tokens=128)


def test_a_folder_without_weights_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    (broken / "model.safetensors").unlink()

    with pytest.raises(ModelError, match="holds no weights"):
        load_reranker(broken)


def test_the_weights_of_another_model_are_one_clear_line(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    other = tiny_bert(tmp_path / "other", layers=1)
    shutil.copy(other / "model.safetensors", broken)

    with pytest.raises(ModelError, match=r"lack \d+ of the tensors"):
        load_reranker(broken)


# --- how deep


def sized(
    parts: RerankerParts, layers: int, hidden: int, query: int, candidate: int
) -> RerankerParts:
    """Return the parts as if the model were another, of which only the size is asked."""
    from transformers import BertConfig

    class Sized:
        config = BertConfig(
            num_hidden_layers=layers, hidden_size=hidden, intermediate_size=4 * hidden
        )

    spec = parts.spec.with_tokens(query, candidate)
    return RerankerParts(Sized(), parts.tokenizer, spec, parts.specials)


def test_operations_of_a_pair_are_counted(folder: Path) -> None:
    parts = load_reranker(folder)  # 2 layers, h = 32, f = 64, T = 64

    # 2 (2 · 64 (4 · 32² + 2 · 32 · 64) + 4 · 64² · 32) = 2 (1,048,576 + 524,288)
    assert pair_flops(parts) == 3_145_728


def test_a_small_model_reads_deeper_than_a_large_one(folder: Path) -> None:
    tiny = load_reranker(folder)
    minilm = sized(tiny, layers=6, hidden=384, query=128, candidate=64)
    default = sized(tiny, layers=6, hidden=384, query=256, candidate=256)
    bert = sized(tiny, layers=12, hidden=768, query=256, candidate=256)

    assert pair_flops(minilm) == pytest.approx(4.4e9, rel=0.01)
    assert pair_flops(bert) == pytest.approx(97e9, rel=0.01)
    assert default_depth(tiny, "cpu") == 1000
    assert default_depth(minilm, "cpu") == 100
    assert default_depth(default, "cpu") == 20  # 2 * 0.15 TFLOP/s * 1.5 s / 13.3 GFLOP = 33.8
    assert default_depth(bert, "cpu") == 10
    assert default_depth(bert, "cuda") == 1000
    assert default_depth(bert, "cpu", cores=32) == 50  # 32 * 0.15 TFLOP/s * 1.5 s / 97 GFLOP = 74
