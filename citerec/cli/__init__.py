"""The command line: parses, calls, prints.

Exit codes: 0 success, 2 invalid input, 128 + n ended by signal n (SIGTERM, SIGHUP), 1 any other error.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from errno import ENAMETOOLONG
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from citerec.cli.console import discard_stdout, fail
from citerec.cli.options import default_map, refuse_empty_paths, settings_file
from citerec.errors import CiterecError, ConfigError

# Commands that end soon: allocations until Python looks for cycles among new objects, and how many such looks until it
# looks at older ones. With its own thresholds, which are lower, this search takes 5 % of the time of `citerec index`.
_GC_THRESHOLDS = 100_000, 50, 100
_SHORT = frozenset({"index", "library", "recommend"})

COMMANDS = {  # the module of each command; the function, or the app of a group, has its name
    "collect": "collect",
    "index": "index",
    "library": "library",
    "corpus": "corpus",
    "encode": "index",
    "recommend": "recommend",
    "watch": "watch",
    "export": "export",
    "check": "inspect",
    "serve": "serve",
    "mcp": "serve",
    "evaluate": "evaluate",
    "train": "train",
    "train-encoder": "train",
    "train-reranker": "train",
    "train-ranker": "train",
    "experiment": "lab",
    "scidocs": "lab",
    "datasets": "lab",
    "info": "inspect",
    "verify": "inspect",
    "doctor": "inspect",
    "demo": "inspect",
}

MODEL_CHOICE = {  # of the commands whose option names a model that the hub may have
    "index": "choose --encoder minilm, or none",
    "library": "choose --encoder minilm, or none",
    "encode": "choose --encoder minilm",
    "train-encoder": "choose --model minilm",
    "train-reranker": "choose --model minilm",
    "scidocs": "choose --encoder minilm",
}

HELP = frozenset({"-h", "--help"})
# options with which the parser prints, and no command runs
PARSER_PRINTS = HELP | {"--version"}
ENDING = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class EndedError(KeyboardInterrupt):
    """A signal ends this process; as after Ctrl-C, unfinished files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"{signal.Signals(number).name} received")
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
        module = import_module(f"citerec.cli.{COMMANDS[name]}")
        command: Any = getattr(module, name.replace("-", "_"))
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
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
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
    if sys.stdout is None:  # closed by the shell: `>&-`
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        # a terminal may lack characters of a title
        sys.stdout.reconfigure(errors="replace")
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in _SHORT:
        gc.set_threshold(*_GC_THRESHOLDS)
    sys.exit(run(given))


def _end(number: int, _: FrameType | None) -> NoReturn:
    for other in ENDING:  # a second signal must not interrupt the clean-up
        signal.signal(other, signal.SIG_IGN)
    raise EndedError(number)


def run(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code. An error of the user becomes one line on stderr."""
    first = arguments[0] if arguments else ""
    defaults: dict[str, Any] = {}
    try:
        command: Any = typer.main.get_command(
            make_app([first] if first in COMMANDS else COMMANDS)
        )
        refuse_empty_paths(command)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as set during imports
            signal.signal(signal.SIGINT, signal.default_int_handler)
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
    except BrokenPipeError:  # the reader of stdout closed it
        discard_stdout()
        return 0
    except KeyboardInterrupt as error:
        why = str(error) or "interrupted"
        return fail(
            f"{why}; no file is left half-written", getattr(error, "exit_code", 1)
        )
    except CiterecError as error:
        from citerec.encode.models import HubError

        message = str(error)
        notes = getattr(error, "__notes__", [])
        if isinstance(error, HubError) and first in MODEL_CHOICE:
            notes = notes or [MODEL_CHOICE[first]]
        if isinstance(error, ConfigError) and any(defaults.values()):
            message += " (citerec.toml sets options here)"
        return fail("; or ".join([message, *notes]), 2)
    except Exception as error:
        if message := _fault_of_input(error):
            return fail(message, 2)
        raise


def _fault_of_input(error: Any) -> str:
    """Return what is wrong with the input, for an error that is none of ours; nothing for an internal error."""
    if hasattr(error, "format_message"):  # of the parser
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "citerec"
        # its message is the whole help text
        bare = type(error).__name__ == "NoArgsIsHelpError"
        message = "Missing command." if bare else error.format_message()
        return f"{message} (see: {command} --help)"
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        return f"{str(error.filename)[:40]}... is too long for a file name"
    from citerec.index.java import is_java_exception

    if is_java_exception(error) and "OutOfMemoryError" in str(error):
        return "Java has not enough memory; set it by CITEREC_JAVA_HEAP, such as 4g"
    return ""
