"""Reads settings files: defaults of the options of commands, checked against the options that the commands have."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.cli.options import REFUSED, Option, options_of
from citerec.entries import is_regular
from citerec.errors import BadInputError, ConfigError
from citerec.toml import read_toml

# Settings outside a table: each holds for all commands with an option of this name.
COMMON = (
    "index", "format", "k", "reranker", "ranker", "key_pattern", "device", "dtype", "backend",
    "threads", "heap", "quiet", "verbose",
)  # fmt: skip
# Commands that do not take a common setting: for some it would mean something else (the folder to create, the format
# of a corpus), and what is measured is chosen on the command line alone.
_NOT_FOR: Mapping[str, frozenset[str]] = {
    "index": frozenset({"index", "collect"}),
    "format": frozenset({"index", "collect"}),
    "k": frozenset({"evaluate", "tune"}),
    "reranker": frozenset({"evaluate", "tune"}),
    "ranker": frozenset({"evaluate", "tune"}),
}
ENVIRONMENT = {"heap": "CITEREC_JAVA_HEAP", "dtype": "CITEREC_DTYPE"}  # which win over a file
# Settings in the table of `collect` that name an environment variable with a key, and the variable that it stands for.
KEY_VARIABLES = {"openalex_key_env": "OPENALEX_API_KEY", "s2_key_env": "S2_API_KEY"}
_OF_KEYS = "collect"
# A table for common settings, which may be outside all tables, too; but then TOML has no room for a table [index].
_COMMON_TABLE = "common"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_ASSIGNED = re.compile(r"\s*([\w.\"' -]+?)\s*=")


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that a settings file gives an option."""

    value: bool | str | list[str]  # as the command line would give it
    path: Path
    line: int | None

    @property
    def origin(self) -> str:
        """The place in the file, for people."""
        return f"{self.path}" if self.line is None else f"{self.path}, line {self.line}"


def settings_of(
    command: str, parser: Any, commands: Iterable[str], files: Iterable[Path]
) -> dict[str, Setting]:
    """Return the settings that files hold for one command, by option.

    Args:
        command: Its name, with that of its group.
        parser: The command of the command line parser.
        commands: The names of all commands and groups.
        files: The settings files; a later one wins.

    Raises:
        BadInputError: If a file is no TOML, or a name or a value in it is wrong.
    """
    options = options_of(command, parser)
    found: dict[str, Setting] = {}
    for path in files:
        file = _File.read(path, frozenset(commands))
        found |= dict(file.common(options, command))
        found |= dict(file.of_command(options, command))
    return found


