"""How an encoder reads and pools text, the fingerprint by which two encoders are compared, and how a model is run.

The first two are properties of the model: a model folder states them, and an index records them. How a model is run
depends on user and machine; its results hardly depend on it.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import Field

from citerec.config import ModelConfig, Precision
from citerec.errors import ConfigError, ModelError, shown
from citerec.io import name_fault, read_record
from citerec.text import EncoderForm

NAME = "citerec_encoder.json"  # written by our trainer into a model folder
SPECTER_TOKENS = 512
DTYPE_VARIABLE = "CITEREC_DTYPE"
# Parts of the names of instruction sets with bfloat16, by which ONEDNN_MAX_CPU_ISA limits oneDNN.
BF16_LIMITS = ("BF16", "FP16", "AMX", "AVX10", "DEFAULT")
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16", "feat_bf16"}  # without one, float32 is faster


class Pooling(StrEnum):
    """How the vectors of tokens are pooled to one."""

    CLS = "cls"  # the vector of the first token, as in SPECTER
    MEAN = "mean"
    MAX = "max"


class Similarity(StrEnum):
    """How two vectors are compared."""

    L2 = "l2"  # minus the Euclidean distance, as SPECTER is trained
    COSINE = "cosine"  # inner product of vectors of unit length


class Reads(StrEnum):
    """The unit of text that the model reads."""

    WHOLE = "whole"  # title and abstract as one text
    SENTENCES = "sentences"  # title and each sentence of the abstract, whose vectors are summed


class Separator(StrEnum):
    """The text between title and abstract."""

    TOKEN = "sep"  # the tokenizer's separator token
    SPACE = "space"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """How an encoder reads and pools text. The defaults are SPECTER's."""

    pooling: Pooling = Pooling.CLS
    max_tokens: int = SPECTER_TOKENS  # including special tokens
    form: EncoderForm = EncoderForm.TITLE_ABSTRACT
    separator: Separator = Separator.TOKEN
    similarity: Similarity = Similarity.L2
    reads: Reads = Reads.WHOLE

    def __post_init__(self) -> None:
        if self.max_tokens < 3:
            raise ModelError(
                f"an encoder reads at least 3 tokens, got max_tokens {self.max_tokens}"
            )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a spec that `asdict` wrote.

        Raises:
            KeyError, TypeError, ValueError: If it is not one.
        """
        return cls(
            pooling=Pooling(content["pooling"]),
            max_tokens=int(content["max_tokens"]),
            form=EncoderForm(content["form"]),
            separator=Separator(content["separator"]),
            similarity=Similarity(content["similarity"]),
            reads=Reads(content.get("reads", Reads.WHOLE)),
        )


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
    def key(self) -> tuple[Any, ...]:
        """Equal for two encoders if and only if their vectors can be compared."""
        return (self.weights, self.tokenizer, self.dim, self.spec)

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint in the format of the manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a fingerprint that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: If it is not one.
        """
        texts = ("name", "source", "weights", "tokenizer")
        return cls(
            **{field: str(content[field]) for field in texts},
            dim=int(content["dim"]),
            spec=EncoderSpec.from_json(content["spec"]),
            revision=str(content.get("revision", "")),
        )

    def __str__(self) -> str:
        return f"{self.name} (weights {self.weights[:8]})"


class EncodeConfig(ModelConfig):
    """How a model is run on some texts."""

    batch_tokens: int = Field(default=0, ge=0)  # 0 for a size that suits the device
    few_texts: bool = False  # so few that importing torch takes longer: ONNX Runtime, in float32

    @property
    def thread_count(self) -> int:
        """The number of threads in use."""
        return self.threads or os.cpu_count() or 1


