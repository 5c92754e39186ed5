"""How an encoder reads and pools, and what tells two encoders apart.

Both belong to the model, not to the user: a model folder says them, an index records them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.entries import name_fault, read_record, shown
from citerec.errors import ModelError
from citerec.text import EncoderForm

NAME = "citerec_encoder.json"  # what our own trainer says of a model, in its folder
SPECTER_TOKENS = 512


class Pooling(StrEnum):
    """How the vectors of the tokens become one."""

    CLS = "cls"  # that of the first token, as SPECTER does
    MEAN = "mean"
    MAX = "max"


class Similarity(StrEnum):
    """How close two vectors are."""

    L2 = "l2"  # minus the Euclidean distance, as SPECTER is trained
    COSINE = "cosine"  # vectors of unit length, inner product


class Reads(StrEnum):
    """What is read at once."""

    WHOLE = "whole"  # title and abstract as one text
    SENTENCES = "sentences"  # the title and each sentence of the abstract, summed up to unit length


class Separator(StrEnum):
    """What stands between title and abstract."""

    TOKEN = "sep"  # the tokenizer's separator token
    SPACE = "space"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """How an encoder reads and pools. The defaults are SPECTER's."""

    pooling: Pooling = Pooling.CLS
    max_tokens: int = SPECTER_TOKENS  # with the special tokens
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
        """Read a spec as `asdict` wrote it.

        Raises:
            KeyError, TypeError, ValueError: If it is none.
        """
        return cls(
            pooling=Pooling(content["pooling"]),
            max_tokens=int(content["max_tokens"]),
            form=EncoderForm(content["form"]),
            separator=Separator(content["separator"]),
            similarity=Similarity(content["similarity"]),
            reads=Reads(content.get("reads", Reads.WHOLE)),  # older ones do not tell
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What an index records of its encoder."""

    name: str  # as the user named it
    source: str  # a hub id, or a folder (relative to the index where it lies inside)
    weights: str  # sha256 of the weights, the adapter's included
    tokenizer: str  # sha256 of the tokenizer
    dim: int
    spec: EncoderSpec
    revision: str = ""  # the commit of a hub's model, if it is one

    @property
    def key(self) -> tuple[Any, ...]:
        """What two encoders share if and only if their vectors can be compared."""
        return (self.weights, self.tokenizer, self.dim, self.spec)

    def to_json(self) -> dict[str, Any]:
        """Return it as the manifest of an index holds it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: If it is none.
        """
        texts = ("name", "source", "weights", "tokenizer")
        return cls(
            **{field: str(content[field]) for field in texts},
            dim=int(content["dim"]),
            spec=EncoderSpec.from_json(content["spec"]),
            revision=str(content.get("revision", "")),
        )

    def differs_from(self, other: Self) -> str:
        """Say what the difference in `key` is."""
        if self.weights != other.weights:
            return f"another model (weights {self.weights[:8]})"
        if self.tokenizer != other.tokenizer:
            return "a model with another tokenizer"
        return f"a model that reads or pools otherwise ({self.dim} dimensions, {self.spec})"

    def __str__(self) -> str:
        return f"{self.name} (weights {self.weights[:8]})"


def read_spec(folder: Path) -> EncoderSpec:
    """Read how the encoder in a model folder reads and pools.

    Our own trainer's word comes first, then that of sentence-transformers; a folder that says nothing is taken for
    a model of SPECTER's kind.

    Raises:
        ModelError: If what the folder says cannot be read, or asks for what citerec does not do.
    """
    if (folder / NAME).is_file():
        return _parse(folder / NAME, EncoderSpec.from_json)
    if (folder / "modules.json").is_file():
        return _sentence_transformers(folder)
    return EncoderSpec()


def write_spec(folder: Path, spec: EncoderSpec) -> None:
    """Say in a model folder how its encoder reads and pools."""
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
            f"{folder / 'modules.json'}: the model lies in {modules[0][1]}/; expected it in the folder itself"
        )
    about = _optional(folder / "sentence_bert_config.json")
    more = _optional(folder / "config_sentence_transformers.json")
    if about.get("do_lower_case") or more.get("default_prompt_name"):
        raise ModelError(
            f"{folder} lower-cases its texts or puts a prompt before them; that cannot be done here"
        )
    if fault := name_fault(modules[1][1].rstrip("/")):
        raise ModelError(f"{folder / 'modules.json'}: {shown(modules[1][1])} {fault}")
    return EncoderSpec(
        pooling=_parse(folder / modules[1][1] / "config.json", _pooling),
        max_tokens=about.get("max_seq_length") or _positions(folder),
        separator=Separator.SPACE,
        similarity=_similarity(folder, kinds, more.get("similarity_fn_name")),
    )


def _modules(content: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return kind and path of each module."""
    return [(module["type"].rpartition(".")[2], module["path"]) for module in content]


def _similarity(folder: Path, kinds: list[str], named: str | None) -> Similarity:
    """Unit vectors rank alike by cosine, inner product and distance; others only as their model says."""
    if "Normalize" in kinds or named in {None, "cosine"}:
        return Similarity.COSINE
    if named == "euclidean":
        return Similarity.L2
    raise ModelError(f"{folder}: its similarity is {named!r}; expected cosine or euclidean")


def _positions(folder: Path) -> int:
    """Return how many tokens sentence-transformers reads where nobody says."""
    tokens = _optional(folder / "tokenizer_config.json").get("model_max_length")
    positions = _optional(folder / "config.json").get("max_position_embeddings")
    return min(int(n) for n in (tokens, positions, SPECTER_TOKENS) if n)


def _pooling(content: Mapping[str, Any]) -> Pooling:
    """Read 1_Pooling/config.json, of sentence-transformers before and since it names the mode."""
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
        raise ModelError(f"{path}: cannot be made out ({error!r}); is it whole?") from error
