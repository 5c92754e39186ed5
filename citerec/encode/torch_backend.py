"""Opens models with torch and transformers, and runs them batch by batch: for corpora, batches and GPUs.

On a CPU several batches run in parallel, one thread each: with small matrices, threads that share a batch would spend
their time waiting for each other.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import orjson

from citerec.encode.models import (
    bottleneck_files,
    check_sizes,
    files_of,
    weights_files,
)
from citerec.encode.spec import (
    EncodeConfig,
    EncoderSpec,
    Pooling,
    Precision,
    Separator,
    Similarity,
    has_bfloat16,
    requested_precision,
)
from citerec.errors import ConfigError, ModelError
from citerec.files.arrays import Counts, Scores

# per batch
CPU_TOKENS = 2048
GPU_TOKENS = 65536
# In float32, with widths as they are, drafts and their sentences took 8 % less time than in batches of 2,048 tokens.
FLOAT32_TOKENS = 512
# widths are multiples of it otherwise: few shapes mean few kernels to compile
ROUND_TO = 8
HEADS = ("pooler.", "cls.", "lm_head.")  # prefixes of heads that no vector depends on
# position ids start at 2
OFFSET_POSITIONS = {
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
}
BOTTLENECK = re.compile(
    r".*\blayer\.(\d+)\.output\.adapters\.[^.]+\.adapter_(down\.0|up)\.(\w+)"
)
SPECTER2 = {  # what the record of its adapter says of the computation
    "non_linearity": "relu",
    "scaling": 1.0,
    "original_ln_before": True,
    "original_ln_after": True,
    "residual_before_ln": True,
    "ln_before": False,
    "ln_after": False,
}

Tokens = Sequence[Sequence[int]]
Model = TypeVar("Model")

# A server opens several indexes of one encoder or reranker: a model that is open is used again while anything uses it.
_open: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_opening = RLock()


def shared(key: object, opened: Callable[[], Model]) -> Model:
    """Return the open model of a key; one that is not open is opened."""
    with _opening:
        model = _open.get(key)
        if model is None:
            model = _open[key] = opened()
        return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A torch module, and how its input is made from tokens."""

    module: Any  # (input_ids, attention_mask[, token_type_ids]) -> float32, shape (texts, dim)
    padding: int  # the id of the padding token
    max_tokens: int
    # whether it reads token types: 0 for the first segment, 1 for the second
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Parts:
    """An open encoder."""

    model: Any  # of transformers; None for an exported one
    tokenizer: Any  # of transformers; for an exported one of `tokenizers`
    spec: EncoderSpec
    dim: int  # of a vector
    separator: str  # the text between the parts of a paper

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids: with special tokens, at most `spec.max_tokens` each."""
        return cut(self.tokenizer, texts, self.spec.max_tokens, special=True)


def load_parts(folder: Path, spec: EncoderSpec, adapter: Path | None = None) -> Parts:
    """Open the encoder in a folder as `open_folder` does, and add a bottleneck adapter, if there is one.

    ModelError if it is not a model that can encode, or its weights are incomplete.
    """
    model, tokenizer, missing = open_folder(folder, "AutoModel")
    refuse_missing(folder, [name for name in missing if not name.startswith(HEADS)])
    if spec.separator is Separator.TOKEN and not tokenizer.sep_token:
        raise ModelError(
            f"{folder}: its tokenizer has no separator token; a BERT-like one has"
        )
    check_positions(folder, model, spec.max_tokens)
    if adapter:
        add_bottleneck(model, adapter)
    separator = " " if spec.separator is Separator.SPACE else str(tokenizer.sep_token)
    return Parts(model, tokenizer, spec, int(model.config.hidden_size), separator)


def open_folder(folder: Path, kind: str) -> tuple[Any, Any, list[str]]:
    """Return the model, the tokenizer, and the names of the tensors that the weights in a folder lack.

    The class `kind` of transformers opens the model, in float32; nothing is fetched, and no code of the folder is run.
    A ModelError if the folder does not hold such a model.
    """
    files_of(folder)  # or an error that says what is missing
    check_sizes(folder)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # else it warns about forks
    # without torch, transformers can be imported but fails later
    torch: Any = import_module("torch")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    local: Any = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        config = transformers.AutoConfig.from_pretrained(folder, **local)
        made_by: Any = getattr(transformers, kind)
        with torch.device("meta"):  # without memory
            parameters = made_by.from_config(config).num_parameters()
        size = sum(file.stat().st_size for file in weights_files(folder))
        if parameters > size:
            raise ValueError(
                f"config.json names {parameters:,} parameters, its weights have {size:,} bytes"
            )
        model, loading = made_by.from_pretrained(
            folder,
            config=config,
            output_loading_info=True,
            dtype="float32",
            **local,
        )
    except Exception as error:  # a broken folder may raise anything
        reason = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{folder} cannot be opened as a model: {type(error).__name__}: {reason}"
        ) from error
    if tokenizer.pad_token_id is None or not hasattr(tokenizer, "backend_tokenizer"):
        raise ModelError(
            f"{folder}: its tokenizer has no padding token, or is not of `tokenizers`; that of a BERT-like model is"
        )
    return model.eval(), tokenizer, sorted(loading["missing_keys"])


def refuse_missing(folder: Path, missing: Sequence[str]) -> None:
    """Raise `ModelError` if tensors are missing in the weights of a model."""
    if missing:
        raise ModelError(
            f"{folder}: its weights lack {len(missing)} of the tensors that config.json names, "
            f"{missing[0]} among them; they are not this model's"
        )


def check_positions(folder: Path, model: Any, tokens: int) -> None:
    """Raise `ModelError` if a model has fewer positions than `tokens`."""
    positions = positions_of(model.config)
    if positions and positions < tokens:
        raise ModelError(
            f"{folder} has {positions} positions, fewer than the {tokens} tokens to be read; choose fewer tokens"
        )


def positions_of(config: Any) -> int:
    """Return how many tokens a model of this configuration has positions for; 0 if it has no limit."""
    reserved = 2 if config.model_type in OFFSET_POSITIONS else 0
    return max(0, int(getattr(config, "max_position_embeddings", 0) or 0) - reserved)


def cut(
    tokenizer: Any, texts: Sequence[str], at_most: int, *, special: bool
) -> list[list[int]]:
    """Tokenize texts into ids, at most `at_most` each, with special tokens if `special`.

    An unpaired surrogate, which is not a character, becomes a question mark. The tokenizer is one of `tokenizers`, or
    one of transformers that is based on it; several threads may use it only if it cuts to `at_most` already.
    """
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if fast.padding:
        fast.no_padding()
    if (fast.truncation or {}).get("max_length") != at_most:
        fast.enable_truncation(at_most)
    encodable = [text.encode(errors="replace").decode() for text in texts]
    return [
        encoding.ids
        for encoding in fast.encode_batch(encodable, add_special_tokens=special)
    ]


def encoder_net(parts: Parts) -> Net:
    """Return an encoder as a net: the model with its pooling."""
    import torch

    spec = parts.spec

    class PooledModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            output = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(output.last_hidden_state, attention_mask, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    return Net(
        module=PooledModel(),
        padding=parts.tokenizer.pad_token_id,
        max_tokens=spec.max_tokens,
    )


def pool(states: Any, mask: Any, pooling: Pooling) -> Any:
    """Pool the token vectors of each text, shape (texts, tokens, dim), to one, shape (texts, dim), in float32.

    `mask` is 1 for a token, 0 for padding, shape (texts, tokens).
    """
    if pooling is Pooling.CLS:
        return states[:, 0].float()
    weights = mask.unsqueeze(-1).float()
    return (states.float() * weights).sum(1) / weights.sum(1).clamp(min=1)


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group texts of similar length: longest first, at most `budget` tokens per group, including padding.

    A text of more than `budget` tokens is a group of its own.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    groups: list[list[int]] = []
    for i in order:
        longest = lengths[groups[-1][0]] if groups else 0
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def padded(
    tokens: Tokens,
    rows: Sequence[int],
    padding: int,
    at_most: int,
    firsts: Sequence[int] | None,
    multiple: int = ROUND_TO,
) -> dict[str, Counts]:
    """Return the inputs of a model for the texts at `rows`: ids, mask and, with `firsts`, types, (rows, width) each.

    The width is that of the longest text, rounded up to a `multiple`, but at most `at_most`: a model may have no
    positions beyond it. The first segment of a text, of a length in `firsts`, has type 0, the second 1.
    """
    longest = max(len(tokens[row]) for row in rows)
    width = min(-(-longest // multiple) * multiple, at_most)
    ids = np.full((len(rows), width), padding, np.int64)
    mask = np.zeros_like(ids)
    types = np.zeros_like(ids)
    for place, row in enumerate(rows):
        length = len(tokens[row])
        ids[place, :length] = tokens[row]
        mask[place, :length] = 1
        if firsts is not None:
            types[place, firsts[row] : length] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    return inputs if firsts is None else inputs | {"token_type_ids": types}


class TorchBackend:
    """Runs a net batch by batch."""

    def __init__(self, net: Net, config: EncodeConfig) -> None:
        """Move a net to its device and precision; a ConfigError if there is no such device."""
        import torch

        self._torch: Any = torch
        self._net = net
        named = config.device
        if named == "auto":
            named = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self._device = torch.device(named)
            torch.empty(0, device=self._device)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(
                f"no device {named!r} here; leave it out, or choose cpu"
            ) from error
        self.device = str(self._device.type)
        precision = requested_precision(config.precision)
        if precision is Precision.AUTO and self.device == "cuda":
            is_supported = torch.cuda.is_bf16_supported()
            precision = Precision.BFLOAT16 if is_supported else Precision.FLOAT16
        elif precision is Precision.AUTO:
            is_faster = self.device == "cpu" and has_bfloat16()
            precision = Precision.BFLOAT16 if is_faster else Precision.FLOAT32
        self.precision = str(precision)
        self._threads = config.thread_count
        # tokens of a batch, and what its width is a multiple of
        self._budget = CPU_TOKENS
        self._multiple = ROUND_TO
        if self.device != "cpu":
            self._budget = GPU_TOKENS
        elif precision is Precision.FLOAT32:
            self._budget = FLOAT32_TOKENS
            self._multiple = 1
        self._module = net.module.to(
            self._device, getattr(torch, self.precision)
        ).eval()

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Scores]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs, shape (texts, dim).

        A text has at most `Net.max_tokens` ids; `firsts` are the lengths of first segments, for a net that is `typed`.
        ConfigError if the device has too little memory for a batch.
        """
        groups = batches([len(ids) for ids in tokens], self._budget)
        work = partial(self._computed, tokens, firsts)
        if self.device != "cpu":
            # Each batch is started before the outputs of the previous one are fetched, so that a GPU does not wait.
            started = ((rows, work(rows)) for rows in groups)
            for (rows, outputs), _ in pairwise(chain(started, [([], None)])):
                yield rows, outputs.cpu().numpy()
            return
        previous = self._torch.get_num_threads()
        set_threads = self._torch.set_num_threads
        at_once = min(self._threads, len(groups))
        try:
            if at_once <= 1:
                set_threads(self._threads)
                yield from ((rows, work(rows).numpy()) for rows in groups)
                return
            with ThreadPoolExecutor(
                at_once, initializer=set_threads, initargs=(1,)
            ) as workers:
                done = workers.map(work, groups)
                try:
                    for rows, outputs in zip(groups, done, strict=True):
                        yield rows, outputs.numpy()
                finally:  # after an error or Ctrl-C no further batch is started
                    workers.shutdown(wait=False, cancel_futures=True)
        finally:
            set_threads(previous)

    def _computed(
        self, tokens: Tokens, firsts: Sequence[int] | None, rows: list[int]
    ) -> Any:
        """Run a batch; return its outputs on the device."""
        net = self._net
        inputs = padded(
            tokens, rows, net.padding, net.max_tokens, firsts, self._multiple
        )
        try:
            with self._torch.inference_mode():
                tensors = map(self._torch.from_numpy, inputs.values())
                return self._module(*[tensor.to(self._device) for tensor in tensors])
        except self._torch.OutOfMemoryError as error:
            size = inputs["input_ids"].size
            raise ConfigError(
                f"{self._device} has too little memory for {size} tokens; free some, or choose cpu"
            ) from error


