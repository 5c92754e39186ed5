"""What every training begins with: the packages that it needs, its folder, a base model's name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citerec.encode.source import INSIDE, Source
from citerec.errors import extra
from citerec.train.workspace import Workspace
from citerec.types import Log


def check_installed(*, seed: int, threads: int) -> None:
    """Import what trains; set the seed of all chance and the number of threads, 0 for one per processor.

    Raises:
        MissingExtraError: If it is not installed.
    """
    # Threads of OpenMP that wait for each other in a loop slow training down tenfold where others work, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.set_seed(seed)  # a head that the base model lacks is made up
    if threads:
        torch.set_num_threads(threads)


def open_workspace(
    workspace: Workspace, plan: Mapping[str, Any], *, resume: bool, first: bool, log: Log
) -> bool:
    """Make the training folder, or go on with the one that is there.

    Args:
        workspace: The folder.
        plan: What must be the same to go on.
        resume: Whether to go on.
        first: Whether this is the first of several processes, which makes the folder.
        log: Receives which it is.

    Returns:
        Whether there is a checkpoint to go on from.

    Raises:
        ConfigError: If the training in it was begun otherwise.
    """
    if resume and workspace.is_there():
        workspace.check(plan)
        last = workspace.checkpoint()
        log(f"going on from {last.name}" if last else "no checkpoint yet: beginning anew")
        return last is not None
    if not first:  # the first process has made it
        return False
    if resume:
        log(f"nothing to go on with at {workspace.folder}: beginning anew")
    elif workspace.is_there():
        log("a training that was cut short is given up; --resume would have gone on with it")
    workspace.begin(plan)
    return False


def resume_or_discard(
    workspace: Workspace, plan: Mapping[str, Any], *, resume: bool, log: Log
) -> None:
    """Check that the training in a folder can be resumed, or remove the folder.

    Args:
        workspace: The folder; nothing is made where there is none.
        plan: What must be the same to resume.
        resume: Whether to resume.
        log: Receives a line that says what happened, if anything was or should have been there.

    Raises:
        ConfigError: If the training in it was begun with other settings.
    """
    if not workspace.is_there():
        if resume:
            log(f"nothing to go on with at {workspace.folder}: beginning anew")
    elif resume:
        workspace.check(plan)
        log(f"resuming from {workspace.folder}")
    else:
        log("a training that was cut short is given up; --resume would have gone on with it")
        workspace.remove()


def told_base(source: Source) -> str:
    """Return the name of a base model, as a model card may tell it: where it lies here is nobody else's matter."""
    local = source.place.startswith(INSIDE) or Path(source.place).is_absolute()
    return source.folder.name if local else source.name


def discard(*_: object) -> None:
    """Say nothing: of several processes one speaks."""
