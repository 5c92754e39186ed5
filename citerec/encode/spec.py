"""How an encoder reads and pools text, and the fingerprint by which two encoders are compared.

Both are properties of the model, not options: a model folder states them, and an index records them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.errors import ModelError, shown
from citerec.io import name_fault, read_record
from citerec.text import EncoderForm

NAME = "citerec_encoder.json"  # written by our trainer into a model folder
SPECTER_TOKENS = 512


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
            reads=Reads(content.get("reads", Reads.WHOLE)),  # older specs lack it
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What an index records of its encoder."""

    name: str  # as the user gave it
    source: str  # a hub id, or a folder (relative to the index if it is inside)
    weights: str  # sha256 of the weights, including the adapter's
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

    def differs_from(self, other: Self) -> str:
        """Describe the difference in `key`."""
        if self.weights != other.weights:
            return f"another model (weights {self.weights[:8]})"
        if self.tokenizer != other.tokenizer:
            return "a model with another tokenizer"
        return (
            f"a model that reads or pools text in another way ({self.dim} dimensions, {self.spec})"
        )

    def __str__(self) -> str:
        return f"{self.name} (weights {self.weights[:8]})"


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
    modules: list[tuple[str, str]] = _parse(folder / "modules.json", _modules)
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ModelError(
            f"{folder / 'modules.json'}: the modules are {', '.join(kinds) or 'none'}; expected Transformer, "
            "Pooling and perhaps Normalize; no other kind of sentence-transformers model can be used"
        )
    if modules[0][1] not in {"", ".", "./"}:
        raise ModelError(
            f"{folder / 'modules.json'}: the model is in {modules[0][1]}/; expected it in the folder itself"
        )
    settings = _optional(folder / "sentence_bert_config.json")
    more = _optional(folder / "config_sentence_transformers.json")
    if settings.get("do_lower_case") or more.get("default_prompt_name"):
        raise ModelError(
            f"{folder} lower-cases its texts or adds a prompt to them, which citerec does not support"
        )
    if fault := name_fault(modules[1][1].rstrip("/")):
        raise ModelError(f"{folder / 'modules.json'}: {shown(modules[1][1])} {fault}")
    return EncoderSpec(
        pooling=_parse(folder / modules[1][1] / "config.json", _pooling),
        max_tokens=settings.get("max_seq_length") or _positions(folder),
        separator=Separator.SPACE,
        similarity=_similarity(folder, kinds, more.get("similarity_fn_name")),
    )


def _modules(content: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return class name and path of each module."""
    return [(module["type"].rpartition(".")[2], module["path"]) for module in content]


def _similarity(folder: Path, kinds: list[str], named: str | None) -> Similarity:
    """Return the similarity of a model; vectors of unit length rank alike by cosine, inner product and distance."""
    if "Normalize" in kinds or named in {None, "cosine"}:
        return Similarity.COSINE
    if named == "euclidean":
        return Similarity.L2
    raise ModelError(f"{folder}: its similarity is {named!r}; expected cosine or euclidean")


def _positions(folder: Path) -> int:
    """Return the token limit that sentence-transformers uses if none is configured."""
    tokens = _optional(folder / "tokenizer_config.json").get("model_max_length")
    positions = _optional(folder / "config.json").get("max_position_embeddings")
    return min(int(n) for n in (tokens, positions, SPECTER_TOKENS) if n)


def _pooling(content: Mapping[str, Any]) -> Pooling:
    """Read 1_Pooling/config.json in the format of older or newer versions of sentence-transformers."""
    modes = [key for key, value in content.items() if key.startswith("pooling_mode_") and value]
    modes = [str(content["pooling_mode"])] if content.get("pooling_mode") else modes
    short = [mode.removeprefix("pooling_mode_").removesuffix("_tokens") for mode in modes]
    short = [mode.removesuffix("_token") for mode in short]
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
