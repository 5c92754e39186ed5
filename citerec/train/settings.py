"""Reads the settings of a training: a named recipe, a TOML file that overrides it, and options that override both."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from citerec.errors import ConfigError
from citerec.toml import read_toml

Kinds = Mapping[str, type]  # the type of each setting, by name
Settings = TypeVar("Settings")

_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def kinds_of(settings: type, optional: Mapping[str, type] | None = None) -> Kinds:
    """Return the type of each field of a dataclass, taken from its default.

    Args:
        settings: The dataclass; every field has a default.
        optional: The types of the fields whose default is None.
    """
    optional_types = optional or {}
    return {f.name: optional_types.get(f.name) or type(f.default) for f in fields(settings)}


def checked(kinds: Kinds, given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return the values with the types of their settings: names become enums, whole numbers become floats.

    Args:
        kinds: The type of each setting.
        given: Values by name, from a TOML file or the command line.
        where: The origin of the values, as a prefix of error messages.

    Raises:
        ConfigError: If a name is unknown or a value has the wrong type.
    """
    return {name: _checked(kinds, name, value, where) for name, value in given.items()}


def check_least(settings: object, least: Mapping[str, float]) -> None:
    """Refuse settings below their minimum, and settings that are not finite.

    Raises:
        ConfigError: If one is.
    """
    for name, bound in least.items():
        value = getattr(settings, name)
        if not abs(value) < float("inf"):
            raise ConfigError(f"{name} must be a finite number, got {value}")
        if value < bound:
            raise ConfigError(f"{name} must be at least {bound}, got {value}")


def check_above_zero(settings: object, *names: str) -> None:
    """Refuse settings that are not finite numbers above 0.

    Raises:
        ConfigError: If one is not.
    """
    for name in names:
        if not 0 < getattr(settings, name) < float("inf"):
            raise ConfigError(f"{name} must be greater than 0, got {getattr(settings, name)}")


def read_settings(
    make: Callable[[Mapping[str, Any], str], Settings],
    file: Path | None,
    options: Mapping[str, Any],
    rivals: Mapping[str, str] | None = None,
) -> Settings:
    """Read the settings of a training: options override the file, the file overrides the recipe.

    Args:
        make: Completes the values with the defaults of their recipe; receives the values and their origin.
        file: TOML.
        options: From the command line; None means not given.
        rivals: Pairs of settings that exclude each other: an option replaces its rival in the file.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it is invalid.
    """
    values: dict[str, Any] = {}
    if file is not None:
        values = read_toml(file)
        make(values, f"{file}: ")
    given = {name: value for name, value in options.items() if value is not None}
    replaced = {rival for name, rival in (rivals or {}).items() if name in given}
    return make({k: v for k, v in values.items() if k not in replaced} | given, "")


def _checked(kinds: Kinds, name: str, value: Any, where: str) -> Any:
    if name not in kinds:
        raise ConfigError(f"{where}unknown setting {name!r}; known settings: {', '.join(kinds)}")
    kind = kinds[name]
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise ConfigError(f"{where}{name} must be {', '.join(kind)}; got {value!r}")
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}{name} must be {_TYPE_NAMES[kind]}, got {value!r}")
    return value
