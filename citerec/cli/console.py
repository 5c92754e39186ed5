"""What all commands write: messages and progress on stderr, results on stdout."""

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer

from citerec.config import Settings, setting
from citerec.display import visible, visible_line
from citerec.errors import OutputError, writing
from citerec.types import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from citerec.bibliography.entry import PaperList

LINE_SECONDS = 60.0  # between two lines of progress where stderr is no terminal


class ConsoleOutput(Settings):
    """How much a command writes to stderr."""

    quiet: bool = setting(False, "Print only the result.")
    verbose: bool = setting(False, "Print details on stderr.")

    def log(self, message: str) -> None:
        """Print a message, unless quiet."""
        if not self.quiet:
            _echo(message)

    def summary(self, *lines: str) -> None:
        """Print lines on stdout, unless quiet."""
        if not self.quiet:
            write_lines(*lines)

    def detail(self, message: str) -> None:
        """Print a message if verbose."""
        if self.verbose:
            _echo(message)

    def warn(self, message: str) -> None:
        """Print a warning, always."""
        _echo(f"warning: {message}")

    @contextmanager
    def progress(self, *, in_bytes: str = "") -> Generator[Progress]:
        """Show progress; yield a callback that receives task, done and total.

        On a terminal these are bars; elsewhere, as in a log file, there is a line a minute, with the rate. The task
        `in_bytes` is counted in bytes.
        """

        def amount(what: str, done: int, total: int) -> str:
            if what == in_bytes:
                return f"{done / 2**20:,.1f}/{total / 2**20:,.1f} MB"
            return f"{done:,}/{total:,}"

        if self.quiet or not sys.stderr.isatty():
            last = monotonic()
            starts: dict[str, tuple[float, int]] = {}  # time and done, by task

            def line(what: str, done: int, total: int) -> None:
                nonlocal last
                now = monotonic()
                begun, before = starts.setdefault(what, (now, done))
                if done < before:  # another round of the task
                    begun, before = starts[what] = (now, done)
                if now - last >= LINE_SECONDS:
                    last = now
                    rate = (done - before) / max(now - begun, 1e-9)
                    of_time = (
                        f"{rate / 2**20:,.1f} MB"
                        if what == in_bytes
                        else f"{rate:,.3g}"
                    )
                    self.log(
                        f"{what}: {amount(what, done, total)} ({of_time} a second)"
                    )

            yield line
            return
        from rich.progress import (
            BarColumn,
            Progress,
            TaskID,
            TextColumn,
            TimeRemainingColumn,
        )

        from citerec.export.terminal import PlainConsole

        tasks: dict[str, TaskID] = {}
        with Progress(
            TextColumn("{task.description:>10}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=PlainConsole(stderr=True),
            transient=True,
        ) as bar:

            def update(what: str, done: int, total: int) -> None:
                shown = amount(what, done, total)
                if what not in tasks:
                    tasks[what] = bar.add_task(what, amount=shown)
                bar.update(tasks[what], completed=done, total=total, amount=shown)

            yield update


def read_list(path: str | Path, console: ConsoleOutput) -> "PaperList":
    """Read a list of papers; warn of what is read otherwise than its bytes state."""
    from citerec.corpus.lists import read_paper_list

    listed = read_paper_list(path)
    for notice in listed.notices:
        console.warn(notice)
    return listed


def fail(message: str, code: int) -> int:
    """Print in one line on stderr why the command ends; return its exit code."""
    line = visible(message)
    _echo(f"error: {line}" if code == 2 else line)
    return code


def _echo(message: str) -> None:
    """Write one line to stderr, without control characters."""
    typer.echo(f"citerec: {visible_line(message)}", err=True)


def show(renderable: "RenderableType") -> None:
    """Print a rich table or text on stdout."""
    from citerec.export.terminal import PlainConsole

    console = PlainConsole()
    if not console.is_terminal:
        console = PlainConsole(width=max(console.width, 110))
    # if rich prints directly, it ends the process at a closed pipe
    with console.capture() as text:
        console.print(renderable)
    write_result(text.get())


def check_output(output: Path | None) -> None:
    """Refuse an output file that cannot be written, before the work."""
    from citerec.files.atomic import check_parent

    if output:
        check_parent(output)
        if output.is_dir():
            raise OutputError(f"cannot write {output}: it is a folder; name a file")


def write_lines(*lines: str) -> None:
    """Print lines on stdout, without control characters."""
    write_result("".join(f"{visible_line(line)}\n" for line in lines))


def write_result(text: str, output: Path | None = None) -> None:
    """Write a result to stdout or to a file; the file is replaced as a whole."""
    write_pieces([text], output)


def discard_stdout() -> None:
    """Discard what is left in the buffer of stdout, and what will be written to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_pieces(pieces: Iterable[str], output: Path | None = None) -> None:
    """Write a result piece by piece as it is produced, otherwise as `write_result`."""
    if output is None:
        for piece in pieces:
            try:
                sys.stdout.buffer.write(piece.encode())
                sys.stdout.buffer.flush()
            except BrokenPipeError:  # its reader wants no more, which is no error
                raise
            except OSError as error:
                discard_stdout()
                raise OutputError(
                    f"cannot write standard output: {error.strerror}"
                ) from error
        return
    from citerec.files.atomic import replacing

    check_output(output)
    # a device or a pipe is not replaced
    is_special = output.exists() and not output.is_file()
    with (
        writing(output),
        nullcontext(output) if is_special else replacing(output, follow=True) as file,
        file.open("wb") as stream,
    ):
        stream.writelines(piece.encode() for piece in pieces)
