"""The training folder next to the model folder: checkpoints, intermediate results, and the plan they belong to.

A stopped training loses a few minutes at most: `CheckpointTimer` decides when its state is saved.
"""

import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.atomic import replacing
from citerec.errors import CiterecError, ConfigError, writing
from citerec.lock import try_lock
from citerec.types import Log

EVERY = 180.0  # seconds between checkpoints at least
CHECKPOINT_SHARE = 0.05  # of the training time that checkpoints may take at most
PLAN, WHOLE = "training.json", "whole"
FACTS = "facts"  # JSON, among the arrays of a file
Numbers = npt.NDArray[Any]

_HELD: dict[Path, int] = {}  # descriptors of the plans that this process has locked, by folder
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

    def open(self, plan: Mapping[str, Any], *, resume: bool, log: Log, create: bool = True) -> bool:
        """Check that the training in the folder can be resumed, or else start a new one; lock the folder.

        The system releases the lock when this process ends in any way.

        Args:
            plan: The facts that must be equal to resume.
            resume: Whether to resume.
            log: Receives a line if there is nothing to resume, or an unfinished training is discarded.
            create: Whether the folder of a new training is created at once.

        Returns:
            Whether there is a training to resume.

        Raises:
            ConfigError: If the training in the folder was started with other settings, or goes on in another process.
            OutputError: If the folder cannot be created.
        """
        if self.is_there():
            self._lock()
        if resume and self.is_there():
            self.check(plan)
            return True
        if resume:
            log(f"nothing to resume at {self.folder}: starting again")
        elif self.is_there():
            log("an unfinished training is discarded; use --resume to continue one")
        if create:
            self.begin(plan)
        else:
            self.remove()
        return False

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Create the folder; remove an existing one.

        Raises:
            OutputError: If it cannot be created.
        """
        with writing(self.folder):
            self._unlock()
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self.folder.mkdir(parents=True)
            (self.folder / PLAN).write_bytes(orjson.dumps(plan, option=_OPTIONS))
        self._lock()

    def _lock(self) -> None:
        """Lock the folder until it is removed, or this process ends.

        Raises:
            ConfigError: If another process has locked it.
        """
        self._unlock()
        with writing(self.folder):
            descriptor = os.open(self.folder / PLAN, os.O_RDONLY)
        if try_lock(descriptor) is False:
            os.close(descriptor)
            raise ConfigError(
                f"another process trains in {self.folder}; wait until it is done, or train into another --output"
            )
        _HELD[self.folder] = descriptor

    def _unlock(self) -> None:
        if self.folder in _HELD:
            os.close(_HELD.pop(self.folder))

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

    def save(
        self, name: str, arrays: Mapping[str, Numbers], facts: Mapping[str, Any] | None = None
    ) -> None:
        """Save an intermediate result in one file, which is replaced as a whole.

        Args:
            name: The name of the result; an earlier one of this name is replaced.
            arrays: By name.
            facts: JSON values.
        """
        content = {**arrays, FACTS: np.frombuffer(json.dumps({**(facts or {})}).encode(), np.uint8)}
        with replacing(self.folder / f"{name}.npz") as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **content)

    def load(self, name: str) -> tuple[dict[str, Numbers], dict[str, Any]] | None:
        """Return the arrays and facts of a saved result; None if it was never saved.

        Raises:
            ConfigError: If it is damaged.
        """
        file = self.folder / f"{name}.npz"
        if not file.is_file():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as read:
                arrays = {part: read[part] for part in read.files}
            return arrays, json.loads(arrays.pop(FACTS).tobytes())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ConfigError(f"{file} is damaged ({error}); run again without --resume") from error

    @contextmanager
    def removed_if_refused(self, kept: Collection[str] = ()) -> Generator[None]:
        """Remove the folder again if the training is refused before it holds more than its plan.

        Args:
            kept: Results that it may hold, too, as they are soon made again.
        """
        try:
            yield
        except CiterecError:
            quick = {PLAN, *(f"{name}.npz" for name in kept)}
            if self.folder in _HELD and {file.name for file in self.folder.iterdir()} <= quick:
                self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder after the training."""
        self._unlock()
        shutil.rmtree(self.folder, ignore_errors=True)


class CheckpointTimer:
    """Decides when a checkpoint is due: after `EVERY` seconds, or later if a checkpoint takes long to write."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Start to count; `clock` returns seconds."""
        self._clock = clock
        self._last = clock()
        self._began: float | None = None
        self._wait = EVERY

    def is_due(self) -> bool:
        """Return whether a checkpoint should be written now."""
        return self._clock() - self._last >= self._wait

    def begin(self) -> None:
        """Record that a checkpoint is started because it is due; its duration sets the next interval."""
        self._began = self._clock()

    def done(self) -> None:
        """Record that a checkpoint was written."""
        self._last = self._clock()
        if self._began is not None:
            self._wait = max(EVERY, (self._last - self._began) / CHECKPOINT_SHARE)
            self._began = None


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
