"""Writes docs/reference/cli.md from the commands themselves: `python docs/tools/cli_reference.py`."""

import inspect
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.models import ArgumentInfo, CommandInfo, OptionInfo

from citerec.cli import COMMANDS

PAGE = Path(__file__).parent.parent / "reference" / "cli.md"
HEAD = """\
# Commands

Made by `python docs/tools/cli_reference.py` from the commands themselves; do not edit.
`citerec COMMAND --help` prints the same.

Every command writes its result to stdout, and messages and progress to stderr.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | an unexpected fault, Ctrl-C, or findings of `check --strict`, `doctor`, `evaluate --audit`, `experiment run` |
| 2 | the input or an option is wrong; one line on stderr says what, and what to do |
| 128 + n | ended by signal n (SIGTERM: 143, SIGHUP: 129) |
"""
PLACEHOLDERS: dict[Any, str] = {Path: "PATH", str: "TEXT", int: "N", float: "X"}


def page() -> str:
    """Return the whole page."""
    commands = [(f"citerec {name}", function) for name, function in _commands()]
    summary = [
        f"| [`{name}`](#{_anchor(name)}) | {_first_line(f)} |" for name, f in commands
    ]
    head = [
        HEAD,
        "| command | what it does |\n| --- | --- |\n" + "\n".join(summary) + "\n",
    ]
    everywhere = "Every command also takes `--help` (`-h`); `citerec --version` prints the version.\n"
    return "\n".join([*head, everywhere, *(_section(name, f) for name, f in commands)])


def _commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the name and the function of each command, in the order of the command line."""
    for name, module in COMMANDS.items():
        commands = import_module(f"citerec.cli.{module}")
        found: Any = getattr(commands, name.replace("-", "_"))
        if isinstance(found, typer.Typer):
            yield from (
                (f"{name} {_name(one)}", one.callback)
                for one in found.registered_commands
            )
        else:
            yield name, found


def _name(command: CommandInfo) -> str:
    assert command.callback is not None
    return command.name or command.callback.__name__.replace("_", "-")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")


def _section(name: str, function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    arguments = [p for p in parameters if isinstance(_info(p), ArgumentInfo)]
    options = [p for p in parameters if isinstance(_info(p), OptionInfo)]
    usage = " ".join([name, *(p.name.upper() for p in arguments), "[OPTIONS]"])
    text = [f"## {name}\n", f"{inspect.getdoc(function)}\n", f"```text\n{usage}\n```\n"]
    if arguments:
        rows = [f"| `{p.name.upper()}` | {_help(p)} |" for p in arguments]
        text.append("| argument | meaning |\n| --- | --- |\n" + "\n".join(rows) + "\n")
    rows = [_row(p) for p in options]
    return "\n".join(
        [*text, "| option | default | meaning |\n| --- | --- | --- |", *rows, ""]
    )


def _row(parameter: inspect.Parameter) -> str:
    info = _info(parameter)
    # typer keeps the first name as the default
    declared = [
        str(info.default),
        *(info.param_decls or ()),
    ]
    given = [one for one in declared if one.startswith("-")]
    names = given or [f"--{parameter.name.replace('_', '-')}"]
    kind = _kind(parameter)
    shown = " ".join(filter(None, [", ".join(names), _placeholder(kind)])).replace(
        "|", "\\|"
    )
    several = " May be repeated." if get_origin(kind) is list else ""
    return f"| `{shown}` | {_default(parameter)} | {_help(parameter)}{several}{_range(info)} |"


def _info(parameter: inspect.Parameter) -> Any:
    return next(iter(getattr(parameter.annotation, "__metadata__", ())), None)


def _kind(parameter: inspect.Parameter) -> Any:
    """Return the type of a parameter, without `None` and without its description."""
    kind = get_args(parameter.annotation)[0]
    members = [one for one in get_args(kind) if one is not type(None)]
    return members[0] if type(None) in get_args(kind) else kind


def _placeholder(kind: Any) -> str:
    """Return what stands for the value of an option; nothing for a flag."""
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if kind is bool:
        return ""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "|".join(kind)
    return PLACEHOLDERS[kind]


def _default(parameter: inspect.Parameter) -> str:
    shown = _info(
        parameter
    ).show_default  # a text where an option that is not given is None
    default = shown.strip("()") if isinstance(shown, str) else parameter.default
    is_none = (
        default is None or default is False or default in ("", inspect.Parameter.empty)
    )
    return "" if is_none else f"`{default}`"


def _help(parameter: inspect.Parameter) -> str:
    return str(_info(parameter).help or "").replace("|", "\\|").replace("<", "&lt;")


def _range(info: Any) -> str:
    if info.min is None and info.max is None:
        return ""
    if info.max is None:
        return f" At least {info.min}."
    return f" From {info.min} to {info.max}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
