"""What a training of words has reached so far, in its training folder: a training that is stopped resumes from it."""

import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.atomic import replacing
from citerec.errors import ConfigError, ModelError
from citerec.lab.words.folder import read_words, write_words
from citerec.lab.words.model import WordModel
from citerec.train.due import CheckpointTimer
from citerec.train.workspace import Workspace

FACTS = "facts"  # JSON, among the arrays of a file

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class KeptTraining:
    """Named states of a training, each one file that is replaced as a whole, and the best model so far."""

    workspace: Workspace | None = None  # None for a training that keeps nothing
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])  # the folder is made with it
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def save(self, name: str, arrays: Arrays, facts: Mapping[str, Any]) -> None:
        """Write a state.

        Args:
            name: Of the state; the one of the same name is replaced.
            arrays: Of numbers, by name.
            facts: JSON values.
        """
        if self.workspace is None:
            return
        self.timer.begin()
        folder = self._begun(self.workspace)
        content = {**arrays, FACTS: np.frombuffer(json.dumps(facts).encode(), np.uint8)}
        with replacing(folder / f"{name}.npz") as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **content)
        self.timer.done()

    def save_if_due(self, name: str, arrays: Arrays, facts: Mapping[str, Any]) -> None:
        """Write a state if the last one was written some minutes ago."""
        if self.timer.is_due():
            self.save(name, arrays, facts)

    def load(self, name: str) -> tuple[Arrays, Mapping[str, Any]] | None:
        """Return the arrays and facts of a state; None if it was never written.

        Raises:
            ConfigError: If it is damaged.
        """
        if self.workspace is None:
            return None
        file = self.workspace.folder / f"{name}.npz"
        if not file.is_file():
            return None
        try:
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as read:
                arrays = {part: read[part] for part in read.files}
            return arrays, json.loads(arrays.pop(FACTS).tobytes())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ConfigError(f"{file} is damaged ({error}); leave --resume out") from error

    def save_model(self, number: int, model: WordModel) -> None:
        """Write a model that is the best so far; the one before stays until it is removed."""
        if self.workspace is None:
            return
        folder = self._begun(self.workspace) / f"best-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_words(folder, model)

    def load_model(self, number: int) -> WordModel:
        """Open the model that was written under this number.

        Raises:
            ConfigError: If it is damaged.
        """
        if self.workspace is None:
            raise ValueError("nothing is kept, so there is no model to open")
        try:
            return read_words(self.workspace.folder / f"best-{number}")
        except ModelError as error:
            raise ConfigError(f"{error}; leave --resume out") from error

    def remove_models(self, *, but: int) -> None:
        """Remove every model except one."""
        for other in self.workspace.folder.glob("best-*") if self.workspace else ():
            if other.name != f"best-{but}":
                shutil.rmtree(other, ignore_errors=True)

    def _begun(self, workspace: Workspace) -> Path:
        """Make the folder at the first state that is written."""
        if not workspace.is_there():
            workspace.begin(self.plan)
        return workspace.folder
