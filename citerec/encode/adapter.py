"""SPECTER2's adapters: a bottleneck in each layer of a BERT, in the format of the library `adapters`.

Only SPECTER2's architecture is supported: one sequential bottleneck ("pfeiffer", "seq_bn") after the feed-forward part
of every layer. Source: Pfeiffer et al., EACL 2021, https://aclanthology.org/2021.eacl-main.39; the order of residuals
and layer norms is that of `adapters.methods.modeling.Adapter`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import ModelError

CONFIG, SAFE, PLAIN = "adapter_config.json", "adapter.safetensors", "pytorch_adapter.bin"
KEY = re.compile(
    r"(?:^|\.)layer\.(\d+)\.(?:output|output_adapters)\.adapters\.(.+)\.adapter_(down\.0|up)\.(weight|bias)$"
)
# The required values of these keys, if the configuration has them.
PLAIN_BOTTLENECK: dict[str, Any] = {
    "architecture": None,
    "output_adapter": True,
    "mh_adapter": False,
    "cross_adapter": False,
    "ln_before": False,
    "ln_after": False,
    "is_parallel": False,
    "use_gating": False,
    "phm_layer": False,
    "inv_adapter": None,
    "leave_out": [],
    "original_ln_after": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """Where the bottleneck is in a layer, and how it is computed."""

    non_linearity: str = "relu"
    scaling: float = 1.0
    original_ln_before: bool = True  # the layer's own norm is also applied before the bottleneck
    # the residual around the bottleneck starts before that norm, after it, or "post_add"
    residual_before_ln: bool | str = True


def adapter_file(folder: Path) -> Path:
    """Return the file of an adapter's weights.

    Raises:
        ModelError: If the folder has none.
    """
    for name in (SAFE, PLAIN):
        if (folder / name).is_file():
            return folder / name
    raise ModelError(f"{folder} holds no {SAFE} or {PLAIN}; expected an adapter's weights there")


def read_adapter_config(folder: Path) -> AdapterConfig:
    """Read the configuration of an adapter.

    Raises:
        ModelError: If it cannot be parsed, or the adapter is of another kind than SPECTER2's.
    """
    path = folder / CONFIG
    try:
        content = orjson.loads(path.read_bytes())["config"]
        scaling: Any = content.get("scaling", 1.0)
        unsupported = {
            k: v for k, v in PLAIN_BOTTLENECK.items() if content.get(k, v) not in (v, v or None)
        }
        if not isinstance(scaling, int | float):
            unsupported["scaling"] = 1.0
        config = AdapterConfig(
            **{
                name: content[name]
                for name in AdapterConfig.__dataclass_fields__
                if name in content
            }
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error
    if unsupported:
        name, expected = next(iter(unsupported.items()))
        raise ModelError(
            f"{path}: {name} is {content[name]!r}, expected {expected!r}; only adapters of SPECTER2's kind can be "
            "used (a sequential bottleneck behind each feed-forward part)"
        )
    return config


def add_adapter(model: Any, folder: Path) -> None:
    """Add the adapter in a folder to each layer of a BERT.

    Raises:
        ModelError: If it cannot be read, is of another kind, or does not fit the model.
    """
    from transformers.activations import ACT2FN

    config = read_adapter_config(folder)
    if config.non_linearity not in ACT2FN:
        raise ModelError(f"{folder / CONFIG}: non-linearity {config.non_linearity!r} is unknown")
    layers = getattr(getattr(model, "encoder", None), "layer", [])
    if not layers or not all(hasattr(layer.output, "LayerNorm") for layer in layers):
        raise ModelError(f"{folder}: an adapter needs a BERT, this is a {type(model).__name__}")
    tensors = by_layer(folder, _load(adapter_file(folder)))
    if tensors.keys() != set(range(len(layers))):
        raise ModelError(
            f"{folder}: the adapter is for layers {sorted(tensors)}, the model has {len(layers)}"
        )
    for number, layer in enumerate(layers):
        try:
            bottleneck = _bottleneck(tensors[number], model.config.hidden_size)
        except (KeyError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:120]
            raise ModelError(f"{folder}: the adapter does not fit the model: {reason}") from error
        layer.output = _adapted(layer.output, *bottleneck, ACT2FN[config.non_linearity], config)


def _adapted(output: Any, down: Any, up: Any, activation: Any, config: AdapterConfig) -> Any:
    """Return the output part of a layer with a bottleneck added."""
    import torch

    class AdaptedOutput(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.LayerNorm, self.dropout = (
                output.dense,
                output.LayerNorm,
                output.dropout,
            )
            self.adapter_down, self.adapter_up = down, up

        def forward(self, hidden_states: Any, input_tensor: Any) -> Any:
            states = self.dropout(self.dense(hidden_states))
            residual = states
            if config.original_ln_before:
                states = states + input_tensor
                residual = states if config.residual_before_ln == "post_add" else residual
                states = self.LayerNorm(states)
            residual = residual if config.residual_before_ln else states
            transformed = self.adapter_up(activation(self.adapter_down(states))) * config.scaling
            return self.LayerNorm(transformed + residual + input_tensor)

    return AdaptedOutput()


def _bottleneck(tensors: Mapping[str, Any], width: int) -> tuple[Any, Any]:
    import torch

    narrow = tensors["down.0.weight"].shape[0]
    down, up = torch.nn.Linear(width, narrow), torch.nn.Linear(narrow, width)
    for module, name in ((down, "down.0"), (up, "up")):
        module.load_state_dict({part: tensors[f"{name}.{part}"] for part in ("weight", "bias")})
    return down, up


def by_layer(folder: Path, tensors: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Group the tensors of an adapter by layer, then by their part of the bottleneck: `down.0.weight`.

    Raises:
        ModelError: If there are other tensors, or those of several adapters.
    """
    layers: dict[int, dict[str, Any]] = {}
    names: set[str] = set()
    for key, tensor in tensors.items():
        if not (match := KEY.search(key)):
            raise ModelError(f"{folder}: the adapter holds {key}, which SPECTER2's kind does not")
        number, name, part, kind = match.groups()
        names.add(name)
        layers.setdefault(int(number), {})[f"{part}.{kind}"] = tensor
    if len(names) > 1:
        raise ModelError(f"{folder} holds {len(names)} adapters, {sorted(names)}; expected one")
    return layers


def _load(file: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file may raise anything
        raise ModelError(
            f"{file} cannot be read: {type(error).__name__}; is it complete?"
        ) from error
