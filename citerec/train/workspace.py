"""The training folder beside the model to be: checkpoints, and what they were made with."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.atomic import replacing
from citerec.errors import ConfigError, writing

PLAN, WHOLE, BEFORE = "training.json", "whole", "before.json"
Numbers = npt.NDArray[Any]

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class Workspace:
    """A training folder."""

    folder: Path

    @classmethod
    def beside(cls, output: Path) -> "Workspace":
        """Return the training folder of a model."""
        output = output.absolute()
        return cls(output.with_name(f".{output.name}.training"))

    def is_there(self) -> bool:
        """Whether a training was begun and not ended."""
        return (self.folder / PLAN).is_file()

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Make the folder anew.

        Raises:
            OutputError: If it cannot be made.
        """
        with writing(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True)
            _write(self.folder / PLAN, plan)

    def check(self, plan: Mapping[str, Any]) -> None:
        """Refuse to go on with a training that was begun otherwise.

        Raises:
            ConfigError: If it was, or the folder is damaged.
        """
        begun = _read(self.folder / PLAN)
        now = orjson.loads(orjson.dumps(plan))
        if begun is None:
            raise ConfigError(f"{self.folder / PLAN} cannot be read; leave --resume out")
        other = sorted(key for key in begun.keys() | now if begun.get(key) != now.get(key))
        if other:
            said = "; ".join(f"{key} was {begun.get(key)}, is {now.get(key)}" for key in other[:3])
            raise ConfigError(
                f"the training in {self.folder} was begun otherwise: {said}; say the same, or leave --resume out"
            )

    def checkpoint(self) -> Path | None:
        """Return the last whole checkpoint, if any; those that are not whole are removed."""
        whole: dict[int, Path] = {}
        for folder in self.folder.glob("checkpoint-*"):
            number = _CHECKPOINT.fullmatch(folder.name)
            if number and (folder / WHOLE).is_file():
                whole[int(number[1])] = folder
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return whole[max(whole)] if whole else None

    @property
    def step(self) -> int | None:
        """The number of updates (or epochs) of the last whole checkpoint; None if there is none."""
        last = self.checkpoint()
        return int(last.name.rpartition("-")[2]) if last else None

    def seal(self, step: int) -> None:
        """Say that the checkpoint of a step is whole."""
        (self.folder / f"checkpoint-{step}" / WHOLE).touch()

    def save(self, name: str, arrays: Mapping[str, Numbers]) -> None:
        """Keep arrays that took long to make."""
        for part, numbers in arrays.items():
            file = self.folder / f"{name}_{part}.npy"
            with replacing(file) as temporary, temporary.open("wb") as stream:
                np.save(stream, numbers)

    def saved(self, name: str, *parts: str) -> dict[str, Numbers] | None:
        """Return the arrays that were kept; None unless all of these are there."""
        files = {part: self.folder / f"{name}_{part}.npy" for part in parts}
        if not all(file.is_file() for file in files.values()):
            return None
        return {part: np.load(file) for part, file in files.items()}

    def save_baseline(self, measures: Mapping[str, Any]) -> None:
        """Keep what was measured before the training."""
        _write(self.folder / BEFORE, measures)

    def baseline(self) -> dict[str, Any] | None:
        """Return what was measured before the training."""
        return _read(self.folder / BEFORE)

    def remove(self) -> None:
        """Remove the folder: the training is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
