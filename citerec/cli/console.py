"""What the commands share: options, messages and progress on stderr, results on stdout."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from citerec.errors import writing

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")]
Index = Annotated[
    Path | None,
    typer.Option(help="The index folder; may be left out where indexes/ holds one only."),
]
Heap = Annotated[str | None, typer.Option(help="The most memory of the JVM, such as 2g.")]
Threads = Annotated[int, typer.Option(min=0, help="Threads; 0 for one per processor.")]
Model = Annotated[str, typer.Option(help="A model, or none.")]


@dataclass(frozen=True, slots=True)
class Talk:
    """How much a command says on stderr."""

    quiet: bool = False
    verbose: bool = False

    def note(self, message: str) -> None:
        """Say something, unless asked to be quiet."""
        if not self.quiet:
            typer.echo(f"citerec: {message}", err=True)

    def detail(self, message: str) -> None:
        """Say something, if asked to be verbose."""
        if self.verbose:
            typer.echo(f"citerec: {message}", err=True)

    def warn(self, message: str) -> None:
        """Warn, whatever was asked."""
        typer.echo(f"citerec: warning: {message}", err=True)

    @contextmanager
    def progress(self, *, bytes_read: bool = False) -> Generator[Callable[[str, int, int], None]]:
        """Give a function that shows how far each kind of work is: (what, done, total)."""
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = stderr_console()
        bar = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(),
            DownloadColumn() if bytes_read else MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=self.quiet or not console.is_terminal,
        )
        tasks = {}
        with bar:

            def tell(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bar.add_task(what, total=total)
                bar.update(tasks[what], completed=done, total=total)

            yield tell


def stderr_console() -> "Console":
    """Return a rich console on stderr."""
    from rich.console import Console

    return Console(stderr=True)


def show(renderable: "RenderableType") -> None:
    """Print a rich table or text on stdout."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=max(console.width, 110))
    console.print(renderable)


def write_result(text: str, output: Path | None) -> None:
    """Write a result to stdout, or to a file, which then holds all of it or what it held before."""
    if output is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    beside = output.with_name(f".{output.name}.{uuid4().hex[:8]}")
    with writing(output):
        try:
            beside.write_bytes(text.encode())
            beside.replace(output)
        finally:
            beside.unlink(missing_ok=True)
