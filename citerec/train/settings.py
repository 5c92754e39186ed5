"""How settings of a training are read: a named recipe, a TOML file, and options that win over both."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from citerec.errors import ConfigError
from citerec.toml import read_toml

Kinds = Mapping[str, type]  # of each setting, by name
Settings = TypeVar("Settings")

_CALLED = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def kinds_of(settings: type, optional: Mapping[str, type] | None = None) -> Kinds:
    """Return the type of each field of a dataclass, read off its default.

    Args:
        settings: The dataclass; every field has a default.
        optional: The types of those whose default is None.
    """
    known = optional or {}
    return {f.name: known.get(f.name) or type(f.default) for f in fields(settings)}


def checked(kinds: Kinds, given: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return values as their settings have them: names become enums, whole numbers fractions.

    Args:
        kinds: What each setting is.
        given: Values by name, as a TOML file or the command line has them.
        where: Who gave them, for errors.

    Raises:
        ConfigError: If there is no such name, or the value is of another kind.
    """
    return {name: _checked(kinds, name, value, where) for name, value in given.items()}


def check_least(settings: object, least: Mapping[str, float]) -> None:
    """Refuse settings that are smaller than they may be, or no finite numbers.

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
    """Refuse settings that are not finite numbers greater than 0.

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
    """Read how to train: options win over the file, the file over the recipe.

    Args:
        make: Completes values by the defaults of their recipe; is told who gave them.
        file: TOML.
        options: From the command line; None means not given.
        rivals: Settings that say the same in two ways: an option beats its rival in the file, too.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it cannot be.
    """
    values: dict[str, Any] = {}
    if file is not None:
        values = read_toml(file)
        make(values, f"{file}: ")
    given = {name: value for name, value in options.items() if value is not None}
    beaten = {rival for name, rival in (rivals or {}).items() if name in given}
    return make({k: v for k, v in values.items() if k not in beaten} | given, "")


def _checked(kinds: Kinds, name: str, value: Any, where: str) -> Any:
    if name not in kinds:
        raise ConfigError(f"{where}no setting {name!r}; there are: {', '.join(kinds)}")
    kind = kinds[name]
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise ConfigError(f"{where}{name} must be {', '.join(kind)}; got {value!r}")
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}{name} must be {_CALLED[kind]}, got {value!r}")
    return value
