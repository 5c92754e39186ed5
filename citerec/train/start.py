"""The start of every training: installed packages, the training folder, the name of the base model."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec.encode.source import INSIDE, Source
from citerec.errors import extra
from citerec.train.workspace import Workspace
from citerec.types import Log


def check_installed(*, seed: int, threads: int) -> None:
    """Import the training packages; set the random seed and the number of threads (0: one per processor).

    Raises:
        MissingExtraError: If a package is not installed.
    """
    # Busy waiting of OpenMP threads slows training tenfold on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.set_seed(seed)  # a new classification head is initialised at random
    if threads:
        torch.set_num_threads(threads)


def open_workspace(
    workspace: Workspace, plan: Mapping[str, Any], *, resume: bool, first: bool, log: Log
) -> bool:
    """Create the training folder, or continue with an existing one.

    Args:
        workspace: The folder.
        plan: The facts that must be equal to continue.
        resume: Whether to continue.
        first: Whether this is the first of several processes, which creates the folder.
        log: Receives a line that says which of the two happened.

    Returns:
        Whether there is a checkpoint to continue from.

    Raises:
        ConfigError: If the training in the folder was started with other settings.
    """
    if resume and workspace.is_there():
        workspace.check(plan)
        last = workspace.checkpoint()
        log(f"resuming from {last.name}" if last else "no checkpoint yet: starting again")
        return last is not None
    if not first:  # the first process has created it
        return False
    if resume:
        log(f"nothing to resume at {workspace.folder}: starting again")
    elif workspace.is_there():
        log("an unfinished training is discarded; use --resume to continue one")
    workspace.begin(plan)
    return False


def resume_or_discard(
    workspace: Workspace, plan: Mapping[str, Any], *, resume: bool, log: Log
) -> None:
    """Check that the training in a folder can be resumed, or remove the folder.

    Args:
        workspace: The folder; nothing is created.
        plan: The facts that must be equal to resume.
        resume: Whether to resume.
        log: Receives a line that says what happened, if there was or should have been a training.

    Raises:
        ConfigError: If the training in the folder was started with other settings.
    """
    if not workspace.is_there():
        if resume:
            log(f"nothing to resume at {workspace.folder}: starting again")
    elif resume:
        workspace.check(plan)
        log(f"resuming from {workspace.folder}")
    else:
        log("an unfinished training is discarded; use --resume to continue one")
        workspace.remove()


def base_name(source: Source) -> str:
    """Return the name of a base model for the model card: without the local path of a folder."""
    local = source.place.startswith(INSIDE) or Path(source.place).is_absolute()
    return source.folder.name if local else source.name


def discard(*_: object) -> None:
    """Ignore all arguments: the log and progress callback of every process but the first."""
