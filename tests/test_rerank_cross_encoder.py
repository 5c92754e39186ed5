"""A cross-encoder at work, held against plain transformers and sentence-transformers."""

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.tiny import WORDS, tiny_reranker

from citerec.build import BuildConfig, build_index
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import ModelError
from citerec.folder import IndexFolder, open_index
from citerec.rerank import cross_encoder
from citerec.rerank.cross_encoder import CrossEncoder, open_cross_encoder
from citerec.rerank.model import RerankerParts
from citerec.rerank.spec import NAME
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
    lines = [
        json.dumps({"id": str(n), "title": WORDS[n % 9], "abstract": " ".join(words[:n])})
        for n, words in enumerate(chance.choice(WORDS, (60, 60)).tolist())
    ]
    folder = tmp_path_factory.mktemp("made")
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    build_index(folder / "corpus.jsonl", folder / "index", BuildConfig())
    return open_index(folder / "index")


def all_pairs(index: IndexFolder) -> list[tuple[str, str]]:
    papers = index.papers
    return [
        (pair_text(query), pair_text(papers[row]))
        for query, rows in zip(QUERIES, ROWS, strict=True)
        for row in rows.tolist()
    ]


def plain_transformers(
    folder: Path, pairs: Sequence[tuple[str, str]], tokens: int
) -> npt.NDArray[np.float32]:
    """Return the logits of each pair, read alone: each side, of known words, cut to `tokens` with special ones."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    with torch.no_grad():
        found = [
            model(
                **tokenizer(
                    [" ".join(query.split()[: tokens - 2])],
                    [" ".join(candidate.split()[: tokens - 1])],
                    return_tensors="pt",
                )
            ).logits[0]
            for query, candidate in pairs
        ]
    return torch.stack(found).numpy()


# --- what comes out


def test_scores_are_the_logits_of_plain_transformers(
    folder: Path, reranker: CrossEncoder, index: IndexFolder
) -> None:
    found = reranker.score(index, QUERIES, ROWS)

    assert [scores.shape for scores in found] == [(4,), (0,), (2,)]
    assert {scores.dtype for scores in found} == {np.dtype(np.float32)}
    expected = plain_transformers(folder, all_pairs(index), tokens=32)[:, 0]
    assert np.concatenate(found) == pytest.approx(expected, abs=1e-5)


def test_scores_are_those_of_sentence_transformers(
    tmp_path: Path, sample_index: IndexFolder
) -> None:
    from sentence_transformers import CrossEncoder as Theirs

    name = str(tiny_reranker(tmp_path, positions=1024, tokens=448))
    ours = open_cross_encoder(name, None, F32)
    queries = [Query(id="1", title="neural ranking", abstract="of text"), Query(id="2", title="a")]
    rows = [np.arange(3, dtype=np.int32)] * 2
    index = sample_index

    found = ours.score(index, queries, rows)

    import torch

    papers = index.papers.at(range(3))
    pairs = [(pair_text(q), pair_text(papers[row])) for q in queries for row in range(3)]
    theirs: Any = Theirs(name, device="cpu", max_length=1024, activation_fn=torch.nn.Identity())
    assert np.concatenate(found) == pytest.approx(theirs.predict(pairs), abs=1e-5)


def test_of_two_labels_the_score_is_the_second_minus_the_first(
    tmp_path: Path, index: IndexFolder
) -> None:
    folder = tiny_reranker(tmp_path, labels=2)

    found = open_cross_encoder(str(folder), None, F32).score(index, QUERIES, ROWS)

    logits = plain_transformers(folder, all_pairs(index), tokens=32)
    assert np.concatenate(found) == pytest.approx(logits[:, 1] - logits[:, 0], abs=1e-5)


def test_a_probability_is_the_calibrated_sigmoid(reranker: CrossEncoder) -> None:
    scores = np.array([2.0, 6.0, -2.0, 400.0, -400.0], np.float32)

    found = reranker.to_unit_interval(scores)

    # 0.5 · 2 - 1 = 0; then ± 2: 1 / (1 + e^-2) = 0.8808
    assert found == pytest.approx([0.5, 0.880797, 0.119203, 1.0, 0.0], abs=1e-6)


def test_no_queries_get_no_scores(reranker: CrossEncoder, index: IndexFolder) -> None:
    assert reranker.score(index, [], []) == []
    assert [len(s) for s in reranker.score(index, QUERIES[:1], [ROWS[1]])] == [0]


def test_any_text_at_all_gets_a_score(reranker: CrossEncoder, index: IndexFolder) -> None:
    odd = [".", "\0", "half a pair \ud83d", "日本語 🎉", "graph " * 900]
    queries = [Query(id=str(n), title=title) for n, title in enumerate(odd)]

    found = reranker.score(index, queries, [ROWS[0]] * len(odd))

    assert np.isfinite(found).all()


# --- whatever the company


def test_batches_threads_and_order_hardly_change_a_score(
    folder: Path, reranker: CrossEncoder, index: IndexFolder
) -> None:
    rows = np.random.default_rng(0).permutation(len(index.papers)).astype(np.int32)[:60]
    (expected,) = reranker.score(index, QUERIES[:1], [rows])
    assert expected.std() > 1e-3

    for tokens, threads in ((1, 1), (256, 1), (256, 2), (100_000, 2)):
        how = EncodeConfig(precision=Precision.FLOAT32, batch_tokens=tokens, threads=threads)
        (found,) = open_cross_encoder(str(folder), None, how).score(
            index, QUERIES[:1], [rows[::-1]]
        )

        assert found[::-1] == pytest.approx(expected, abs=1e-4)


def test_many_pairs_are_read_in_parts(
    reranker: CrossEncoder, index: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, int]] = []
    expected = reranker.score(index, QUERIES, ROWS)
    monkeypatch.setattr(cross_encoder, "AT_ONCE", 4)  # of six pairs

    found = reranker.score(index, QUERIES, ROWS, lambda *what: told.append(what))

    assert np.concatenate(found) == pytest.approx(np.concatenate(expected), abs=1e-4)
    assert told == [("reranking", 4, 6), ("reranking", 6, 6)]


def test_bfloat16_runs_and_is_close(
    folder: Path, reranker: CrossEncoder, index: IndexFolder
) -> None:
    how = EncodeConfig(precision=Precision.BFLOAT16)

    found = open_cross_encoder(str(folder), None, how).score(index, QUERIES, ROWS)

    expected = np.concatenate(reranker.score(index, QUERIES, ROWS))
    assert np.concatenate(found) == pytest.approx(expected, abs=0.05)


@pytest.mark.skipif(not find_spec("openvino"), reason="openvino is not installed")
@pytest.mark.parametrize(("labels", "tokens"), [(1, 32), (2, 16)])
def test_openvino_gives_the_same_scores(
    tmp_path: Path, index: IndexFolder, labels: int, tokens: int
) -> None:
    name = str(tiny_reranker(tmp_path, labels=labels, tokens=tokens))
    how = EncodeConfig(precision=Precision.FLOAT32, backend=Backend.OPENVINO)

    reranker = open_cross_encoder(name, None, how)
    found = reranker.score(index, QUERIES, ROWS)

    expected = open_cross_encoder(name, None, F32).score(index, QUERIES, ROWS)
    assert np.concatenate(found) == pytest.approx(np.concatenate(expected), abs=1e-3)
    assert (reranker.backend, reranker.precision) == ("openvino", "float32")
    assert not sys.modules["openvino_telemetry"]  # with which it would report to its makers


def test_auto_takes_openvino_where_it_is_installed(folder: Path) -> None:
    how = EncodeConfig(device="cpu", backend=Backend.AUTO, precision=Precision.FLOAT32)

    reranker = open_cross_encoder(str(folder), None, how)

    assert reranker.backend == ("openvino" if find_spec("openvino") else "torch")
    assert reranker.device == "cpu"


# --- the tokens of candidates


def test_a_query_that_is_asked_about_part_by_part_is_cut_once(
    folder: Path, index: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = open_cross_encoder(str(folder), None, F32)
    (expected,) = reranker.score(index, QUERIES[:1], [ROWS[0]])
    asked: list[str] = []
    whole = RerankerParts.cut

    def cut(parts: RerankerParts, texts: Sequence[str]) -> list[list[int]]:
        asked.extend(texts)
        return whole(parts, texts)

    monkeypatch.setattr(RerankerParts, "cut", cut)
    parts = [reranker.score(index, QUERIES[:2], [ROWS[0][i : i + 1], ROWS[1]]) for i in range(4)]

    assert np.concatenate([scores for scores, _ in parts]) == pytest.approx(expected, abs=1e-4)
    assert asked == [pair_text(QUERIES[1])]


# --- the folder


def test_a_relative_folder_may_lie_in_the_index(index: IndexFolder) -> None:
    tiny_reranker(index.models / "own")

    reranker = open_cross_encoder("models/own", index, F32)

    assert reranker.name == "models/own"
    assert len(reranker.fingerprint) == 64


def test_scores_that_are_no_numbers_are_one_clear_line(tmp_path: Path, index: IndexFolder) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_reranker(tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] += float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(ModelError, match="gives scores that are not finite, in float32"):
        open_cross_encoder(str(folder), None, F32).score(index, QUERIES, ROWS)


def test_a_folder_without_our_word_reads_256_and_256_tokens(tmp_path: Path) -> None:
    folder = tiny_reranker(tmp_path, positions=512)
    (folder / NAME).unlink()

    assert open_cross_encoder(str(folder), None, F32).spec.tokens == 512
