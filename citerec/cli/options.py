"""The options of the commands that a settings file can set: names, types, checks."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import typer

from citerec.errors import ConfigError, shown

_WRITES = "it decides which files are written or replaced"
_INPUT = "it belongs to one run"
# Options that no settings file may set: a file that comes with a folder must not make a command write or delete.
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("output", "append", "force", "delete", "overwrite", "results", "report"),
            *("rollback", "compact", "map"),
        ),
        _WRITES,
    ),
    **dict.fromkeys(
        (
            "pick",
            "query",
            "title",
            "abstract",
            "run",
            "qrels",
            "from",
            "resume",
            "search",
            "update",
            "command",
        ),
        _INPUT,
    ),
    "yes": "it confirms one run",
    **dict.fromkeys(
        ("host", "no_token", "allow_host", "allow_origin"), "it decides who can reach this machine"
    ),
}
_REFUSED_OF_COMMAND = {("index", "index"): _WRITES}
_TYPES: Mapping[type, tuple[type | tuple[type, ...], str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    str: (str, "text"),
    Path: (str, "text"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    command: str  # with its group: `datasets fetch`
    name: str  # in a settings file: that of its flag, with underscores
    flag: str
    kind: type
    several: bool  # whether it may be repeated
    parameter: Any  # of the command line parser
    parser: Any  # the command of the command line parser

    @property
    def refused(self) -> str:
        """Why no settings file may set it; empty if one may."""
        return _REFUSED_OF_COMMAND.get((self.command, self.name), REFUSED.get(self.name, ""))

    @property
    def default(self) -> Any:
        """The value without any setting."""
        return self.parameter.default

    def checked(self, value: Any) -> bool | str | list[str]:
        """Return a value of a settings file as the command line would give it: text, but for flags.

        Raises:
            ConfigError: If it has another type than the option, or the option does not allow it.
        """
        if self.several:
            values = value if isinstance(value, list) else [value]
            given: Any = [self._text(one) for one in values]
        else:
            given = self._text(value)
        try:
            self.parameter.process_value(typer.Context(self.parser), given)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            message = str(getattr(error, "message", error)).removeprefix("Value error, ")
            raise ConfigError(message.rstrip(".")) from error
        return given

    def _text(self, value: Any) -> bool | str:
        expected, description = _TYPES.get(self.kind, (str, "text"))
        is_flag = isinstance(value, bool)
        if not isinstance(value, expected) or is_flag != (self.kind is bool):
            several = f"{description}, or a list of such" if self.several else description
            raise ConfigError(f"expected {several}, found {shown(value)}")
        if is_flag:
            return value
        return str(Path(value).expanduser()) if self.kind is Path and value else str(value)


def options_of(command: str, parser: Any) -> dict[str, Option]:
    """Return the options of a command by name, in the order of its help.

    Args:
        command: Its name, with that of its group.
        parser: The command of the command line parser.
    """
    return {option.name: option for option in _options(command, parser)}


def _options(command: str, parser: Any) -> Iterator[Option]:
    parameters = inspect.signature(parser.callback, eval_str=True).parameters
    for parameter in parser.params:
        if parameter.param_type_name == "option" and parameter.name in parameters:
            item, several = _kind(parameters[parameter.name].annotation)
            flag = max(parameter.opts, key=len)
            name = flag.lstrip("-").replace("-", "_")
            yield Option(command, name, flag, item, several, parameter, parser)


def is_path(annotation: Any) -> bool:
    """Return whether an annotated parameter takes a file or folder, or several."""
    return _kind(annotation)[0] is Path


def _kind(annotation: Any) -> tuple[Any, bool]:
    """Return the type of an annotated parameter, without `None`, and whether it takes several values of it."""
    kind = get_args(annotation)[0] if hasattr(annotation, "__metadata__") else annotation
    if isinstance(kind, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


def described(value: Any) -> str:
    """Return the value of an option for people."""
    if value is None or value in ((), []):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ", ".join(map(described, value))
    return value.value if isinstance(value, StrEnum) else str(value)
