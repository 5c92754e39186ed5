"""Cross-encoders run by NumPy, without torch: held against transformers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.tiny import tiny_bert, tiny_reranker

from citerec.config import CrossEncoderConfig, RerankConfig
from citerec.encode.config import DTYPE_VARIABLE, Backend, EncodeConfig, Precision
from citerec.encode.difference.write import write_difference
from citerec.errors import ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.rerank import depth as depths
from citerec.rerank.cross_encoder import CrossEncoder, open_reranker
from citerec.rerank.light import LightRerankerParts
from citerec.rerank.opening import open_cascade
from citerec.types import Query

FEW = EncodeConfig(few_texts=True, backend=Backend.AUTO)
TORCH = EncodeConfig(precision=Precision.FLOAT32)
QUERIES = [
    Query(id="long", title="Neural citation ranking", abstract="text search by a model, " * 40),
    Query(id="short", title="Café β-Networks 文献 \ud800"),
    Query(id="one", title="a"),
]
ROWS = [np.arange(9, dtype=np.int32), np.array([3], np.int32), np.array([7, 8], np.int32)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_reranker(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "model"))


def is_light(model: CrossEncoder) -> bool:
    return isinstance(model.parts, LightRerankerParts) and model.backend == "numpy"


def change(file: Path, **content: object) -> None:
    new = {**json.loads(file.read_text()), **content}
    file.write_text(json.dumps({key: value for key, value in new.items() if value is not ...}))


# --- scores


def as_difference(model: Path, folder: Path) -> Path:
    base, output = tiny_bert(folder / "base"), folder / "difference"
    write_difference(model, output, rank=2, share=1.0, base=str(base), training={}, card="")
    return output


def as_it_is(model: Path, folder: Path) -> Path:
    return model


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("stored", [as_it_is, as_difference])
def test_scores_are_those_of_transformers(
    tmp_path: Path,
    sample_index: IndexFolder,
    labels: int,
    stored: Callable[[Path, Path], Path],
) -> None:
    model = stored(tiny_reranker(tmp_path / "model", labels=labels), tmp_path)

    light, torch = open_reranker(str(model), None, FEW), open_reranker(str(model), None, TORCH)

    assert is_light(light) and not is_light(torch)
    assert light.fingerprint == torch.fingerprint
    found, expected = (m.score(sample_index, QUERIES, ROWS) for m in (light, torch))
    assert np.concatenate(found) == pytest.approx(np.concatenate(expected), abs=1e-5)
    assert np.concatenate(found).std() > 1e-3  # far more than the tolerance


def test_pairs_are_read_as_torchs_side_reads_them(folder: Path) -> None:
    light, torch = (
        open_reranker(str(folder), None, how, query_tokens=8).parts for how in (FEW, TORCH)
    )

    texts = ["", "Café β-Networks 文献 \ud800", "[SEP] of [CLS] a" * 300]
    assert light.cut(texts) == torch.cut(texts)
    assert light.cut([]) == []
    assert (light.spec, light.specials) == (torch.spec, torch.specials)
    assert (light.typed, light.vocabulary) == (torch.typed, torch.vocabulary)
    assert depths.pair_flops(light) == depths.pair_flops(torch)


def test_a_model_that_reads_no_token_types(copied: Path, sample_index: IndexFolder) -> None:
    change(copied / "tokenizer_config.json", model_input_names=["input_ids", "attention_mask"])

    light, torch = open_reranker(str(copied), None, FEW), open_reranker(str(copied), None, TORCH)

    assert is_light(light) and not light.parts.typed
    found, expected = (m.score(sample_index, QUERIES, ROWS)[0] for m in (light, torch))
    assert found == pytest.approx(expected, abs=1e-4)


def test_other_pairs_and_threads_change_no_bit(folder: Path, sample_index: IndexFolder) -> None:
    together = open_reranker(str(folder), None, FEW).score(sample_index, QUERIES, ROWS)

    one = open_reranker(
        str(folder), None, EncodeConfig(few_texts=True, threads=1, backend=Backend.AUTO)
    )
    alone = [
        one.score(sample_index, [query], [rows[n : n + 1]])[0]
        for query, rows in zip(QUERIES, ROWS, strict=True)
        for n in range(len(rows))
    ]

    assert is_light(one)
    assert np.concatenate(together).tobytes() == np.concatenate(alone).tobytes()


def test_scores_that_are_no_numbers_are_one_clear_line(
    copied: Path, sample_index: IndexFolder
) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    weights["classifier.bias"][:] = np.nan
    save_file(weights, copied / "model.safetensors", {"format": "pt"})

    with pytest.raises(ModelError, match="not finite"):
        open_reranker(str(copied), None, FEW).score(sample_index, QUERIES, ROWS)


# --- when NumPy runs it


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(RerankConfig(device="cpu"), id="device"),
        pytest.param(RerankConfig(precision="float32"), id="precision"),
        pytest.param(RerankConfig(backend="torch"), id="backend"),
        pytest.param(
            RerankConfig(cross_encoders=(CrossEncoderConfig(depth=1_000_000),)), id="many-pairs"
        ),
    ],
)
def test_torch_runs_what_is_requested_of_it(
    folder: Path, sample_index: IndexFolder, config: RerankConfig
) -> None:
    stages = tuple(
        CrossEncoderConfig(model=str(folder), depth=stage.depth) for stage in config.cross_encoders
    )
    plain = RerankConfig(cross_encoders=(CrossEncoderConfig(model=str(folder)),))
    requested = RerankConfig(
        cross_encoders=stages,
        device=config.device,
        precision=config.precision,
        backend=config.backend,
    )

    found = [
        open_cascade(sample_index, one, few_queries=True).rerankers[0].settings["backend"]
        for one in (plain, requested)
    ]

    assert found == ["numpy", "torch"]


def test_of_many_queries_torch_scores_the_pairs(folder: Path, sample_index: IndexFolder) -> None:
    plain = RerankConfig(cross_encoders=(CrossEncoderConfig(model=str(folder)),), device="cpu")

    cascade = open_cascade(sample_index, plain)

    assert cascade.rerankers[0].settings["backend"] in {"torch", "openvino"}


@pytest.mark.parametrize(("named", "light"), [("bfloat16", False), ("float32", True)])
def test_the_precision_of_the_environment_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: str, light: bool
) -> None:
    monkeypatch.setenv(DTYPE_VARIABLE, named)

    model = open_reranker(str(folder), None, FEW)

    assert (is_light(model), model.precision) == (light, named)


def test_a_gpu_is_used_by_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("citerec.machine.GPU_FILES", ("null",))

    assert not is_light(open_reranker(str(folder), None, FEW))


def test_the_bound_is_the_work_that_the_default_depth_affords(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = depths.pair_flops(open_reranker(str(folder), None, FEW).parts)
    monkeypatch.setattr(depths, "CORE_FLOPS", work / depths.SECONDS)
    one_core = EncodeConfig(few_texts=True, backend=Backend.AUTO, threads=30)  # 30 pairs

    found = [is_light(open_reranker(str(folder), None, one_core, pairs=n)) for n in (0, 30, 31)]

    assert found == [True, True, False]


@pytest.mark.parametrize(("stated", "light"), [(20, True), (1_000_000, False)])
def test_the_depth_that_a_folder_states_counts(copied: Path, stated: int, light: bool) -> None:
    change(copied / "citerec_reranker.json", depth=stated)

    assert is_light(open_reranker(str(copied), None, FEW)) == light


# --- what only torch can run


def another_activation(folder: Path) -> None:
    change(folder / "config.json", hidden_act="gelu_new")


def other_weights(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def another_tokenizer(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["pair"].pop()
    (folder / "tokenizer.json").write_text(json.dumps(content))


@pytest.mark.parametrize("changed", [another_activation, other_weights, another_tokenizer])
def test_torch_runs_what_numpy_cannot(
    copied: Path, sample_index: IndexFolder, changed: Callable[[Path], None]
) -> None:
    changed(copied)

    model = open_reranker(str(copied), None, FEW)

    assert (is_light(model), model.backend) == (False, "torch")
    assert np.isfinite(model.score(sample_index, QUERIES[:1], ROWS[:1])[0]).all()


def three_labels(folder: Path) -> None:
    change(folder / "config.json", id2label={"0": "a", "1": "b", "2": "c"}, label2id=...)


def no_head(folder: Path) -> None:
    shutil.rmtree(folder)
    tiny_bert(folder)


def few_positions(folder: Path) -> None:
    change(folder / "citerec_reranker.json", query_tokens=100)


@pytest.mark.parametrize(
    ("changed", "message"),
    [(no_head, "was not trained to rerank"), (few_positions, "128 positions, fewer than the 132")],
)
def test_a_model_that_cannot_rerank_is_one_clear_line(
    copied: Path, changed: Callable[[Path], None], message: str
) -> None:
    changed(copied)

    with pytest.raises(ModelError, match=message):
        open_reranker(str(copied), None, FEW)


def test_labels_that_do_not_fit_the_weights_are_an_error(copied: Path) -> None:
    three_labels(copied)

    with pytest.raises(ModelError):
        open_reranker(str(copied), None, FEW)


def test_a_limit_that_leaves_too_little_is_one_clear_line(folder: Path) -> None:
    with pytest.raises(ConfigError, match="leave 28 for the candidate"):
        open_reranker(str(folder), None, FEW, query_tokens=100)
