"""The files of a model folder: its weights, its tokenizer, and those that its records name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from citerec.encode.difference import RECORD, is_difference, tokenizer_folder
from citerec.encode.difference import WEIGHTS as DIFFERENCE
from citerec.errors import ModelError, shown
from citerec.io import name_fault, read_record

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # in order of preference
TOKENIZER = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer_config.json",
)
NAMING = ("vocab_file", "merges_file", "tokenizer_file", "spm_file", "sp_model_file")  # keys


def weights_files(folder: Path) -> list[Path]:
    """Return the weight files of a model: safetensors, else PyTorch's format.

    PyTorch's files are opened by `torch.load(weights_only=True)`, which runs no code. A difference to a base model also
    has its record, which names the sha256 of the weights of the base model.

    Raises:
        ModelError: If there are none.
    """
    if is_difference(folder) and (folder / DIFFERENCE).is_file():
        return [folder / RECORD, folder / DIFFERENCE]
    for pattern in WEIGHTS:
        if files := sorted(folder.glob(pattern)):
            return files
    raise ModelError(f"{folder} holds no weights; expected model.safetensors")


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that define the tokenizer of a model; those of the base model for a difference.

    Raises:
        MissingExtraError, ModelError: If the base model of a difference is missing, or another one.
    """
    home = tokenizer_folder(folder)
    return [home / name for name in TOKENIZER if (home / name).is_file()]


def check_named_files(folder: Path) -> None:
    """Refuse a model folder whose records name a file outside the folder: transformers would open it.

    A path to a file that does not exist is ignored: many published models name the machine that they were made on.

    Raises:
        ModelError: If a record names such a file.
    """
    for record, named in _named(folder):
        if not (fault := name_fault(named)):
            continue
        try:
            leads_out = record.endswith(".index.json") or (folder / str(named)).exists()
        except (OSError, ValueError):
            leads_out = False
        if leads_out:
            raise ModelError(f"{folder / record} names the file {shown(named)}, which {fault}")


def _named(folder: Path) -> Iterator[tuple[str, object]]:
    """Yield the name of a record and each file that it names."""
    for index in sorted(folder.glob("*.index.json")):
        weights: Any = _content(index).get("weight_map")
        for named in set(map(str, weights.values())) if isinstance(weights, dict) else ():
            yield index.name, named
    tokenizer = _content(folder / "tokenizer_config.json")
    for key in NAMING:
        if tokenizer.get(key) is not None:
            yield "tokenizer_config.json", tokenizer[key]


def _content(file: Path) -> dict[str, Any]:
    """Return a JSON object; an empty one if the file cannot be read, which its reader will report."""
    try:
        content: Any = orjson.loads(read_record(file))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
