"""Runs models of BERT's architecture in NumPy, without torch: its tensors, its tokenizer, the network and the heads."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod, sqrt
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from citerec.encode.adapter import AdapterConfig


class UnsupportedError(Exception):
    """NumPy cannot run a model exactly as transformers runs it; the message is the reason."""


States = npt.NDArray[np.float32]  # shape (tokens, hidden)
Activation = Callable[[States], States]

# erf(x) = x * P(x^2) / Q(x^2) for |x| < 3.75, beyond which it is 1 in float32; highest power first.
# Error below 1e-6 of erf. Source: Eigen, generic_fast_erf (https://gitlab.com/libeigen/eigen).
_ERF_END = 3.7439211627767994
_ERF_P = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_ERF_Q = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885),
    *(0.014070470171167667, 0.11098505178285362, 0.49746925110067538, 1.0),
)
_ROWS = 16  # computed at a time; of the widest matrix of MiniLM about 100 KB


def softmax(scores: States) -> States:
    """Return the softmax over the last axis; the scores are overwritten."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def erf(values: States) -> States:
    """Return the error function of each value, in float32; the values are overwritten."""
    np.clip(values, -_ERF_END, _ERF_END, out=values)
    square = values * values
    values *= _polynomial(square, _ERF_P)
    values /= _polynomial(square, _ERF_Q)
    return values


