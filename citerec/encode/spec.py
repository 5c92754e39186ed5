"""How an encoder reads and pools text, the fingerprint by which two encoders are compared, and how a model is run.

The first two are properties of the model: a model folder states them, and an index records them. How a model is run
depends on user and machine; its results hardly depend on it.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from citerec.config import ModelConfig, Precision
from citerec.encode.machine import about_cpu, processor
from citerec.errors import ConfigError, ModelError
from citerec.files.checksums import indented_json, read_record
from citerec.text import EncoderForm
from citerec.types import Json

NAME = "citerec_encoder.json"  # written by our trainer into a model folder
SPECTER_TOKENS = 512
DTYPE_VARIABLE = "CITEREC_DTYPE"
# without one, float32 is faster
BF16_FLAGS = {
    "avx512_bf16",
    "amx_bf16",
    "bf16",
    "feat_bf16",
}


class Pooling(StrEnum):
    """How the vectors of tokens are pooled to one."""

    CLS = "cls"  # the vector of the first token, as in SPECTER
    MEAN = "mean"


class Similarity(StrEnum):
    """How two vectors are compared."""

    L2 = "l2"  # minus the Euclidean distance, as SPECTER is trained
    COSINE = "cosine"  # inner product of vectors of unit length


class Separator(StrEnum):
    """The text between title and abstract."""

    TOKEN = "sep"  # the tokenizer's separator token
    SPACE = "space"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """How an encoder reads and pools text. The defaults are SPECTER's."""

    pooling: Pooling = Pooling.CLS
    max_tokens: int = Field(default=SPECTER_TOKENS, ge=3)  # including special tokens
    form: EncoderForm = EncoderForm.TITLE_ABSTRACT
    separator: Separator = Separator.TOKEN
    similarity: Similarity = Similarity.L2


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What an index records of its encoder."""

    name: str  # as the user gave it
    source: str  # a hub id, or a folder (relative to the index if it is inside)
    weights: str  # sha256 of the weights, including those of a base model or adapter
    tokenizer: str  # sha256 of the tokenizer
    dim: int
    spec: EncoderSpec
    revision: str = ""  # the commit of a hub model; empty for others

    @property
    def key(self) -> tuple[str, str, int, EncoderSpec]:
        """Equal for two encoders if and only if their vectors can be compared."""
        return (self.weights, self.tokenizer, self.dim, self.spec)

    def __str__(self) -> str:
        return f"{self.name} (weights {self.weights[:8]})"


class EncodeConfig(ModelConfig):
    """How a model is run on some texts."""

    # so few that importing torch takes longer: ONNX Runtime, in float32
    few_texts: bool = False

    @property
    def thread_count(self) -> int:
        """The number of threads in use."""
        return self.threads or os.cpu_count() or 1


def requested_precision(precision: Precision) -> Precision:
    """Replace `auto` by the precision in the environment variable CITEREC_DTYPE, if it is set.

    With `CITEREC_DTYPE=float32` every model runs in float32, so results agree between machines up to rounding.
    ConfigError if the variable is set to another value than auto, float32 or bfloat16.
    """
    named = os.environ.get(DTYPE_VARIABLE)
    if precision is not Precision.AUTO or not named:
        return precision
    if named not in {Precision.AUTO, Precision.FLOAT32, Precision.BFLOAT16}:
        raise ConfigError(
            f"{DTYPE_VARIABLE} is {named!r}; set it to one of auto, float32, bfloat16"
        )
    return Precision(named)


def has_bfloat16() -> bool:
    """Whether this CPU is faster in bfloat16; Intel's without AMX is not (measured: 165 against 310 GFLOP/s)."""
    model, flags = processor(about_cpu())
    return bool(BF16_FLAGS & flags) and ("Intel" not in model or "amx_bf16" in flags)


def read_spec(folder: Path) -> EncoderSpec:
    """Read from a model folder how its encoder reads and pools text.

    A file of our trainer takes precedence over those of sentence-transformers; a folder with neither is treated as a
    model of SPECTER's kind. ModelError if these files cannot be parsed, or require what citerec does not support.
    """
    if (folder / NAME).is_file():
        return _parse(folder / NAME, TypeAdapter(EncoderSpec).validate_python)
    if (folder / "modules.json").is_file():
        return _sentence_transformers(folder)
    return EncoderSpec()


def write_spec(folder: Path, spec: EncoderSpec) -> None:
    """Write into a model folder how its encoder reads and pools text."""
    (folder / NAME).write_bytes(indented_json(asdict(spec)))


def _sentence_transformers(folder: Path) -> EncoderSpec:
    record = folder / "modules.json"
    modules: list[tuple[str, str]] = _parse(record, _modules)
    kinds = [kind for kind, _ in modules]
    if kinds not in (
        ["Transformer", "Pooling"],
        ["Transformer", "Pooling", "Normalize"],
    ):
        raise ModelError(
            f"{record}: the modules are {', '.join(kinds) or 'none'}; only Transformer, Pooling and perhaps Normalize "
            "can be used"
        )
    settings = _optional(folder / "sentence_bert_config.json")
    more = _optional(folder / "config_sentence_transformers.json")
    if settings.get("do_lower_case") or more.get("default_prompt_name"):
        raise ModelError(
            f"{folder} lower-cases its texts or adds a prompt, which is not supported"
        )
    # vectors of unit length rank alike by cosine, inner product and distance
    named = (
        "cosine" if "Normalize" in kinds else more.get("similarity_fn_name") or "cosine"
    )
    if named not in {"cosine", "euclidean"}:
        raise ModelError(
            f"{folder}: its similarity is {named!r}; expected cosine or euclidean"
        )
    limits = (
        _optional(folder / "tokenizer_config.json").get("model_max_length"),
        _optional(folder / "config.json").get("max_position_embeddings"),
        SPECTER_TOKENS,
    )
    return EncoderSpec(
        pooling=_parse(folder / modules[1][1] / "config.json", _pooling),
        max_tokens=settings.get("max_seq_length") or min(int(n) for n in limits if n),
        separator=Separator.SPACE,
        similarity=Similarity.L2 if named == "euclidean" else Similarity.COSINE,
    )


def _modules(content: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return class name and path of each module."""
    return [(module["type"].rpartition(".")[2], module["path"]) for module in content]


def _pooling(content: Mapping[str, Any]) -> Pooling:
    """Read 1_Pooling/config.json in the format of older or newer versions of sentence-transformers."""
    modes = [
        key
        for key, value in content.items()
        if key.startswith("pooling_mode_") and value
    ]
    mode = content.get("pooling_mode") or " and ".join(modes)
    return Pooling(
        mode.removeprefix("pooling_mode_").replace("_tokens", "").replace("_token", "")
    )


def _optional(path: Path) -> Json:
    return _parse(path, dict) if path.is_file() else {}


def _parse(path: Path, read: Any) -> Any:
    try:
        return read(orjson.loads(read_record(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"{path} cannot be used ({reason}); is it complete?"
        ) from error
