"""The training folder next to the model folder: checkpoints, intermediate results, and the plan they belong to."""

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
    def for_model(cls, output: Path) -> "Workspace":
        """Return the training folder that belongs to a model folder."""
        output = output.absolute()
        return cls(output.with_name(f".{output.name}.training"))

    def is_there(self) -> bool:
        """Return whether there is an unfinished training."""
        return (self.folder / PLAN).is_file()

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Create the folder; remove an existing one.

        Raises:
            OutputError: If it cannot be created.
        """
        with writing(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True)
            _write(self.folder / PLAN, plan)

    def check(self, plan: Mapping[str, Any]) -> None:
        """Refuse to continue a training that was started with another plan.

        Raises:
            ConfigError: If the plan differs, or the folder is damaged.
        """
        started = _read(self.folder / PLAN)
        now = orjson.loads(orjson.dumps(plan))
        if started is None:
            raise ConfigError(f"{self.folder / PLAN} cannot be read; run again without --resume")
        changed = sorted(key for key in started.keys() | now if started.get(key) != now.get(key))
        if changed:
            differences = "; ".join(
                f"{key} was {started.get(key)}, is {now.get(key)}" for key in changed[:3]
            )
            raise ConfigError(
                f"the training in {self.folder} was started with other settings: {differences}; "
                "use the same settings, or run again without --resume"
            )

    def checkpoint(self) -> Path | None:
        """Return the last complete checkpoint, or None; incomplete checkpoints are removed."""
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
        """The update (or epoch) of the last complete checkpoint; None if there is none."""
        last = self.checkpoint()
        return int(last.name.rpartition("-")[2]) if last else None

    def seal(self, step: int) -> None:
        """Mark the checkpoint of a step as complete."""
        (self.folder / f"checkpoint-{step}" / WHOLE).touch()

    def save(self, name: str, arrays: Mapping[str, Numbers]) -> None:
        """Save arrays that are expensive to compute.

        Args:
            name: The name of the result; an earlier one of this name is replaced.
            arrays: By part.
        """
        for part, numbers in arrays.items():
            file = self.folder / f"{name}_{part}.npy"
            with replacing(file) as temporary, temporary.open("wb") as stream:
                np.save(stream, numbers)

    def saved(self, name: str, *parts: str) -> dict[str, Numbers] | None:
        """Return saved arrays by part; None unless all parts exist."""
        files = {part: self.folder / f"{name}_{part}.npy" for part in parts}
        if not all(file.is_file() for file in files.values()):
            return None
        return {part: np.load(file) for part, file in files.items()}

    def save_baseline(self, measures: Mapping[str, Any]) -> None:
        """Save the measures before the training."""
        _write(self.folder / BEFORE, measures)

    def baseline(self) -> dict[str, Any] | None:
        """Return the measures before the training; None if there are none."""
        return _read(self.folder / BEFORE)

    def remove(self) -> None:
        """Remove the folder after the training."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_bytes(orjson.dumps(content, option=_OPTIONS))


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