def _polynomial(values: States, coefficients: tuple[float, ...]) -> States:
    total = np.full_like(values, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= values
        total += np.float32(coefficient)
    return total


def gelu(values: States) -> States:
    """Return x * Phi(x) for each value, Phi being the normal distribution's; the values are overwritten.

    Rows are computed a few at a time: arrays of a megabyte come from the system anew each time, which takes longer
    than the arithmetic.
    """
    for start in range(0, len(values), _ROWS):
        rows = values[start : start + _ROWS]
        phi = erf(rows * np.float32(1 / sqrt(2)))
        phi += 1
        rows *= np.float32(0.5)
        rows *= phi
    return values


def relu(values: States) -> States:
    """Return the positive part of each value; the values are overwritten."""
    return np.maximum(values, 0, out=values)


ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": relu}


_LOCK = Lock()
_users = 0  # blocks that are entered, in all threads
_limit: Any = None  # of the first of them


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Let OpenBLAS use one thread until the last of overlapping blocks, in any threads of this process, ends."""
    global _users, _limit  # noqa: PLW0603
    with _LOCK:
        if not _users:
            _limit = _openblas().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if not _users:
                _limit.restore_original_limits()


@cache
def _openblas() -> Any:
    return ThreadpoolController().select(internal_api="openblas")


# Reads weights in safetensors from a memory map: tensors that are not read take no memory.
#
# Format: 8 bytes, the length of a JSON header; the header, {name: {dtype, shape, data_offsets}}; the numbers.
# Source: https://huggingface.co/docs/safetensors.


ALONE = "model.safetensors"  # the weights of a model folder, if they are one file
MAX_HEADER = 100_000_000  # bytes; the limit of the library safetensors
DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}

Tensor = npt.NDArray[np.float32]
Header = Mapping[str, Mapping[str, Any]]


class Tensors:
    """The tensors of one file, by name."""

    def __init__(self, file: Path) -> None:
        """Map a file into memory.

        Raises:
            UnsupportedError: If it is not a safetensors file.
        """
        try:
            self._bytes: npt.NDArray[np.uint8] = np.memmap(file, np.uint8, "r")
            length = int.from_bytes(self._bytes[:8].tobytes(), "little")
            if not 0 < length <= min(MAX_HEADER, len(self._bytes) - 8):
                raise UnsupportedError(f"{file}: a header of {length} bytes")
            header: Any = orjson.loads(self._bytes[8 : 8 + length].tobytes())
            header.pop("__metadata__", None)
            end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
            if 8 + length + end != len(self._bytes):
                raise UnsupportedError(f"{file} does not end where its last tensor does")
        except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise UnsupportedError(f"{file} cannot be parsed") from error
        self._start = 8 + length
        self._header: Header = header

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        return list(self._header)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, by the header.

        Raises:
            UnsupportedError: If there is no tensor of this name.
        """
        try:
            return tuple(int(size) for size in self._header[name]["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnsupportedError(f"no tensor {name} that can be read") from error

    def is_float(self, name: str) -> bool:
        """Return whether a tensor holds floats, which alone can be read; false if there is none of this name."""
        try:
            return self._header[name]["dtype"] in DTYPES
        except (KeyError, TypeError):
            return False

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor in float32; one that is stored in float32 is mapped, not copied.

        Raises:
            UnsupportedError: If there is no tensor of this name and shape, or its type is not a float.
        """
        try:
            entry = self._header[name]
            dtype, stored_shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            is_inside = 0 <= begin <= end <= len(self._bytes) - self._start
            if (
                stored_shape != shape
                or not is_inside
                or end - begin != prod(shape) * dtype.itemsize
            ):
                raise UnsupportedError(
                    f"the tensor {name} is of shape {stored_shape}, expected {shape}"
                )
            content = self._bytes[self._start + begin : self._start + end]
        except (KeyError, TypeError, ValueError) as error:
            raise UnsupportedError(f"no tensor {name} that can be read") from error
        # An array that is not aligned to its items is copied: BLAS would copy it at each use.
        numbers = np.require(content.view(np.ndarray).view(dtype), requirements="A").reshape(shape)
        if entry["dtype"] == "BF16":  # the upper half of a float32
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers.astype(np.float32, copy=False)


# BERT's tokenizer without transformers: it gives the same ids, or raises `UnsupportedError`.
#
# Like transformers, it is built from the vocabulary and `tokenizer_config.json`. If `tokenizer.json` differs from that,
# transformers has to open the tokenizer.


CLASSES = {"BertTokenizer", "BertTokenizerFast"}
SPECIAL = {  # by their keys in tokenizer_config.json
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
EXTRA = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")
MAPS = ("special_tokens_map.json", "added_tokens.json")  # written by older versions of transformers
INPUTS, TYPES = "model_input_names", "token_type_ids"
PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}

Config = Mapping[str, Any]


class WordPiece:
    """A WordPiece tokenizer.

    Attributes:
        separator: The token between two texts.
        first, last: The ids of the tokens before and after a text.
        typed: Whether it gives token types to a model.
    """

    def __init__(self, folder: Path) -> None:
        """Open the tokenizer of a model folder.

        Raises:
            UnsupportedError: If it is not a plain BERT tokenizer.
        """
        config = _json(folder / "tokenizer_config.json")
        _check(folder, config)
        special = {key: _content(config.get(key, token)) for key, token in SPECIAL.items()}
        vocabulary = _vocabulary(folder, special, config)
        if missing := [token for token in special.values() if token not in vocabulary]:
            raise UnsupportedError(f"{folder}: {missing[0]} is not in its vocabulary")
        self.separator = special["sep_token"]
        self.first, self.last = vocabulary[special["cls_token"]], vocabulary[self.separator]
        self.typed = TYPES in config.get(INPUTS, [TYPES])
        self._tokenizer = _tokenizer(vocabulary, special, config)

    def __len__(self) -> int:
        """Return the number of tokens in the vocabulary."""
        return int(self._tokenizer.get_vocab_size())

    def ids(self, texts: Sequence[str], at_most: int, *, special: bool = True) -> list[list[int]]:
        """Tokenize texts into at most `at_most` ids each, with or without special tokens around each text."""
        self._tokenizer.enable_truncation(at_most)
        encodable = [text.encode(errors="replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(encodable, add_special_tokens=special)
        return [one.ids for one in encoded]


def _tokenizer(vocabulary: dict[str, int], special: Mapping[str, str], config: Config) -> Any:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordPiece as Model
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    first, last = special["cls_token"], special["sep_token"]
    tokenizer: Any = Tokenizer(Model(vocabulary, unk_token=special["unk_token"]))
    tokenizer.normalizer = BertNormalizer(clean_text=True, **_normalizer(config))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special.values()]
    )
    tokenizer.post_processor = TemplateProcessing(
        single=[first, "$A", last],
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    return tokenizer


def _check(folder: Path, config: Config) -> None:
    """Refuse a tokenizer that differs from BERT's.

    Raises:
        UnsupportedError: If it has other tokens, another class, or another way to truncate.
    """
    tokenizer_class = config.get("tokenizer_class") or _json(folder / "config.json").get(
        "tokenizer_class"
    )
    # Without a name, transformers uses BERT's tokenizer for a BERT.
    if tokenizer_class and tokenizer_class not in CLASSES:
        raise UnsupportedError(f"{folder}: its tokenizer is {tokenizer_class}")
    if config.get("add_bos_token") is not None or config.get("add_eos_token") is not None:
        raise UnsupportedError(f"{folder}: other tokens are added around its texts")
    if config.get("truncation_side", "right") != "right" or config.get("split_special_tokens"):
        raise UnsupportedError(f"{folder}: its tokenizer truncates or splits texts in another way")
    if any(config.get(key) for key in EXTRA):
        raise UnsupportedError(f"{folder}: its tokenizer has additional special tokens")
    if not isinstance(config.get(INPUTS, []), list):
        raise UnsupportedError(f"{folder}: the names of its inputs cannot be read")
    special = {_content(config.get(key, token)) for key, token in SPECIAL.items()}
    for entry in (config.get("added_tokens_decoder") or {}).values():
        _check_added(folder, entry, special)
    for name in MAPS:
        content = _json(folder / name)
        added = {
            key: value for key, value in content.items() if key not in SPECIAL and key not in EXTRA
        }
        tokens = {key: _content(value) for key, value in content.items() if key in SPECIAL}
        differs = any(_content(config.get(k, SPECIAL[k])) != token for k, token in tokens.items())
        if differs or set(added) - special or any(content.get(key) for key in EXTRA):
            raise UnsupportedError(f"{folder / name}: its tokenizer has additional tokens")


def _check_added(folder: Path, entry: Any, special: set[str]) -> None:
    content = _content(entry)
    if content not in special or any(entry.get(key, False) != v for key, v in PLAIN.items()):
        raise UnsupportedError(f"{folder}: its tokenizer has the added token {content}")


def _vocabulary(folder: Path, special: Mapping[str, str], config: Config) -> dict[str, int]:
    """Return the id of each piece: from tokenizer.json, as transformers reads it, else from vocab.txt."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return _from_lines(folder / "vocab.txt")
    content = _json(file)
    try:
        for entry in content.get("added_tokens") or []:
            _check_added(folder, entry, set(special.values()))
        model: Any = content["model"]
        vocabulary = {str(piece): int(number) for piece, number in model["vocab"].items()}
        parts = {
            "model": {key: value for key, value in model.items() if key != "vocab"},
            "normalizer": content["normalizer"],
            "pre_tokenizer": content["pre_tokenizer"],
            "single": _template(content["post_processor"], "single"),
            "pair": _template(content["post_processor"], "pair"),
        }
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise UnsupportedError(f"{file} cannot be parsed") from error
    for part, expected in _expected(special, config).items():
        if parts[part] != expected:
            raise UnsupportedError(f"{file}: its {part} is {parts[part]}, expected {expected}")
    return vocabulary


def _from_lines(file: Path) -> dict[str, int]:
    from tokenizers.models import WordPiece as Model

    try:
        return Model.read_file(str(file))
    except Exception as error:  # the library, written in Rust, raises the base class
        raise UnsupportedError(f"{file} cannot be read") from error


def _expected(special: Mapping[str, str], config: Config) -> dict[str, Any]:
    """Return the parts of tokenizer.json for a tokenizer that transformers builds from this configuration."""
    return {
        "model": {
            "type": "WordPiece",
            "unk_token": special["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        },
        "normalizer": {"type": "BertNormalizer", "clean_text": True, **_normalizer(config)},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "single": [special["cls_token"], "A", special["sep_token"]],
        "pair": [special["cls_token"], "A", special["sep_token"], "B", special["sep_token"]],
    }


def _normalizer(config: Config) -> dict[str, Any]:
    return {
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", True),
    }


def _template(entry: Any, name: str) -> list[str]:
    """Return the template for one text or a pair in tokenizer.json: the names of tokens, and A and B for the texts."""
    if entry["type"] == "BertProcessing":
        first, last = entry["cls"][0], entry["sep"][0]
        return [first, "A", last] if name == "single" else [first, "A", last, "B", last]
    if entry["type"] != "TemplateProcessing":
        return [str(entry["type"])]
    return [next(iter(part.values()))["id"] for part in entry[name]]


def _content(token: Any) -> str:
    """Return the text of a token in a configuration, where it is a string or an object with flags."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise UnsupportedError(f"a special token is {text!r}, expected a string")
    if isinstance(token, dict) and any(token.get(key, False) != v for key, v in PLAIN.items()):
        raise UnsupportedError(f"the special token {text} has unsupported flags")
    return text


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content: Any = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UnsupportedError(f"{file} cannot be read") from error
    if not isinstance(content, dict):
        raise UnsupportedError(f"{file} does not hold a JSON object")
    return content


# BERT's forward pass in NumPy, in float32: token ids in, the states of the last layer out.
#
# Texts are computed without padding and mask: one at a time, or several with their tokens in one matrix. Source: Devlin
# et al., NAACL 2019, https://aclanthology.org/N19-1423; names and details are those of transformers' BertModel.


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


# A BERT with a head for sequence classification in NumPy: a pair in, one score out.
#
# Source: names and details are those of transformers' BertForSequenceClassification.


BODY = "bert."  # prefix of the names of the tensors below the head
DEFAULT_LABELS = 2  # of transformers, if config.json does not state a number


class ScoringBert:
    """An open BERT with a head of one or two labels."""

    def __init__(self, folder: Path, tensors: TensorReader) -> None:
        """Read the weights of a model folder.

        Raises:
            UnsupportedError: If NumPy cannot run the model exactly as transformers runs it.
        """
        labels = _labels(folder)
        self._bert = Bert(folder, tensors)
        if self._bert.prefix != BODY:
            raise UnsupportedError(f"{folder}: its weights are not named as those below a head are")
        hidden = self._bert.config.hidden_size
        self._pooler = tensors.read(f"{BODY}pooler.dense.weight", (hidden, hidden))
        self._pooler_bias = tensors.read(f"{BODY}pooler.dense.bias", (hidden,))
        self._classifier = tensors.read("classifier.weight", (labels, hidden))
        self._classifier_bias = tensors.read("classifier.bias", (labels,))

    def score(self, ids: Ids, types: Ids | int = 0) -> npt.NDArray[np.float32]:
        """Return the score of one pair, shape (1,): the logit of its only label, or the second logit minus the first.

        Args:
            ids: The ids of the pair, shape (tokens,).
            types: The token type of each, same shape, or that of all.
        """
        first = self._bert.first_state(ids, types)[0]
        pooled = np.tanh(self._pooler @ first + self._pooler_bias)
        logits = self._classifier @ pooled + self._classifier_bias
        return logits if len(logits) == 1 else logits[1:] - logits[:1]


def _labels(folder: Path) -> int:
    """Return how many labels a model has, by its configuration.

    Raises:
        UnsupportedError: If they are not one or two.
    """
    try:
        content: Any = orjson.loads((folder / "config.json").read_bytes())
        names, number = content.get("id2label"), content.get("num_labels")
        found = {len(names)} if names is not None else set[int]()
        found |= {int(number)} if number is not None else set[int]()
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UnsupportedError(f"{folder / 'config.json'} cannot be parsed") from error
    [labels, *others] = sorted(found) or [DEFAULT_LABELS]
    if others or labels not in {1, 2}:
        raise UnsupportedError(f"{folder} has {sorted(found)} labels, expected 1 or 2")
    return labels