def requested_precision(precision: Precision) -> Precision:
    """Replace `auto` by the precision in the environment variable CITEREC_DTYPE, if it is set.

    With `CITEREC_DTYPE=float32` every model runs in float32, so results agree between machines up to rounding.

    Raises:
        ConfigError: If the variable is set to another value than auto, float32 or bfloat16.
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
    """Whether this CPU computes in bfloat16 and oneDNN, which runs the models, is allowed to use it.

    Source: https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
    """
    from citerec.machine import about_cpu, processor

    limit = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    if limit and not any(part in limit for part in BF16_LIMITS):
        return False
    return bool(BF16_FLAGS & processor(about_cpu())[1])


def read_spec(folder: Path) -> EncoderSpec:
    """Read from a model folder how its encoder reads and pools text.

    A file of our trainer takes precedence over those of sentence-transformers; a folder with neither is treated as a
    model of SPECTER's kind.

    Raises:
        ModelError: If these files cannot be parsed, or require what citerec does not support.
    """
    if (folder / NAME).is_file():
        return _parse(folder / NAME, EncoderSpec.from_json)
    if (folder / "modules.json").is_file():
        return _sentence_transformers(folder)
    return EncoderSpec()


def write_spec(folder: Path, spec: EncoderSpec) -> None:
    """Write into a model folder how its encoder reads and pools text."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / NAME).write_bytes(orjson.dumps(asdict(spec), option=options))


def _sentence_transformers(folder: Path) -> EncoderSpec:
    record = folder / "modules.json"
    modules: list[tuple[str, str]] = _parse(record, _modules)
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ModelError(
            f"{record}: the modules are {', '.join(kinds) or 'none'}; only Transformer, Pooling and perhaps Normalize "
            "can be used"
        )
    if modules[0][1] not in {"", ".", "./"}:
        raise ModelError(
            f"{record}: the model is in {modules[0][1]}/; expected it in the folder itself"
        )
    if fault := name_fault(modules[1][1].rstrip("/")):
        raise ModelError(f"{record}: {shown(modules[1][1])} {fault}")
    settings = _optional(folder / "sentence_bert_config.json")
    more = _optional(folder / "config_sentence_transformers.json")
    if settings.get("do_lower_case") or more.get("default_prompt_name"):
        raise ModelError(f"{folder} lower-cases its texts or adds a prompt, which is not supported")
    named = more.get("similarity_fn_name")
    if "Normalize" not in kinds and named not in {None, "cosine", "euclidean"}:
        raise ModelError(f"{folder}: its similarity is {named!r}; expected cosine or euclidean")
    # vectors of unit length rank alike by cosine, inner product and distance
    by_distance = "Normalize" not in kinds and named == "euclidean"
    limits = (
        _optional(folder / "tokenizer_config.json").get("model_max_length"),
        _optional(folder / "config.json").get("max_position_embeddings"),
        SPECTER_TOKENS,
    )
    return EncoderSpec(
        pooling=_parse(folder / modules[1][1] / "config.json", _pooling),
        max_tokens=settings.get("max_seq_length") or min(int(n) for n in limits if n),
        separator=Separator.SPACE,
        similarity=Similarity.L2 if by_distance else Similarity.COSINE,
    )


def _modules(content: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return class name and path of each module."""
    return [(module["type"].rpartition(".")[2], module["path"]) for module in content]


def _pooling(content: Mapping[str, Any]) -> Pooling:
    """Read 1_Pooling/config.json in the format of older or newer versions of sentence-transformers."""
    modes = [key for key, value in content.items() if key.startswith("pooling_mode_") and value]
    modes = [str(content["pooling_mode"])] if content.get("pooling_mode") else modes
    short = [
        mode.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
        for mode in modes
    ]
    if len(short) != 1 or short[0] not in {*Pooling}:
        raise ModelError(
            f"its tokens are pooled by {' and '.join(short) or 'nothing'}; expected cls, mean or max"
        )
    return Pooling(short[0])


def _optional(path: Path) -> dict[str, Any]:
    return _parse(path, dict) if path.is_file() else {}


def _parse(path: Path, read: Any) -> Any:
    try:
        return read(orjson.loads(read_record(path)))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error
