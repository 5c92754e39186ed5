"""BERT's forward pass in NumPy, in float32: token ids in, the states of the last layer out.

Texts are computed without padding and mask: one at a time, or several with their tokens in one matrix. Source: Devlin
et al., NAACL 2019, https://aclanthology.org/N19-1423; names and details are those of transformers' BertModel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.light import UnsupportedError
from citerec.encode.light.functions import ACTIVATIONS, States, softmax
from citerec.encode.light.tensors import Tensor

if TYPE_CHECKING:
    from citerec.encode.adapter import AdapterConfig

Ids = npt.NDArray[np.int64]  # shape (tokens,)

# prefixes of the names of its tensors: a bare BERT, or one under a head
ARCHITECTURES = ("", "bert.")


class TensorReader(Protocol):
    """The weights of a model; `Tensors` is one."""

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        ...

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor in float32; an `UnsupportedError` if there is none of this name and shape."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    """The sizes of a BERT."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A bottleneck after the feed-forward part of each layer; see `citerec.encode.adapter`."""

    config: "AdapterConfig"
    # by number: down.0.weight, down.0.bias, up.weight, up.bias
    layers: Mapping[int, Mapping[str, Tensor]]


class Bert:
    """An open BERT."""

    def __init__(self, folder: Path, tensors: TensorReader, adapter: Adapter | None = None) -> None:
        """Read the weights of a model folder.

        Raises:
            UnsupportedError: If NumPy cannot run the model exactly as transformers runs it.
        """
        self.config = read_config(folder)
        self._adapter = adapter
        self._activation = ACTIVATIONS[self.config.hidden_act]
        self._tensors = tensors
        names = tensors.names
        if any(".adapter_" in name for name in names):
            raise UnsupportedError(f"{folder}: an adapter is saved among its weights")
        prefixes = [p for p in ARCHITECTURES if f"{p}embeddings.word_embeddings.weight" in names]
        if len(prefixes) != 1:
            raise UnsupportedError(f"{folder}: its weights are not named as BERT's are")
        self.prefix = prefixes[0]  # of the names of its tensors
        self._weights = {
            name: self._read(name, shape) for name, shape in tensor_shapes(self.config)
        }
        if adapter:
            _check_adapter(adapter, self.config)

    def states(self, ids: Ids) -> States:
        """Return the states of the last layer, shape (tokens, hidden), for the ids of one text, shape (tokens,)."""
        states = self._embedded(ids, 0)
        for number in range(self.config.num_hidden_layers):
            states = self._layer(states, number)
        return states

    def states_together(self, texts: Sequence[Ids]) -> list[States]:
        """Return what `states` returns for each text, but for rounding; of short texts in half the time.

        A product of matrices of a few rows takes as long as one of twice as many.
        """
        ends = np.cumsum([len(ids) for ids in texts])[:-1]
        states = np.concatenate([self._embedded(ids, 0) for ids in texts])
        for number in range(self.config.num_hidden_layers):
            states = self._layer(states, number, ends=ends)
        return np.split(states, ends)

    def first_state(self, ids: Ids, types: Ids | int = 0) -> States:
        """Return the state of the first token in the last layer, shape (1, hidden), for one text or pair.

        The last layer is not computed for the other tokens.

        Args:
            ids: The ids, shape (tokens,).
            types: The token type of each, same shape, or that of all.
        """
        states = self._embedded(ids, types)
        *others, last = range(self.config.num_hidden_layers)
        for number in others:
            states = self._layer(states, number)
        return self._layer(states, last, 1)

    def _embedded(self, ids: Ids, types: Ids | int) -> States:
        weights = self._weights
        states: States = weights["embeddings.word_embeddings.weight"][ids]
        states = states + weights["embeddings.token_type_embeddings.weight"][types]
        states += weights["embeddings.position_embeddings.weight"][: len(ids)]
        return self._normed(states, "embeddings.LayerNorm")

    def _read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return self._tensors.read(self.prefix + name, shape)

    def _layer(
        self, states: States, number: int, first: int | None = None, ends: Ids | None = None
    ) -> States:
        """Return the output of a layer, shape (tokens, hidden).

        Args:
            states: The states before it.
            number: Of the layer.
            first: Only the output of this many tokens is computed; None for all.
            ends: Where each text ends but the last; None for one text.
        """
        layer = f"encoder.layer.{number}"
        mixed = self._attention(states, layer, first, ends)
        attended = self._linear(mixed, f"{layer}.attention.output.dense")
        states = self._normed(attended + states[:first], f"{layer}.attention.output.LayerNorm")
        inner = self._activation(self._linear(states, f"{layer}.intermediate.dense"))
        outer = self._linear(inner, f"{layer}.output.dense")
        norm = f"{layer}.output.LayerNorm"
        if self._adapter is None:
            return self._normed(outer + states, norm)
        return self._adapted(outer, states, norm, self._adapter, number)

    def _adapted(
        self, outer: States, states: States, norm: str, adapter: Adapter, number: int
    ) -> States:
        """Compute the output of a layer as `citerec.encode.adapter` computes it in torch."""
        config, tensors = adapter.config, adapter.layers[number]
        transformed = residual = outer
        if config.original_ln_before:
            transformed = outer + states
            residual = transformed if config.residual_before_ln == "post_add" else residual
            transformed = self._normed(transformed, norm)
        residual = residual if config.residual_before_ln else transformed
        down = transformed @ tensors["down.0.weight"].T + tensors["down.0.bias"]
        up = ACTIVATIONS[config.non_linearity](down) @ tensors["up.weight"].T + tensors["up.bias"]
        return self._normed(up * np.float32(config.scaling) + residual + states, norm)

    def _attention(self, states: States, layer: str, first: int | None, ends: Ids | None) -> States:
        parts = {"query": states[:first], "key": states, "value": states}
        queries, keys, values = (
            self._linear(part, f"{layer}.attention.self.{name}") for name, part in parts.items()
        )
        if ends is None:
            return self._attended(queries, keys, values)
        of_texts = zip(*(np.split(part, ends) for part in (queries, keys, values)), strict=True)
        return np.concatenate([self._attended(*of_text) for of_text in of_texts])

    def _attended(self, queries: States, keys: States, values: States) -> States:
        """Return the mean of the values of one text for each query, shape (queries, hidden)."""
        heads = self.config.num_attention_heads
        size = self.config.hidden_size // heads
        by_head = [part.reshape(len(part), heads, size) for part in (queries, keys, values)]
        of_queries, of_keys, of_values = (part.transpose(1, 0, 2) for part in by_head)
        scores: States = of_queries @ of_keys.transpose(0, 2, 1)
        scores *= np.float32(1 / sqrt(size))
        return (softmax(scores) @ of_values).transpose(1, 0, 2).reshape(queries.shape)

    def _linear(self, states: States, name: str) -> States:
        output: States = states @ self._weights[f"{name}.weight"].T
        output += self._weights[f"{name}.bias"]
        return output

    def _normed(self, states: States, name: str) -> States:
        scale, shift = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        normed = states - states.mean(-1, keepdims=True)
        variance = np.square(normed).mean(-1, keepdims=True)
        normed /= np.sqrt(variance + np.float32(self.config.layer_norm_eps))
        normed *= scale
        normed += shift
        return normed


