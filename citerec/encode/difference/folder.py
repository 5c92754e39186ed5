"""The record of a folder that holds a difference, and the base model that it names."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import orjson

from citerec.cache import sha256_of_files
from citerec.encode.minilm import MINILM, minilm_folder
from citerec.entries import is_regular, read_record, shown
from citerec.errors import ModelError

RECORD, WEIGHTS = "difference.json", "difference.safetensors"
FORMAT, DTYPE = 1, "float16"
BASE_WEIGHTS = "model.safetensors"  # a base model has its weights in one file


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRecord:
    """What a difference is added to, and how it was stored."""

    base: str  # `minilm`, or the absolute path of a model folder
    base_weights: str  # sha256 of the weights of the base model
    prefix: str  # of the names of the base model's tensors in this model: empty, or `bert.`
    rank: int  # of the factors; 0 if no matrix is factored
    share: float = 1.0  # of the trained difference, in [0, 1]

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is written."""
        return {"format": FORMAT, "dtype": DTYPE, **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a record that `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If it is not one.
        """
        if (content["format"], content["dtype"]) != (FORMAT, DTYPE):
            raise ValueError(f"format {content['format']} of {content['dtype']}")
        return cls(
            **{name: str(content[name]) for name in ("base", "base_weights", "prefix")},
            rank=int(content["rank"]),
            share=float(content["share"]),
        )


def is_difference(folder: Path) -> bool:
    """Return whether a model folder holds a difference to a base model."""
    return (folder / RECORD).is_file()


def read_difference(folder: Path) -> DifferenceRecord:
    """Read the record of a folder that holds a difference.

    Raises:
        ModelError: If it cannot be parsed.
    """
    path = folder / RECORD
    try:
        return DifferenceRecord.from_json(orjson.loads(read_record(path)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be parsed ({error!r}); is it complete?") from error


def write_record(folder: Path, record: DifferenceRecord) -> None:
    """Write the record of a difference into its folder."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / RECORD).write_bytes(orjson.dumps(record.to_json(), option=options))


def base_folder(folder: Path) -> Path:
    """Return the folder of the base model that a difference names.

    Raises:
        MissingExtraError: If it is MiniLM, and its package is not installed.
        ModelError: If there is no such model, or it has other weights than the recorded ones.
    """
    record = read_difference(folder)
    base = named_base(record.base)
    if (found := base_weights(base)) != record.base_weights:
        raise ModelError(
            f"{folder} is a difference to {shown(record.base)} with the weights {record.base_weights[:8]}, but {base} "
            f"has the weights {found[:8]}; restore that model, or train anew"
        )
    return base


def tokenizer_folder(folder: Path) -> Path:
    """Return the folder of a model's tokenizer: that of the base model for a difference, else the model's own.

    Raises:
        MissingExtraError, ModelError: As `base_folder` raises.
    """
    return base_folder(folder) if is_difference(folder) else folder


def named_base(name: str) -> Path:
    """Return the folder of a base model by its name in a record.

    Raises:
        MissingExtraError: If it is MiniLM, and its package is not installed.
        ModelError: If there is no such model.
    """
    if name == MINILM:
        return minilm_folder()
    folder = Path(name)
    if not folder.is_absolute() or not is_regular(folder / BASE_WEIGHTS):
        raise ModelError(
            f"no base model {shown(name)}; expected {MINILM}, or the absolute path of a folder with {BASE_WEIGHTS}"
        )
    return folder


def base_weights(base: Path) -> str:
    """Return the sha256 of the weights of a base model."""
    return sha256_of_files([base / BASE_WEIGHTS])
