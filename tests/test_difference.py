"""Models that are stored as a difference to a base model: what is stored, and that they open as whole models do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny import tiny_bert, tiny_reranker

from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.encode.difference import (
    ADDED,
    LEFT,
    RECORD,
    RIGHT,
    WEIGHTS,
    WHOLE,
    difference,
    read_state,
    write_difference,
)
from citerec.encode.light import LightParts
from citerec.encode.opening import EncoderChangedError, open_encoder, reopen
from citerec.encode.source import find_model
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.errors import ConfigError, ModelDamagedError, ModelError
from citerec.io import model_faults, seal_model
from citerec.rerank.cross_encoder import open_cross_encoder
from citerec.rerank.model import load_reranker
from citerec.train.reranker import load_base
from citerec.train.settings import RerankerTraining
from citerec.types import Query

SPEC = EncoderSpec(max_tokens=64, pooling=Pooling.MEAN, similarity=Similarity.COSINE)
TORCH = EncodeConfig(precision=Precision.FLOAT32, backend=Backend.TORCH, threads=1)
LIGHT = EncodeConfig(few_texts=True)
HALF = 2**-11  # relative rounding error of float16
TEXTS = [
    Query(id="a", title="Neural ranking", abstract="We search the index with a language model."),
    Query(id="b", title="Citation graph"),
]

Write = Callable[..., Path]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base model."""
    return tiny_bert(tmp_path_factory.mktemp("models") / "base", spec=SPEC)


@pytest.fixture(scope="module")
def encoder(base: Path) -> Path:
    """A trained encoder: the base model, of which the last layer was moved."""
    return moved(base, base.parent / "encoder", only="layer.1")


@pytest.fixture(scope="module")
def reranker(base: Path) -> Path:
    """A trained cross-encoder whose body is near the base model."""
    folder = tiny_reranker(base.parent / "reranker", scale=2.0, offset=-1.0)
    return moved(folder, folder, near=base)


@pytest.fixture(scope="module")
def write(base: Path) -> Write:
    """Write a model as a difference to the base model."""

    def written(trained: Path, output: Path, rank: int = 0, share: float = 1.0) -> Path:
        training = {"indexes": [{"name": "vis", "corpus_sha256": "c", "splits_sha256": "s"}]}
        write_difference(
            trained,
            output,
            rank=rank,
            share=share,
            base=str(base),
            training=training,
            card="# A model\n",
        )
        return output

    return written


def moved(source: Path, target: Path, *, only: str = "", near: Path | None = None) -> Path:
    """Write a model whose weights are those of another one, each moved a little."""
    from safetensors.numpy import save_file

    state, rng = read_state(source), np.random.default_rng(0)
    origin = {f"bert.{name}": tensor for name, tensor in read_state(near).items()} if near else {}
    state |= {name: tensor for name, tensor in origin.items() if name in state}
    for name, tensor in state.items():
        if only in name:
            state[name] = tensor + rng.normal(0, 0.02, tensor.shape).astype(np.float32)
    if target != source:
        shutil.copytree(source, target)
    save_file(state, target / "model.safetensors", {"format": "pt"})
    return target


def stored_names(folder: Path) -> set[str]:
    from safetensors.numpy import load_file

    return set(load_file(folder / WEIGHTS))


# --- what is stored


@given(
    rows=st.integers(1, 9), columns=st.integers(1, 9), rank=st.integers(0, 9), seed=st.integers(0)
)
@settings(max_examples=60, deadline=None)
def test_factors_are_the_nearest_matrix_of_their_rank(
    rows: int, columns: int, rank: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(rows, columns)).astype(np.float32)
    trained = base + rng.normal(size=(rows, columns)).astype(np.float32)

    stored = difference({"w": trained}, {"w": base}, "", rank=rank, share=1.0)

    if "w" + LEFT in stored:
        found = stored["w" + LEFT].astype(float) @ stored["w" + RIGHT].astype(float)
        u, s, v = np.linalg.svd((trained - base).astype(float), full_matrices=False)
        nearest = (u[:, :rank] * s[:rank]) @ v[:rank]
        assert sum(array.size for array in stored.values()) < trained.size
    else:
        found, nearest = stored["w" + ADDED].astype(float), trained - base
        assert rank == 0 or rank * (rows + columns) >= rows * columns
    assert np.abs(found - nearest).max() <= 20 * HALF * np.linalg.norm(trained - base)


