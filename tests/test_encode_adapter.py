"""SPECTER2's kind of adapter, held against its formula, written out in numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from support.adapters import write_adapter
from support.tiny import tiny_bert
from transformers import AutoModel, AutoTokenizer

from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.opening import open_encoder
from citerec.encode.spec import EncoderSpec
from citerec.errors import ModelError
from citerec.types import Paper

F32 = EncodeConfig(precision=Precision.FLOAT32)
SPEC = EncoderSpec(max_tokens=128)
Array = npt.NDArray[Any]


def norm(x: Array, layer: dict[str, Array], name: str) -> Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + 1e-12)
    return scaled * layer[f"{name}.weight"] + layer[f"{name}.bias"]


def linear(x: Array, layer: dict[str, Array], name: str) -> Array:
    return x @ layer[f"{name}.weight"].T + layer[f"{name}.bias"]


def through_layer(x: Array, layer: dict[str, Array], adapter: dict[str, Array]) -> Array:
    """One layer of a BERT of two heads, with the bottleneck as `adapters` computes "pfeiffer"."""
    width = x.shape[-1] // 2
    heads: list[Array] = []
    for head in range(2):
        part = slice(head * width, (head + 1) * width)
        q, k, v = (
            linear(x, layer, f"attention.self.{n}")[:, part] for n in ("query", "key", "value")
        )
        weights = np.exp(q @ k.T / np.sqrt(width))
        heads.append(weights / weights.sum(-1, keepdims=True) @ v)
    attended = linear(np.hstack(heads), layer, "attention.output.dense")
    attended = norm(attended + x, layer, "attention.output.LayerNorm")
    wide = torch.from_numpy(linear(attended, layer, "intermediate.dense"))
    dense = linear(torch.nn.functional.gelu(wide).numpy(), layer, "output.dense")
    normed = norm(dense + attended, layer, "output.LayerNorm")  # original_ln_before
    down = np.maximum(linear(normed, adapter, "down.0"), 0)
    up = linear(down, adapter, "up") + dense  # residual_before_ln: what the feed-forward part gave
    return norm(up + attended, layer, "output.LayerNorm")  # original_ln_after


def layer_of(tensors: dict[str, torch.Tensor], before: str) -> dict[str, Array]:
    return {
        k.removeprefix(before): v.double().numpy()
        for k, v in tensors.items()
        if k.startswith(before)
    }


def test_the_vectors_are_those_of_the_formula(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path, spec=SPEC)
    adapter = write_adapter(folder / "adapter")
    model = AutoModel.from_pretrained(folder)
    ids = AutoTokenizer.from_pretrained(folder)("citation graph[SEP]text")["input_ids"]

    found = open_encoder(str(folder), F32).encode(
        [Paper(id="1", title="citation graph", abstract="text")]
    )

    with torch.no_grad():
        x = model.embeddings(torch.tensor([ids]))[0].double().numpy()
    for n in range(2):
        layer = layer_of(model.state_dict(), f"encoder.layer.{n}.")
        mine = layer_of(adapter, f"bert.encoder.layer.{n}.output.adapters.[PRX].adapter_")
        x = through_layer(x, layer, mine)
    assert found[0] == pytest.approx(x[0], abs=1e-5)


def test_weights_of_pytorch_are_read_as_well(tmp_path: Path) -> None:
    one, other = tiny_bert(tmp_path / "a", spec=SPEC), tiny_bert(tmp_path / "b", spec=SPEC)
    write_adapter(one / "adapter")
    write_adapter(other / "adapter", plain=True)
    paper = Paper(id="1", title="search")

    vectors = [open_encoder(str(folder), F32).encode([paper]) for folder in (one, other)]

    assert np.array_equal(*vectors)


def test_the_fingerprint_covers_the_adapter(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path, spec=SPEC)
    plain = open_encoder(str(folder)).fingerprint
    write_adapter(folder / "adapter")
    adapted = open_encoder(str(folder)).fingerprint
    write_adapter(folder / "adapter", scaling=2.0)
    scaled = open_encoder(str(folder)).fingerprint

    assert len({plain.weights, adapted.weights, scaled.weights}) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mh_adapter": True}, "mh_adapter is True, expected False"),
        ({"is_parallel": True}, "is_parallel is True"),
        ({"phm_layer": True}, "phm_layer is True"),
        ({"inv_adapter": "nice"}, "inv_adapter is 'nice', expected None"),
        ({"architecture": "lora"}, "architecture is 'lora'"),
        ({"scaling": "learned"}, "scaling is 'learned'"),
        ({"leave_out": [0]}, "leave_out is"),
        ({"non_linearity": "wavy"}, "non-linearity 'wavy' is unknown"),
        ({"layers": 3}, r"for layers \[0, 1, 2\], the model has 2"),
        ({"hidden": 64}, "does not fit the model"),
    ],
)
def test_another_kind_of_adapter_is_one_clear_line(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    folder = tiny_bert(tmp_path, spec=SPEC)
    write_adapter(folder / "adapter", **changes)

    with pytest.raises(ModelError, match=said):
        open_encoder(str(folder))


def test_a_broken_adapter_is_one_clear_line(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path, spec=SPEC)
    write_adapter(folder / "adapter")
    weights = folder / "adapter" / "adapter.safetensors"

    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ModelError, match=r"adapter\.safetensors cannot be read"):
        open_encoder(str(folder))
    weights.unlink()
    with pytest.raises(ModelError, match=r"holds no adapter\.safetensors or pytorch_adapter\.bin"):
        open_encoder(str(folder))
    (folder / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"adapter_config\.json cannot be parsed"):
        open_encoder(str(folder))
