"""The command line: parses, calls, prints.

Exit codes: 0 success, 2 invalid input, 128 + n ended by signal n (SIGTERM, SIGHUP), 1 any other error.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from errno import ENAMETOOLONG
from importlib import import_module
from io import FileIO, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from citerec.cli.console import fail, stdout_error
from citerec.cli.options import default_map, refuse_empty_paths, settings_file
from citerec.errors import CiterecError, ConfigError

# Commands that end soon: allocations until Python looks for cycles among new objects, and how many such looks until it
# looks at older ones. With its own thresholds, which are lower, this search takes 5 % of the time of `citerec index`.
_COLLECTION = 100_000, 50, 100
_SHORT = frozenset({"index", "recommend"})

COMMANDS = {  # module and function of each command, or app of a group of commands
    "collect": ("collect", "collect"),
    "index": ("index", "index"),
    "corpus": ("corpus", "corpus"),
    "encode": ("index", "encode"),
    "recommend": ("recommend", "recommend"),
    "check": ("inspect", "check"),
    "serve": ("serve", "serve"),
    "mcp": ("serve", "mcp"),
    "tune": ("tune", "tune"),
    "evaluate": ("evaluate", "evaluate"),
    "train": ("train", "train"),
    "train-encoder": ("train", "train_encoder"),
    "train-reranker": ("train", "train_reranker"),
    "train-ranker": ("train", "train_ranker"),
    "experiment": ("experiment", "experiment"),
    "scidocs": ("scidocs", "scidocs"),
    "datasets": ("datasets", "datasets"),
    "info": ("inspect", "info"),
    "verify": ("inspect", "verify"),
    "doctor": ("inspect", "doctor"),
    "demo": ("inspect", "demo"),
}

HELP = frozenset({"-h", "--help"})
PARSER_PRINTS = HELP | {"--version"}  # options with which the parser prints, and no command runs
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class EndedError(KeyboardInterrupt):
    """A signal ends this process; as after Ctrl-C, unfinished files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with the named commands; only their modules are imported."""
    app = typer.Typer(
        name="citerec",
        help="Recommend papers that a draft should cite.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": sorted(HELP, key=len)},
        rich_markup_mode=None,
    )
    app.callback()(_common)
    for name in names:
        module, attribute = COMMANDS[name]
        command: Any = getattr(import_module(f"citerec.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name=name)(command)
    return app


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"citerec {version('citerec')}")
        raise typer.Exit


def _common(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Recommend papers that a draft should cite."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its exit code."""
    if "_CITEREC_COMPLETE" in os.environ:  # shell completion
        make_app()(prog_name="citerec")
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
            signal.signal(number, _end)
    if not sys.stderr:  # closed, as by `2>&-`
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if not sys.stdout:  # closed, as by `>&-`: a write fails as in any other program
        sys.stdout = TextIOWrapper(FileIO(os.open(os.devnull, os.O_RDONLY), "w"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack characters of a title
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in _SHORT:
        gc.set_threshold(*_COLLECTION)
    sys.exit(run(given, _catch_interrupts))


def _end(number: int, _: FrameType | None) -> NoReturn:
    for other in ENDING:  # a second signal must not interrupt the clean-up
        signal.signal(other, signal.SIG_IGN)
    raise EndedError(number)


def _catch_interrupts() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again, if it ended the process at once until now."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run(arguments: Sequence[str], imported: Callable[[], None] = lambda: None) -> int:
    """Run a command; return its exit code. An error of the user becomes one line on stderr.

    Args:
        arguments: Of the command line.
        imported: Called when the modules of the command are imported.
    """
    first = arguments[0] if arguments else ""
    defaults: dict[str, Any] = {}
    try:
        command: Any = typer.main.get_command(make_app([first] if first in COMMANDS else COMMANDS))
        refuse_empty_paths(command)
        imported()
        file = settings_file()
        if file and arguments and not PARSER_PRINTS & {*arguments}:
            defaults = default_map(file, command, COMMANDS)
        # Not `command.main`, which has other exit codes for Ctrl-C and a closed pipe.
        with command.make_context(
            "citerec", list(arguments), obj=tuple(arguments), default_map=defaults
        ) as context:
            command.invoke(context)
        return 0
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError as error:  # the reader of stdout closed it
        if _ended_by(error):
            return _failed(error)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ConfigError as error:
        hint = " (citerec.toml sets options here)" if any(defaults.values()) else ""
        return fail(f"{error}{hint}", 2)
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, OSError) and PARSER_PRINTS & {*arguments} and not _ended_by(error):
            error = stdout_error(error)
        return _failed(error)


def _ended_by(error: BaseException | None) -> EndedError | None:
    """Return the signal that caused an error, also indirectly: the clean-up may fail on a closed terminal."""
    while error is not None and not isinstance(error, EndedError):
        error = error.__cause__ or error.__context__
    return error


def _failed(error: BaseException) -> int:
    """Return the exit code of an error, which becomes one line on stderr; raise internal errors."""
    if ended := _ended_by(error):
        with suppress(OSError):  # the terminal may be closed
            fail(f"{ended} received; no file is left half-written", ended.exit_code)
        return ended.exit_code
    if isinstance(error, KeyboardInterrupt):
        return fail("interrupted; no file is left half-written", 1)
    if isinstance(error, CiterecError):
        return fail(str(error), 2)
    if hasattr(error, "format_message"):  # of the parser
        return _usage(error)
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        return fail(f"{str(error.filename)[:40]}... is too long for a file name", 2)
    from citerec.java import is_java_exception

    if is_java_exception(error) and "OutOfMemoryError" in str(error):
        return fail("Java has not enough memory; set it by CITEREC_JAVA_HEAP, such as 4g", 2)
    raise error


def _usage(error: Any) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "citerec"
    bare = type(error).__name__ == "NoArgsIsHelpError"  # its message is the whole help text
    message = "Missing command." if bare else str(error.format_message())
    return fail(f"{message} (see: {command} --help)", 2)
