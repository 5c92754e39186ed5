"""`citerec config show` and `citerec config path`: the settings files, and what they set."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from citerec.cli.console import Quiet, Verbose, write_lines, write_result
from citerec.cli.empty_paths import refuse_empty_paths
from citerec.cli.inspect import FactsFormat, InfoFormat
from citerec.errors import ConfigError

config = typer.Typer(
    no_args_is_help=True, help="The settings files: which are read, and what they set."
)


@dataclass(frozen=True, slots=True)
class _Value:
    """The value of an option, and where it comes from."""

    command: str
    name: str
    value: str
    origin: str


@config.command()
def show(
    command: Annotated[
        str | None,
        typer.Option(
            help="The command whose options are shown; by default those that are set, of all."
        ),
    ] = None,
    format: FactsFormat = InfoFormat.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the defaults of options, and where each comes from: a settings file, the environment, citerec."""
    found = dict(_commands(command))
    wanted = " ".join((command or "").split())
    if wanted and wanted not in found:
        raise ConfigError(f"there is no command {wanted!r}; choose from {', '.join(found)}")
    values = [
        value
        for name, parser in found.items()
        if name == wanted or not wanted
        for value in _values(name, parser)
        if wanted or value.origin != "default"
    ]
    if format is InfoFormat.JSON:
        write_result(_json(values))
        return
    write_lines(*_table(values))
    if not wanted:
        write_lines(
            "All other options have their defaults: citerec config show --command recommend"
        )


@config.command()
def path(quiet: Quiet = False, verbose: Verbose = False) -> None:
    """Show which settings files are read; the first one that sets an option decides."""
    from citerec.cli.settings_paths import settings_files, user_file, working_file

    there = settings_files()
    places = [working_file(), *filter(None, [user_file()])]
    write_lines(
        *(
            f"{'read' if place in there else 'no such file':<12}  {place.absolute()}"
            for place in places
        )
    )


def _commands(wanted: str | None) -> Iterator[tuple[str, Any]]:
    """Yield the commands with their names; those of a group have its name before theirs."""
    from citerec.cli import COMMANDS, make_app

    names = list(COMMANDS)
    first = (wanted or "").split()[:1]
    if first and first[0] in names:
        names = first  # the modules of the others are not imported
    app: Any = typer.main.get_command(make_app([*names, "config"]))
    refuse_empty_paths(app)
    for name, parser in app.commands.items():
        if name in names and name != "config":
            inner = getattr(parser, "commands", None)
            if inner is None:
                yield name, parser
            else:
                yield from ((f"{name} {one}", below) for one, below in inner.items())


def _values(command: str, parser: Any) -> Iterator[_Value]:
    from citerec.cli import COMMANDS
    from citerec.cli.options import described, options_of
    from citerec.cli.settings_file import ENVIRONMENT, KEY_VARIABLES, settings_of
    from citerec.cli.settings_paths import settings_files

    settings = settings_of(command, parser, COMMANDS, settings_files())
    for name in KEY_VARIABLES:
        if setting := settings.get(name):
            yield _Value(command, name, described(setting.value), _short(setting.origin))
    for name, option in options_of(command, parser).items():
        variable = ENVIRONMENT.get(name, "")
        if variable and (value := os.environ.get(variable)):
            yield _Value(command, name, value, f"environment {variable}")
        elif setting := settings.get(name):
            yield _Value(command, name, described(setting.value), _short(setting.origin))
        elif not option.refused:
            yield _Value(command, name, described(option.default), "default")


def _short(origin: str) -> str:
    home = str(Path("~").expanduser())
    return f"~{origin.removeprefix(home)}" if origin.startswith(f"{home}{os.sep}") else origin


def _table(values: list[_Value]) -> Iterator[str]:
    widths = [max((len(getattr(v, name)) for v in values), default=0) for name in ("name", "value")]
    command = ""
    for value in values:
        if value.command != command:
            command = value.command
            yield command
        yield f"  {value.name:<{widths[0]}}  {value.value:<{widths[1]}}  {value.origin}"


def _json(values: list[_Value]) -> str:
    import orjson

    rows = [
        {"command": v.command, "option": v.name, "value": v.value, "origin": v.origin}
        for v in values
    ]
    return orjson.dumps(rows, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
