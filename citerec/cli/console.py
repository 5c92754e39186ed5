"""Shared by all commands: options, messages and progress on stderr, results on stdout."""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ELOOP
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.errors import OutputError
from citerec.text import visible, visible_line
from citerec.types import Log, Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

LINE_SECONDS = 60.0  # between two lines of progress where stderr is no terminal
LONGEST_MESSAGE = 2_000  # characters of an error message, which may quote a long value
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print details on stderr.")]
Index = Annotated[
    Path | None,
    typer.Option(help="The index folder; optional if indexes/ contains only one."),
]
Heap = Annotated[str | None, typer.Option(help="Maximum memory of the JVM, such as 2g.")]
Threads = Annotated[int, typer.Option(min=0, max=1024, help="Threads; 0 for one per processor.")]
Model = Annotated[str, typer.Option(help="A model, or none.")]


@dataclass(frozen=True, slots=True)
class ConsoleOutput:
    """The verbosity of a command on stderr."""

    quiet: bool = False
    verbose: bool = False

    def log(self, message: str) -> None:
        """Print a message, unless quiet."""
        if not self.quiet:
            self.line(message)

    def detail(self, message: str) -> None:
        """Print a message if verbose."""
        if self.verbose:
            self.line(message)

    def warn(self, message: str) -> None:
        """Print a warning, always."""
        self.line(f"warning: {message}")

    def line(self, message: str) -> None:
        """Print a line, always."""
        _echo(message)

    @contextmanager
    def status(self, message: str) -> Generator[None]:
        """Show a spinner with a message, on a terminal and unless quiet."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        with stderr_console().status(message):
            yield

    @contextmanager
    def progress(self, *, in_bytes: str = "") -> Generator[Callable[[str, int, int], None]]:
        """Show progress; yield a callback that receives task, done and total.

        On a terminal these are bars; elsewhere, as in a log file, there is a line a minute.

        Args:
            in_bytes: The task that is counted in bytes.
        """
        if self.quiet or not sys.stderr.isatty():
            yield _lines(self.log, in_bytes)
            return
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            Task,
            TaskID,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        class Rate(ProgressColumn):
            """How many a second, of late."""

            def render(self, task: Task) -> str:
                return f"{task.speed:,.0f}/s" if task.speed and task.description != in_bytes else ""

        tasks: dict[str, TaskID] = {}
        with Progress(
            TextColumn("{task.description:>10}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[amount]}", markup=False),
            Rate(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=stderr_console(),
            transient=True,
        ) as bar:

            def progress(what: str, done: int, total: int) -> None:
                amount = _amount(done, total, in_bytes=what == in_bytes)
                if what not in tasks:
                    tasks[what] = bar.add_task(what, amount=amount)
                bar.update(tasks[what], completed=done, total=total, amount=amount)

            yield progress


def _lines(log: Log, in_bytes: str) -> Progress:
    """Return what logs a line about the progress every `LINE_SECONDS`."""
    last = monotonic()

    def progress(what: str, done: int, total: int) -> None:
        nonlocal last
        if monotonic() - last >= LINE_SECONDS:
            last = monotonic()
            log(f"{what}: {_amount(done, total, in_bytes=what == in_bytes)}")

    return progress


def _amount(done: int, total: int, *, in_bytes: bool) -> str:
    if in_bytes:
        return f"{done / 2**20:,.1f}/{total / 2**20:,.1f} MB"
    return f"{done:,}/{total:,}"


def track(names: Sequence[str], progress: Progress) -> Iterator[str]:
    """Yield the names one by one, and report the progress."""
    for number, name in enumerate(names):
        progress("systems", number, len(names))
        yield name


def fail(message: str, code: int) -> int:
    """Print in one line on stderr why the command ends; return its exit code."""
    line = visible(message)
    if len(line) > LONGEST_MESSAGE:
        line = f"{line[:LONGEST_MESSAGE]} …"
    _echo(f"error: {line}" if code == 2 else line)
    return code


def _echo(message: str) -> None:
    """Write one line to stderr, without control characters."""
    typer.echo(f"citerec: {visible_line(message)}", err=True)


def stderr_console() -> "Console":
    """Return a rich console on stderr."""
    from citerec.export.terminal import PlainConsole

    return PlainConsole(stderr=True)


def show(renderable: "RenderableType") -> None:
    """Print a rich table or text on stdout."""
    from citerec.export.terminal import PlainConsole

    console = PlainConsole()
    if not console.is_terminal:
        console = PlainConsole(width=max(console.width, 110))
    with (
        _writing_stdout(),  # rich writes what is left at the end of a capture, even if nothing is
        console.capture() as text,  # if rich prints directly, it ends the process at a closed pipe
    ):
        console.print(renderable)
    write_result(text.get())


def check_output(output: Path | None) -> None:
    """Refuse an output file that cannot be written, before the work.

    Raises:
        OutputError: If it is a folder or a link that leads to itself, or its folder does not exist.
    """
    if output is None:
        return
    try:
        output.stat()
    except OSError as error:
        if error.errno == ELOOP:
            raise OutputError(f"cannot write {output}: {error.strerror}") from error
    if output.is_dir():
        raise OutputError(f"cannot write {output}: it is a folder; name a file")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: there is no folder {output.parent}")


def write_lines(*lines: str) -> None:
    """Print lines on stdout, without control characters."""
    write_result("".join(f"{visible_line(line)}\n" for line in lines))


def write_result(text: str, output: Path | None = None) -> None:
    """Write a result to stdout or to a file; the file is replaced as a whole.

    Raises:
        OutputError: If it cannot be written.
    """
    write_pieces([text], output)


def write_pieces(pieces: Iterable[str], output: Path | None = None) -> None:
    """Write a result piece by piece as it is produced, otherwise as `write_result`.

    Raises:
        OutputError: If it cannot be written.
    """
    if output is None:
        for piece in pieces:  # errors of the producer are not output errors
            _write_stdout(piece.encode())
        return
    check_output(output)
    if output.exists() and not output.is_file():  # a device or a pipe must not be replaced
        _write(pieces, output, output)
        return
    from citerec.io import replacing

    with _naming(output):  # the working folder may be gone
        file = Path(os.path.realpath(output))
    with replacing(file, output) as temporary:
        _write(pieces, temporary, output)


def _write(pieces: Iterable[str], file: Path, output: Path) -> None:
    with _naming(output):
        stream = file.open("wb", buffering=0)  # unbuffered, so that errors occur at once
    with stream:
        for piece in pieces:  # errors of the producer are not output errors
            left = memoryview(piece.encode())
            with _naming(output):
                while left:
                    left = left[stream.write(left) :]


def _write_stdout(data: bytes) -> None:
    with _writing_stdout():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def _writing_stdout() -> Generator[None]:
    """Turn a failed write to stdout into an error of the output."""
    try:
        yield
    except BrokenPipeError:  # its reader wants no more, which is no error
        raise
    except OSError as error:
        raise stdout_error(error) from error


def stdout_error(error: OSError) -> OutputError:
    """Return the error for a failed write to stdout; what is left in the buffer is discarded."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OutputError(f"cannot write standard output: {error.strerror or error}")


@contextmanager
def _naming(output: Path) -> Generator[None]:
    """Turn a failed write into an error that names the output file, not the temporary file."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror or error}") from error
