"""The saved state of a word-vector training in its training folder; an interrupted training resumes from it."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from citerec.errors import ConfigError, ModelError
from citerec.lab.words.folder import read_words, write_words
from citerec.lab.words.model import WordModel
from citerec.train.workspace import CheckpointTimer, Workspace

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class KeptTraining:
    """Named states of a training, each in one file that is replaced as a whole, and the best model so far."""

    workspace: Workspace | None = None  # None to save nothing
    plan: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of the training folder
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def save(self, name: str, arrays: Arrays, facts: Mapping[str, Any]) -> None:
        """Save a state.

        Args:
            name: The name of the state; an earlier state of this name is replaced.
            arrays: By name.
            facts: JSON values.
        """
        if self.workspace is None:
            return
        self.timer.begin()
        self._begun(self.workspace)
        self.workspace.save(name, arrays, facts)
        self.timer.done()

    def save_if_due(self, name: str, arrays: Arrays, facts: Mapping[str, Any]) -> None:
        """Save a state if a checkpoint is due."""
        if self.timer.is_due():
            self.save(name, arrays, facts)

    def load(self, name: str) -> tuple[Arrays, Mapping[str, Any]] | None:
        """Return the arrays and facts of a state; None if it was never saved.

        Raises:
            ConfigError: If it is damaged.
        """
        return self.workspace.load(name) if self.workspace else None

    def save_model(self, number: int, model: WordModel) -> None:
        """Save the best model so far under a number."""
        if self.workspace is None:
            return
        folder = self._begun(self.workspace) / f"best-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_words(folder, model)

    def load_model(self, number: int) -> WordModel:
        """Open the saved model with this number.

        Raises:
            ConfigError: If it is damaged.
        """
        if self.workspace is None:
            raise ValueError("nothing is saved, so there is no model to open")
        try:
            return read_words(self.workspace.folder / f"best-{number}")
        except ModelError as error:
            raise ConfigError(f"{error}; run again without --resume") from error

    def remove_models(self, *, but: int) -> None:
        """Remove all saved models but one."""
        for other in self.workspace.folder.glob("best-*") if self.workspace else ():
            if other.name != f"best-{but}":
                shutil.rmtree(other, ignore_errors=True)

    def _begun(self, workspace: Workspace) -> Path:
        """Create the folder when the first state is saved."""
        if not workspace.is_there():
            workspace.begin(self.plan)
        return workspace.folder
