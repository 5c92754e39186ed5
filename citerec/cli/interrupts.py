"""SIGTERM and SIGHUP end a command as Ctrl-C does: it removes unfinished files; a training logs how to resume it."""

import shlex
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from citerec.cli.console import ConsoleOutput

ENDING = ("SIGTERM", "SIGHUP")  # SIGHUP does not exist on Windows


class EndedError(KeyboardInterrupt):
    """A signal ends this process."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code of a process that a signal ended: 128 + its number."""
        return 128 + self.number


def end_by_signals() -> None:
    """Let ending signals raise `EndedError`; signals that are ignored, as under nohup, stay ignored."""
    for number in _numbers():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def catch_interrupts() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again, if it ends the process at once until now."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ended_by(error: BaseException | None) -> EndedError | None:
    """Return the signal that caused an error, also indirectly: the clean-up may fail on a closed terminal."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, EndedError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _end(number: int, _: FrameType | None) -> NoReturn:
    for other in _numbers():  # a second signal must not interrupt the clean-up
        signal.signal(other, signal.SIG_IGN)
    raise EndedError(number)


def _numbers() -> list[signal.Signals]:
    return [getattr(signal, name) for name in ENDING if hasattr(signal, name)]


@contextmanager
def interruptible(target: Path, console: ConsoleOutput, ctx: typer.Context) -> Generator[None]:
    """Log what an interrupted training saved, and the command that resumes it."""
    try:
        yield
    except KeyboardInterrupt:
        folder = target.absolute().with_name(f".{target.name}.training")
        last = max((int(one.name[11:]) for one in folder.glob("checkpoint-*")), default=0)
        saved = f"the checkpoint of update {last:,}" if last else "what was prepared"
        console.log(f"{saved} is kept; resume: {resuming_command(ctx)}")
        raise


def resuming_command(ctx: typer.Context) -> str:
    """Return the command line that resumes this training."""
    arguments: tuple[str, ...] = ctx.find_root().obj or tuple(sys.argv[1:])
    resume = () if "--resume" in arguments else ("--resume",)
    return shlex.join(("citerec", *arguments, *resume))