def defaults(settings: Mapping[str, Setting], options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the defaults for the command line parser; an environment variable wins over a file."""
    return {
        options[name].parameter.name: setting.value
        for name, setting in settings.items()
        if name in options and not os.environ.get(ENVIRONMENT.get(name, ""))
    }


def use_keys(settings: Mapping[str, Setting]) -> None:
    """Set the environment variables of keys from those that settings name; one that is set already stays.

    Raises:
        ConfigError: If a named variable is not set.
    """
    for name, variable in KEY_VARIABLES.items():
        if (setting := settings.get(name)) and not os.environ.get(variable):
            named = str(setting.value)
            if not (key := os.environ.get(named)):
                raise ConfigError(
                    f"{setting.origin}: {name}: the environment has no {named}; set it"
                )
            os.environ[variable] = key


@dataclass(frozen=True, slots=True)
class _File:
    """One settings file."""

    path: Path
    text: str
    content: Mapping[str, Any]
    commands: frozenset[str]

    @classmethod
    def read(cls, path: Path, commands: frozenset[str]) -> "_File":
        if path.exists() and not is_regular(path):
            raise BadInputError(path, "this is not a regular file, expected settings in TOML")
        content = read_toml(path)
        file = cls(path, path.read_text(encoding="utf-8-sig"), content, commands)
        for keys, value in file.outside():
            file.check_name(keys, value)
        return file

    def outside(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield the keys and values of the common settings, and of the tables of commands."""
        for key, value in self.content.items():
            if key == _COMMON_TABLE and isinstance(value, dict):
                yield from (((key, name), one) for name, one in value.items())
            else:
                yield (key,), value

    def check_name(self, keys: tuple[str, ...], value: Any) -> None:
        """Refuse a name outside the tables of commands that is neither a common setting nor a command."""
        key = keys[-1]
        if isinstance(value, dict):
            if _command(key) not in self.commands or len(keys) > 1:
                known = ", ".join(sorted(self.commands))
                raise self.error(keys, f"there is no command {key!r}; choose from {known}")
        elif why := REFUSED.get(_name(key)):
            raise self.error(keys, f"{key!r} cannot be set in a settings file: {why}")
        elif _name(key) not in COMMON:
            known = ", ".join(COMMON)
            advice = (
                f"settings of all commands: {known}; others belong in the table of their command"
            )
            raise self.error(keys, f"unknown setting {key!r}; {advice}, such as [recommend]")

    def common(self, options: Mapping[str, Option], command: str) -> Iterator[tuple[str, Setting]]:
        """Yield the settings of all commands that a command has an option for."""
        for keys, value in self.outside():
            option = options.get(_name(keys[-1]))
            if isinstance(value, dict) or not option:
                continue
            if command in _NOT_FOR.get(option.name, ()):
                continue
            try:
                yield option.name, self.setting(option, keys, value)
            except BadInputError:
                # a format of recommendations, which other commands need not have
                if option.name != "format" or command == "recommend" or type(value) is not str:
                    raise

    def of_command(
        self, options: Mapping[str, Option], command: str
    ) -> Iterator[tuple[str, Setting]]:
        """Yield the settings in the table of a command."""
        keys: list[str] = []
        table: Any = self.content
        for part in command.split(" "):
            tables = _tables(table)
            key = next((one for one in tables if _command(one) == part), None)
            table = {} if key is None else tables[key]
            keys += [] if key is None else [key]
            stray = (
                []
                if part == command.rsplit(" ", maxsplit=1)[-1]
                else [k for k in table if k not in _tables(table)]
            )
            if stray:
                fault = f"{keys[0]} is a group; settings belong in the table of a command"
                raise self.error(
                    (*keys, stray[0]), f"{fault}, such as [{command.replace(' ', '.')}]"
                )
        for key, value in table.items():
            option = options.get(_name(key))
            if command == _OF_KEYS and _name(key) in KEY_VARIABLES:
                yield _name(key), self.variable((*keys, key), value)
                continue
            if option is None:
                names = [name for name, one in options.items() if not one.refused]
                known = ", ".join([*names, *(KEY_VARIABLES if command == _OF_KEYS else ())])
                fault = f"unknown setting {'.'.join([*keys, key])!r}; known settings: {known}"
                raise self.error((*keys, key), fault)
            yield option.name, self.setting(option, (*keys, key), value)

    def setting(self, option: Option, keys: tuple[str, ...], value: Any) -> Setting:
        """Return a checked setting."""
        shown = ".".join(keys)
        if option.refused:
            fault = f"{shown!r} cannot be set in a settings file: {option.refused}"
            raise self.error(keys, f"{fault}; give it on the command line: {option.flag}")
        try:
            given = option.checked(value)
        except ConfigError as error:
            raise self.error(keys, f"{shown}: {error}") from error
        return Setting(given, self.path, self.line(keys))

    def variable(self, keys: tuple[str, ...], value: Any) -> Setting:
        """Return a setting that names an environment variable with a key.

        A file of the working folder may come from others: it can name only a variable of the service, because the
        value is sent there.
        """
        shown, service = ".".join(keys), _name(keys[-1]).partition("_")[0].upper()
        if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
            fault = "expected the name of an environment variable, not the key itself"
            raise self.error(keys, f"{shown}: {fault}")
        if not self.path.is_absolute() and not value.upper().startswith(service):
            fault = f"{value} is no variable of {service}, and its value would be sent there"
            advice = (
                f"name one that begins with {service}, or set it in your own configuration folder"
            )
            raise self.error(keys, f"{shown}: {fault}; {advice}")
        return Setting(value, self.path, self.line(keys))

    def error(self, keys: tuple[str, ...], message: str) -> BadInputError:
        return BadInputError(self.path, message, line=self.line(keys))

    def line(self, keys: tuple[str, ...]) -> int | None:
        """Return the line that sets a key, or begins its table; None if it is not clear."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self.text.split("\n"), start=1):
            if header := _HEADER.fullmatch(line):
                table = _parts(header[1])
            elif assigned := _ASSIGNED.match(line):
                place = (*table, *_parts(assigned[1]))
                if place == keys or (place == keys[: len(place)] and place):
                    return number
                continue
            if table == keys:
                return number
        return None


def _tables(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables within a table."""
    return {key: one for key, one in table.items() if isinstance(one, dict)}


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _name(key: str) -> str:
    """Return the name of a setting; `key-pattern` is `key_pattern`."""
    return key.replace("-", "_")


def _command(key: str) -> str:
    """Return the name of a command; `train_ranker` is `train-ranker`."""
    return key.replace("_", "-")