def test_at_full_rank_the_trained_weights_come_back_up_to_float16(
    encoder: Path, base: Path, tmp_path: Path, write: Write
) -> None:
    trained, before = read_state(encoder), read_state(base)

    whole = read_state(write(encoder, tmp_path / "whole"))
    factored = read_state(write(encoder, tmp_path / "factored", rank=15))

    assert whole.keys() == factored.keys() == trained.keys()
    for name, tensor in trained.items():
        moves = np.abs(tensor - before[name]).max()
        assert np.abs(whole[name] - tensor).max() <= HALF * moves + 1e-7
        assert np.abs(factored[name] - tensor).max() <= moves


def test_weights_that_did_not_change_take_no_room(
    encoder: Path, tmp_path: Path, write: Write
) -> None:
    folder = write(encoder, tmp_path / "out", rank=4)

    names = stored_names(folder)
    assert names and all(name.startswith("encoder.layer.1.") for name in names)
    assert "encoder.layer.1.attention.self.query.weight" + LEFT in names
    assert "encoder.layer.1.output.LayerNorm.weight" + ADDED in names
    assert (folder / WEIGHTS).stat().st_size * 4 < (encoder / "model.safetensors").stat().st_size
    assert not list(folder.glob("*token*")) and not list(folder.glob("vocab*"))
    assert model_faults(folder) == []


def test_a_head_is_stored_whole(reranker: Path, tmp_path: Path, write: Write) -> None:
    names = stored_names(write(reranker, tmp_path / "out", rank=4))

    whole = {name for name in names if name.endswith(WHOLE)}
    assert whole == {f"classifier.weight{WHOLE}", f"classifier.bias{WHOLE}"}
    assert "bert.encoder.layer.0.output.dense.weight" + LEFT in names


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_share_averages_with_the_base_model(
    encoder: Path, base: Path, tmp_path: Path, write: Write, share: float
) -> None:
    trained, before = read_state(encoder), read_state(base)

    averaged = read_state(write(encoder, tmp_path / "out", share=share))

    for name, tensor in averaged.items():
        expected = before[name] + share * (trained[name] - before[name])
        assert np.abs(tensor - expected).max() <= (1e-4 if share else 0)


def test_writing_twice_gives_the_same_bytes(encoder: Path, tmp_path: Path, write: Write) -> None:
    one, two = (write(encoder, tmp_path / name, rank=4) for name in ("one", "two"))

    assert {f.name: f.read_bytes() for f in one.iterdir()} == {
        f.name: f.read_bytes() for f in two.iterdir()
    }


def test_what_cannot_be_stored_is_one_clear_line(
    encoder: Path, base: Path, tmp_path: Path, write: Write
) -> None:
    with pytest.raises(ConfigError, match=r"share in \[0, 1\], got 0 and 2"):
        write(encoder, tmp_path / "out", share=2)
    with pytest.raises(ModelError, match="expected a model of citerec"):
        write(tiny_bert(tmp_path / "bare"), tmp_path / "out")
    other = tiny_bert(tmp_path / "other", words=["maps"], spec=SPEC)
    with pytest.raises(ModelError, match="another tokenizer than its base model"):
        write(other, tmp_path / "out")
    huge = {"w": np.full(3, 1e6, np.float32)}
    with pytest.raises(ModelError, match="float16 cannot hold"):
        difference(huge, {}, "", rank=0, share=1)
    assert not (tmp_path / "out").exists()


# --- opening: an encoder


@pytest.mark.parametrize("config", [TORCH, LIGHT])
def test_it_gives_the_vectors_of_the_trained_model(
    encoder: Path, tmp_path: Path, write: Write, config: EncodeConfig
) -> None:
    folder = write(encoder, tmp_path / "out")

    opened = open_encoder(str(folder), config)

    assert isinstance(opened.parts, LightParts) == config.few_texts
    assert opened.spec == SPEC
    expected = open_encoder(str(encoder), TORCH).encode(TEXTS)
    assert np.abs(opened.encode(TEXTS) - expected).max() < 1e-4


