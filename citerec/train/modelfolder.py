"""What the folders of all trained models share: the training record, and which folders may be replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import check_name
from citerec.cache import sha256_of_files
from citerec.encode.model import weights_files
from citerec.encode.source import MINILM, NAMES
from citerec.errors import ConfigError, ModelError, ModelExistsError
from citerec.folder import IndexFolder
from citerec.manifest import TRAINING
from citerec.rules.trained_on import data_of

PACKAGES = ("torch", "transformers", "accelerate")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecord:
    """The record of a training: complete in training.json, summarised in the model card."""

    base: str
    weights: str  # sha256 of the base model's weights
    index: str
    corpus: str  # sha256
    splits: str  # sha256
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]  # measures; the first is before training
    best: int  # the epoch or update of the saved weights
    provenance: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "base": self.base,
            "weights": self.weights,
            "index": self.index,
            "corpus_sha256": self.corpus,
            "splits_sha256": self.splits,
            "counts": dict(self.counts),
            "history": list(self.history),
            "packages": {name: version(name) for name in PACKAGES},
            "provenance": dict(self.provenance),
        }

    @property
    def counts_markdown(self) -> str:
        """The counts as a Markdown list."""
        lines = [f"- {count:,} {name.replace('_', ' ')}" for name, count in self.counts.items()]
        return "\n".join(lines)

    @property
    def settings_text(self) -> str:
        """The settings, one per line."""
        return "\n".join(f"{name} = {value}" for name, value in self.settings.items())


def check_target(output: Path, spec: str, *, force: bool) -> None:
    """Refuse to replace a folder that is no model of this kind, and a model without `force`.

    Args:
        output: The model folder to write.
        spec: The name of the file that every model of this kind holds.
        force: Whether a model may be replaced.

    Raises:
        ConfigError: If the folder holds something else.
        ModelExistsError: If the folder holds a model and `force` is false.
        OutputError: If the name is too long.
    """
    check_name(output)
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / spec).is_file() or not (output / TRAINING).is_file():
        raise ConfigError(
            f"{output} exists and is no model that citerec trained; choose another folder with --output"
        )
    if not force:
        raise ModelExistsError(output)


def was_trained_so(model: Path, index: IndexFolder, settings: Mapping[str, Any]) -> bool:
    """Return whether a model was trained on these papers and splits with these settings.

    The record has only the name of a base model in a folder. Its weights must also be the same if their checksum is
    recorded and the folder exists.
    """
    record = read_training(model)
    try:
        recorded_settings = record["provenance"]["settings"]
        trained_on = record["corpus_sha256"], record["splits_sha256"]
    except (KeyError, TypeError):
        return False
    expected = orjson.loads(orjson.dumps(dict(settings)))
    if (
        recorded_settings["model"] == Path(settings["model"]).name
    ):  # the record has only the name of a local model
        expected["model"] = recorded_settings["model"]
    same = trained_on == data_of(index) and recorded_settings == expected
    return same and has_weights(settings["model"], index, record.get("weights"))


def has_weights(name: str, index: IndexFolder, sha256: str | None) -> bool:
    """Return whether a model has these weights; true if they are unknown or the model is in no local folder.

    Args:
        name: A folder, here or in the index, or any other name of a model.
        index: An index that may contain the folder.
        sha256: The checksum of the weights; None if it is unknown.
    """
    folders = [folder for folder in (Path(name), index.path / name) if folder.is_dir()]
    if sha256 is None or name in (*NAMES, MINILM) or not folders:
        return True
    try:
        return sha256_of_files(weights_files(folders[0])) == sha256
    except ModelError:
        return False


def read_training(model: Path) -> dict[str, Any]:
    """Return the content of training.json; empty if it cannot be read."""
    try:
        return orjson.loads((model / TRAINING).read_bytes())
    except (OSError, ValueError):
        return {}


def finish_folder(folder: Path, training: Mapping[str, Any], card: str) -> None:
    """Write training.json and the model card, and give the weights the same file mode.

    `save_pretrained` makes the weights readable by their owner only.
    """
    write_json(folder / TRAINING, training)
    (folder / "README.md").write_text(card, encoding="utf-8")
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / TRAINING).stat().st_mode)


def write_json(file: Path, content: Any) -> None:
    """Write indented JSON."""
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))


def cell(value: float | None) -> str:
    """Format a number for a table; empty if there is none."""
    return "" if value is None else f"{value:.4f}"
