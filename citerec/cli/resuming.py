"""What a command says when a training is interrupted."""

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
    """Say what is kept of a training that is interrupted, and the command that goes on with it."""
    from citerec.train.workspace import Workspace

    try:
        yield
    except KeyboardInterrupt:
        workspace = Workspace.beside(target)
        if not workspace.is_there():
            console.log("the training had not begun; nothing is kept")
        else:
            step = workspace.step
            kept = f"the checkpoint of update {step:,}" if step else "what was prepared so far"
            console.log(f"kept {kept}, in {workspace.folder}; go on: {_resuming(ctx)}")
        raise


def _resuming(ctx: typer.Context) -> str:
    """Return the command line that goes on with the training of this one."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return "the same torchrun command with --resume"
    arguments: tuple[str, ...] = ctx.find_root().obj or tuple(sys.argv[1:])
    resume = () if "--resume" in arguments else ("--resume",)
    return shlex.join(("citerec", *arguments, *resume))