def test_sentence_transformers_gives_the_same_vectors(
    encoder: Path, base: Path, tmp_path: Path, write: Write
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as Pool
    from sentence_transformers.sentence_transformer.modules import Transformer

    modules = [Transformer(str(encoder), max_seq_length=64), Pool(32)]
    oracle = SentenceTransformer(modules=modules, device="cpu")

    vectors = open_encoder(str(write(encoder, tmp_path / "out")), TORCH).encode(TEXTS)

    texts = [f"{q.title}[SEP]{q.abstract}" for q in TEXTS]
    expected = oracle.encode(texts, normalize_embeddings=True)
    assert np.abs(vectors - expected).max() < 1e-4


def test_nothing_of_it_is_converted_into_the_cache(
    encoder: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    open_encoder(str(write(encoder, tmp_path / "out")), TORCH)

    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_an_index_recognises_its_encoder(encoder: Path, tmp_path: Path, write: Write) -> None:
    recorded = open_encoder(str(write(encoder, tmp_path / "out", rank=4)), LIGHT).fingerprint

    assert reopen(recorded, tmp_path, TORCH).fingerprint == recorded

    write(encoder, tmp_path / "out", rank=3)
    with pytest.raises(EncoderChangedError, match="trained again or replaced"):
        reopen(recorded, tmp_path)


# --- opening: a cross-encoder


def test_it_gives_the_scores_of_the_trained_cross_encoder(
    reranker: Path, tmp_path: Path, write: Write
) -> None:
    folder = write(reranker, tmp_path / "out")

    parts, whole = load_reranker(folder), load_reranker(reranker)

    assert parts.spec == whole.spec
    assert parts.spec.is_calibrated
    inputs = whole.tokenizer(["neural ranking"], ["citation graph"], return_tensors="pt")
    found, expected = (p.model(**inputs).logits[0, 0].item() for p in (parts, whole))
    assert found == pytest.approx(expected, abs=0.02)
    assert open_cross_encoder(str(folder), None, TORCH).fingerprint


def test_it_can_be_trained_further(reranker: Path, tmp_path: Path, write: Write) -> None:
    folder = write(reranker, tmp_path / "out")
    config = RerankerTraining(model=str(folder), query_tokens=32, candidate_tokens=32)

    parts = load_base(folder, config)

    head = read_state(reranker)["classifier.weight"]
    assert np.abs(parts.model.classifier.weight.detach().numpy() - head).max() < 0.01


# --- damage


def test_another_base_model_is_one_clear_line(
    encoder: Path, base: Path, tmp_path: Path, write: Write
) -> None:
    folder = write(encoder, tmp_path / "out")
    record = json.loads((folder / RECORD).read_bytes())
    other = tiny_bert(tmp_path / "other", seed=5)
    (folder / RECORD).write_text(json.dumps({**record, "base": str(other)}))
    seal_model(folder)

    with pytest.raises(ModelError, match=r"is a difference to .* but .*other has the weights"):
        find_model(str(folder))


@pytest.mark.parametrize("named", ["specter", "models/base", "/no/where", 3])
def test_a_base_model_is_minilm_or_a_whole_path(
    encoder: Path, tmp_path: Path, write: Write, named: object
) -> None:
    folder = write(encoder, tmp_path / "out")
    record = json.loads((folder / RECORD).read_bytes())
    (folder / RECORD).write_text(json.dumps({**record, "base": named}))
    seal_model(folder)

    with pytest.raises(ModelError, match="no base model"):
        open_encoder(str(folder))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2, "dtype": "float16"}'])
def test_a_record_that_cannot_be_parsed_is_one_clear_line(
    encoder: Path, tmp_path: Path, write: Write, content: str
) -> None:
    folder = write(encoder, tmp_path / "out")
    (folder / RECORD).write_text(content)
    seal_model(folder)

    with pytest.raises(ModelError, match=r"difference.json cannot be parsed"):
        open_encoder(str(folder))


def test_a_damaged_file_is_found_when_it_is_opened(
    encoder: Path, tmp_path: Path, write: Write
) -> None:
    folder = write(encoder, tmp_path / "out")
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-1])

    with pytest.raises(ModelDamagedError, match=r"difference\.safetensors"):
        open_encoder(str(folder))

    seal_model(folder)  # by somebody who does not see that it is damaged
    for config in (TORCH, LIGHT):
        with pytest.raises(ModelError, match=r"its weights cannot be read: .*does not end where"):
            open_encoder(str(folder), config)


def test_factors_that_do_not_fit_the_base_model_are_one_clear_line(
    encoder: Path, tmp_path: Path, write: Write
) -> None:
    from safetensors.numpy import load_file, save_file

    folder = write(encoder, tmp_path / "out", rank=4)
    stored = load_file(folder / WEIGHTS)
    [name, *_] = sorted(name for name in stored if name.endswith(RIGHT))
    save_file({**stored, name: stored[name][:, :-1].copy()}, folder / WEIGHTS)
    seal_model(folder)

    with pytest.raises(ModelError, match=r"its weights cannot be read: the tensor .*\.right is of"):
        open_encoder(str(folder))


def test_a_flipped_byte_is_found_by_verify(encoder: Path, tmp_path: Path, write: Write) -> None:
    folder = write(encoder, tmp_path / "out")
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)

    assert model_faults(folder) == [f"{WEIGHTS} is not what was written"]