def read_config(folder: Path) -> BertConfig:
    """Read the sizes of the BERT in a folder.

    Raises:
        UnsupportedError: If the model is not a BERT, or a BERT with additional features.
    """
    try:
        content: Any = orjson.loads((folder / "config.json").read_bytes())
        fields = BertConfig.__dataclass_fields__
        config = BertConfig(**{name: content[name] for name in fields if name in content})
        numbers = [getattr(config, name) for name in fields if name != "hidden_act"]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UnsupportedError(f"{folder / 'config.json'} cannot be parsed") from error
    is_decoder = content.get("is_decoder") or content.get("add_cross_attention")
    if content.get("model_type") != "bert" or is_decoder:
        raise UnsupportedError(f"{folder} is a {content.get('model_type')}, or a decoder")
    if content.get("position_embedding_type", "absolute") != "absolute":
        raise UnsupportedError(f"{folder}: its positions are {content['position_embedding_type']}")
    if content.get("quantization_config") or config.hidden_act not in ACTIVATIONS:
        raise UnsupportedError(f"{folder}: quantised, or its activation is {config.hidden_act}")
    if not all(isinstance(n, int | float) and n > 0 for n in numbers):
        raise UnsupportedError(f"{folder}: a size in config.json is not a positive number")
    if config.hidden_size % config.num_attention_heads:
        raise UnsupportedError(f"{folder}: its heads do not share {config.hidden_size} evenly")
    return config


def tensor_shapes(config: BertConfig) -> list[tuple[str, tuple[int, ...]]]:
    """Return name and shape of each tensor of a BERT of these sizes."""
    hidden, inner = config.hidden_size, config.intermediate_size
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("embeddings.word_embeddings.weight", (config.vocab_size, hidden)),
        ("embeddings.position_embeddings.weight", (config.max_position_embeddings, hidden)),
        ("embeddings.token_type_embeddings.weight", (config.type_vocab_size, hidden)),
        *((f"embeddings.LayerNorm.{part}", (hidden,)) for part in ("weight", "bias")),
    ]
    for number in range(config.num_hidden_layers):
        layer = f"encoder.layer.{number}"
        attention = f"{layer}.attention"
        matrices = {
            **{f"{attention}.self.{p}": (hidden, hidden) for p in ("query", "key", "value")},
            f"{attention}.output.dense": (hidden, hidden),
            f"{layer}.intermediate.dense": (inner, hidden),
            f"{layer}.output.dense": (hidden, inner),
        }
        for name, shape in matrices.items():
            shapes += [(f"{name}.weight", shape), (f"{name}.bias", shape[:1])]
        for name in (f"{attention}.output.LayerNorm", f"{layer}.output.LayerNorm"):
            shapes += [(f"{name}.weight", (hidden,)), (f"{name}.bias", (hidden,))]
    return shapes


def _check_adapter(adapter: Adapter, config: BertConfig) -> None:
    """Refuse an adapter that is not for a BERT of this shape."""
    if sorted(adapter.layers) != list(range(config.num_hidden_layers)):
        raise UnsupportedError("the adapter is for other layers")
    for tensors in adapter.layers.values():
        shapes = {name: tensor.shape for name, tensor in tensors.items()}
        narrow = shapes.get("down.0.bias", (0,))
        wide = (config.hidden_size,)
        if shapes != {
            "down.0.weight": narrow + wide,
            "down.0.bias": narrow,
            "up.weight": wide + narrow,
            "up.bias": wide,
        }:
            raise UnsupportedError("the adapter does not fit the model")
