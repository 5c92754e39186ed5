"""A cross-encoder at work, held against plain transformers and sentence-transformers."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.corpora import built
from support.tiny import WORDS, tiny_bert, tiny_reranker
from support.types import MonkeyPatch

from citerec.encode import torch_backend
from citerec.encode.spec import EncodeConfig, Precision
from citerec.errors import ModelError
from citerec.index.folder import IndexFolder
from citerec.rerank.cross_encoder import (
    CrossEncoder,
    RerankerParts,
    load_reranker,
    open_cross_encoder,
)
from citerec.rerank.pair import (
    NAME,
    RerankerSpec,
    default_depth,
    pair_flops,
    read_reranker_spec,
)
from citerec.text import pair_text
from citerec.types import Query

F32 = EncodeConfig(precision=Precision.FLOAT32)
ROWS = [np.array(rows, np.int32) for rows in ([50, 3, 8, 0], [], [2, 59])]
QUERIES = [
    Query(id="q1", title="neural citation ranking", abstract="text search graph " * 9),
    Query(id="q2", title="asked for nothing"),
    Query(id="q3", title="a"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_reranker(tmp_path_factory.mktemp("tiny"), scale=0.5, offset=-1.0)


@pytest.fixture(scope="module")
def reranker(folder: Path) -> CrossEncoder:
    return open_cross_encoder(str(folder), None, F32)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> IndexFolder:
    """Papers of words that are one token each; the longest are cut."""
    chance = np.random.default_rng(0)
    papers = [
        {"id": str(n), "title": WORDS[n % 9], "abstract": " ".join(words[:n])}
        for n, words in enumerate(chance.choice(WORDS, (60, 60)).tolist())
    ]
    return built(tmp_path_factory.mktemp("made"), papers)


# --- what comes out


@pytest.mark.parametrize(("labels", "tokens"), [(1, 32), (2, 16)])
def test_scores_are_those_of_sentence_transformers(
    tmp_path: Path, index: IndexFolder, labels: int, tokens: int
) -> None:
    import torch
    from sentence_transformers import CrossEncoder as Theirs

    name = str(tiny_reranker(tmp_path, labels=labels, tokens=tokens))
    ours = open_cross_encoder(name, None, F32)

    found = ours.score(index, QUERIES, ROWS)

    assert ours.score(index, [], []) == []
    assert [scores.shape for scores in found] == [(4,), (0,), (2,)]
    assert {scores.dtype for scores in found} == {np.dtype(np.float32)}
    pairs = [  # of words that are one token each; each side has two special tokens, or one
        (
            pair_text(query).split()[: tokens - 2],
            pair_text(index.papers[row]).split()[: tokens - 1],
        )
        for query, rows in zip(QUERIES, ROWS, strict=True)
        for row in rows.tolist()
    ]
    theirs: Any = Theirs(name, device="cpu", activation_fn=torch.nn.Identity())
    logits = theirs.predict([tuple(map(" ".join, pair)) for pair in pairs])
    expected = logits if labels == 1 else logits[:, 1] - logits[:, 0]
    assert np.concatenate(found) == pytest.approx(expected, abs=1e-5)


def test_a_probability_is_the_calibrated_sigmoid(reranker: CrossEncoder) -> None:
    scores = np.array([2.0, 6.0, -2.0, 400.0, -400.0], np.float32)

    found = reranker.to_unit_interval(scores)

    # 0.5 · 2 - 1 = 0; then ± 2: 1 / (1 + e^-2) = 0.8808
    assert found == pytest.approx([0.5, 0.880797, 0.119203, 1.0, 0.0], abs=1e-6)


# --- whatever the company


def test_batches_threads_and_order_hardly_change_a_score(
    folder: Path, reranker: CrossEncoder, index: IndexFolder, monkeypatch: MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).permutation(len(index.papers)).astype(np.int32)[:60]
    (expected,) = reranker.score(index, QUERIES[:1], [rows])
    assert expected.std() > 1e-3

    for tokens, threads in ((1, 1), (256, 1), (256, 2), (100_000, 2)):
        monkeypatch.setattr(torch_backend, "FLOAT32_TOKENS", tokens)
        how = EncodeConfig(precision=Precision.FLOAT32, threads=threads)
        (found,) = open_cross_encoder(str(folder), None, how).score(
            index, QUERIES[:1], [rows[::-1]]
        )

        assert found[::-1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_other_pairs_may_be_scored_between_two_batches(
    folder: Path, index: IndexFolder, monkeypatch: MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(torch_backend, "FLOAT32_TOKENS", 1)  # a batch for each pair
    how = EncodeConfig(precision=Precision.FLOAT32, threads=threads)
    reranker = open_cross_encoder(str(folder), None, how)
    expected = reranker.score(index, QUERIES, ROWS)
    between: list[Any] = []

    def progress(*_: object) -> None:
        between.append(reranker.score(index, QUERIES[:1], ROWS[:1])[0])

    found = reranker.score(index, QUERIES, ROWS, progress)

    assert np.concatenate(found).tolist() == np.concatenate(expected).tolist()
    assert [one.tolist() for one in between] == [expected[0].tolist()] * 6


@pytest.mark.parametrize(("labels", "tokens"), [(1, 32), (2, 16)])
def test_onnx_gives_the_same_scores(
    tmp_path: Path, index: IndexFolder, labels: int, tokens: int
) -> None:
    name = str(tiny_reranker(tmp_path, labels=labels, tokens=tokens))

    light = open_cross_encoder(
        name, None, EncodeConfig(few_texts=True, device="cpu"), pairs=10
    )
    scores = light.score(index, QUERIES, ROWS)

    by_torch = open_cross_encoder(name, None, F32)
    expected = by_torch.score(index, QUERIES, ROWS)
    assert np.concatenate(scores) == pytest.approx(np.concatenate(expected), abs=1e-4)
    assert (light.backend, by_torch.backend) == ("onnx", "torch")
    assert light.default_depth == by_torch.default_depth


def test_torch_scores_many_pairs_and_other_precisions(
    folder: Path, reranker: CrossEncoder, index: IndexFolder
) -> None:
    few = EncodeConfig(few_texts=True, device="cpu")
    bfloat16 = EncodeConfig(few_texts=True, device="cpu", precision=Precision.BFLOAT16)
    # over 1.5 s
    assert open_cross_encoder(str(folder), None, few, pairs=10**6).backend == "torch"

    close = open_cross_encoder(str(folder), None, bfloat16, pairs=10)

    assert close.backend == "torch"
    expected = np.concatenate(reranker.score(index, QUERIES, ROWS))
    assert np.concatenate(close.score(index, QUERIES, ROWS)) == pytest.approx(
        expected, abs=0.05
    )


# --- the folder


def test_scores_that_are_no_numbers_are_one_clear_line(
    tmp_path: Path, index: IndexFolder
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_reranker(tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] += float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(
        ModelError, match="gives scores that are not finite, in float32"
    ):
        open_cross_encoder(str(folder), None, F32).score(index, QUERIES, ROWS)


# --- which folders open


def loaded(
    folder: Path, query_tokens: int = 0, candidate_tokens: int = 0
) -> RerankerParts:
    """Open a folder, which says how it reads, with other limits of tokens or its own."""
    return load_reranker(
        folder, read_reranker_spec(folder, query_tokens, candidate_tokens)
    )


def test_a_folder_says_how_it_reads(folder: Path, tmp_path: Path) -> None:
    plain = tiny_reranker(tmp_path, positions=512)
    (plain / NAME).unlink()

    parts = loaded(folder)

    assert (parts.spec.query_tokens, parts.spec.candidate_tokens, parts.typed) == (
        32,
        32,
        True,
    )
    assert loaded(folder, query_tokens=16).spec.tokens == 16 + 32
    assert loaded(plain).spec == RerankerSpec()  # 256 + 256


def test_an_encoder_is_refused_and_told_how_to_train_it(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "bert")

    with pytest.raises(ModelError, match=f"citerec train-reranker --model {folder}"):
        loaded(folder)


def test_a_folder_of_no_whole_cross_encoder_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    bare, mixed = (
        Path(shutil.copytree(folder, tmp_path / name)) for name in ("bare", "mixed")
    )
    (bare / "model.safetensors").unlink()
    shutil.copy(tiny_bert(tmp_path / "other", layers=1) / "model.safetensors", mixed)

    with pytest.raises(ModelError, match="holds no weights"):
        loaded(bare)
    with pytest.raises(ModelError, match=r"lack \d+ of the tensors"):
        loaded(mixed)
    with pytest.raises(ModelError, match="3 labels"):
        loaded(tiny_reranker(tmp_path / "three", labels=3))
    with pytest.raises(
        ModelError, match=r"128 positions, fewer than the 132 tokens .* fewer tokens"
    ):
        loaded(folder, query_tokens=100, candidate_tokens=32)


# --- how deep


def sized(layers: int, hidden: int) -> SimpleNamespace:
    return SimpleNamespace(
        num_hidden_layers=layers, hidden_size=hidden, intermediate_size=4 * hidden
    )


def test_a_small_model_reads_deeper_than_a_large_one() -> None:
    minilm, bert = sized(6, 384), sized(12, 768)
    short, full = RerankerSpec(query_tokens=128, candidate_tokens=64), RerankerSpec()

    # T = 64: 1 layer (2 · 64 (4 · 32² + 2 · 32 · 128) + 4 · 64² · 32) = 1,572,864 + 524,288
    assert pair_flops(64, sized(1, 32)) == 2_097_152
    assert pair_flops(128 + 64, minilm) == pytest.approx(4.4e9, rel=0.01)
    assert default_depth(short, minilm, "cpu") == 100
    # 2 * 0.15 TFLOP/s * 1.5 s / 13.3 GFLOP = 33.8
    assert default_depth(full, minilm, "cpu") == 20
    assert default_depth(full, bert, "cpu") == 10
    assert default_depth(full, bert, "cuda") == 1000
    assert default_depth(full, bert, "cpu", cores=32) == 50  # 7.2 TFLOP / 97 GFLOP = 74