def add_bottleneck(model: Any, folder: Path) -> None:
    """Add SPECTER2's adapter: a bottleneck after the feed-forward part of each layer of a BERT.

    ModelError if it cannot be read, is of another kind, or does not fit the model.

    Source: Pfeiffer et al., EACL 2021, https://aclanthology.org/2021.eacl-main.39; the order of residuals and layer
    norms is that of `adapters.methods.modeling.Adapter`.
    """
    import torch
    from safetensors.torch import load_file

    class AdaptedOutput(torch.nn.Module):
        def __init__(self, output: Any, states: dict[str, dict[str, Any]]) -> None:
            super().__init__()
            narrow, wide = states["down.0"]["weight"].shape
            self.dense = output.dense
            self.dropout = output.dropout
            self.LayerNorm = output.LayerNorm
            self.down = torch.nn.Linear(wide, narrow)
            self.up = torch.nn.Linear(narrow, wide)
            self.down.load_state_dict(states["down.0"])
            self.up.load_state_dict(states["up"])

        def forward(self, hidden_states: Any, input_tensor: Any) -> Any:
            residual = self.dropout(self.dense(hidden_states))
            states = self.LayerNorm(residual + input_tensor)
            transformed = self.up(torch.relu(self.down(states)))
            return self.LayerNorm(transformed + residual + input_tensor)

    weights, record = bottleneck_files(folder)
    try:
        config = orjson.loads(record.read_bytes())["config"]
        if others := [
            name for name, value in SPECTER2.items() if config.get(name, value) != value
        ]:
            raise ValueError(f"{others[0]} is {config[others[0]]!r}")
        tensors: dict[str, Any] = (
            load_file(weights)
            if weights.suffix == ".safetensors"
            else torch.load(weights, map_location="cpu", weights_only=True)
        )
        layers = model.encoder.layer
        bottlenecks = [{"down.0": {}, "up": {}} for _ in layers]
        for key, tensor in tensors.items():
            number, part, kind = BOTTLENECK.fullmatch(key).groups()  # type: ignore[union-attr]
            bottlenecks[int(number)][part][kind] = tensor
        for layer, states in zip(layers, bottlenecks, strict=True):
            layer.output = AdaptedOutput(layer.output, states)
            layer.output(
                torch.zeros(1, layer.output.dense.in_features),
                torch.zeros(1, model.config.hidden_size),
            )
    except Exception as error:  # a broken file may raise anything
        reason = " ".join(str(error).split())[:120]
        raise ModelError(
            f"{folder} is not an adapter of SPECTER2's kind for this {type(model).__name__}: {reason}"
        ) from error
