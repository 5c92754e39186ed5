"""The message of an interrupted training."""

import os
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import typer

from citerec.cli.console import ConsoleOutput


@contextmanager
def interruptible(target: Path, console: ConsoleOutput, ctx: typer.Context) -> Generator[None]:
    """Log what an interrupted training saved, and the command that resumes it."""
    from citerec.train.workspace import Workspace

    try:
        yield
    except KeyboardInterrupt:
        workspace = Workspace.for_model(target)
        if not workspace.is_there():
            console.log("the training had not started; nothing is saved")
        else:
            step = workspace.step
            saved = f"the checkpoint of update {step:,}" if step else "the preparation so far"
            console.log(f"saved {saved} in {workspace.folder}; resume: {_resuming(ctx)}")
        raise


def _resuming(ctx: typer.Context) -> str:
    """Return the command line that resumes this training."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "the same torchrun command with --resume"
    arguments: tuple[str, ...] = ctx.find_root().obj or tuple(sys.argv[1:])
    resume = () if "--resume" in arguments else ("--resume",)
    return shlex.join(("citerec", *arguments, *resume))
