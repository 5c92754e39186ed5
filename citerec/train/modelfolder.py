"""What the folders of trained models have in common: their story, and who may be replaced."""

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
from citerec.train.data import splits_sha256

TRAINING = "training.json"
PACKAGES = ("torch", "transformers", "accelerate")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecord:
    """What is told of a training: in training.json whole, in the model card in short."""

    base: str
    weights: str  # sha256 of the base model's
    index: str
    corpus: str  # sha256
    splits: str  # sha256
    counts: Mapping[str, int]
    settings: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]  # measures, the first of them before training
    best: int  # the epoch, or the update, whose weights these are
    provenance: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
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
    def counted(self) -> str:
        """The counts as lines of Markdown."""
        lines = [f"- {count:,} {name.replace('_', ' ')}" for name, count in self.counts.items()]
        return "\n".join(lines)

    @property
    def set_to(self) -> str:
        """The settings, one a line."""
        return "\n".join(f"{name} = {value}" for name, value in self.settings.items())


def check_target(output: Path, spec: str, *, force: bool) -> None:
    """Refuse to replace what is no model of ours, and a model unless that is wanted.

    Args:
        output: The model folder to be.
        spec: The file that a model of this kind holds.
        force: Whether a model may be replaced.

    Raises:
        ConfigError: If something else is there.
        ModelExistsError: If a model is there, and nobody said so.
        OutputError: If the name is too long.
    """
    check_name(output)
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    if not (output / spec).is_file() or not (output / TRAINING).is_file():
        raise ConfigError(
            f"{output} is there and is no model that citerec trained; name another folder with --output"
        )
    if not force:
        raise ModelExistsError(output)


def was_trained_so(model: Path, index: IndexFolder, settings: Mapping[str, Any]) -> bool:
    """Return whether there is a model that was trained on these papers and splits, with these settings.

    A base model in a folder is told by name alone; its weights must be the same, where they are told and still there.
    """
    told = read_training(model)
    try:
        trained_so = told["provenance"]["settings"]
        trained_on = told["corpus_sha256"], told["splits_sha256"]
    except (KeyError, TypeError):
        return False
    wanted = orjson.loads(orjson.dumps(dict(settings)))
    if trained_so["model"] == Path(settings["model"]).name:  # all that is told of a local one
        wanted["model"] = trained_so["model"]
    here = index.manifest.corpus["sha256"], splits_sha256(index)
    same = trained_on == here and trained_so == wanted
    return same and has_weights(settings["model"], index, told.get("weights"))


def has_weights(name: str, index: IndexFolder, sha256: str | None) -> bool:
    """Return whether a model has these weights; yes if they are not known, or it lies in no folder here.

    Args:
        name: A folder, here or in the index, or any other name of a model.
        index: That the folder may lie in.
        sha256: Of the weights.
    """
    folders = [folder for folder in (Path(name), index.path / name) if folder.is_dir()]
    if sha256 is None or name in (*NAMES, MINILM) or not folders:
        return True
    try:
        return sha256_of_files(weights_files(folders[0])) == sha256
    except ModelError:
        return False


def read_training(model: Path) -> dict[str, Any]:
    """Return what training.json tells of a model; nothing if it cannot be read."""
    try:
        return orjson.loads((model / TRAINING).read_bytes())
    except (OSError, ValueError):
        return {}


def finish_folder(folder: Path, training: Mapping[str, Any], card: str) -> None:
    """Write what is told of a model beside its weights, which `save_pretrained` wrote for their owner alone."""
    write_json(folder / TRAINING, training)
    (folder / "README.md").write_text(card, encoding="utf-8")
    for weights in folder.glob("*.safetensors"):
        weights.chmod((folder / TRAINING).stat().st_mode)


def write_json(file: Path, content: Any) -> None:
    """Write JSON for people, too."""
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))


def cell(value: float | None) -> str:
    """Return a number as a table shows it."""
    return "" if value is None else f"{value:.4f}"
