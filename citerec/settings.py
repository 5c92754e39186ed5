"""Makes settings from values of TOML, JSON or the command line: each value is checked against the field that it sets.

The settings are frozen dataclasses, which state names, types and defaults once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from citerec.config import Settings as Model
from citerec.config import read_settings
from citerec.errors import ConfigError

Settings = TypeVar("Settings")

_TYPES: Mapping[Any, tuple[str, str]] = {  # one value of a type, and several
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true and false"),
    str: ("text", "texts"),
}


def settings_from(
    kind: type[Settings], given: Mapping[str, Any], where: str = "", *, within: str = ""
) -> Settings:
    """Make the settings of a dataclass from values by name; a field that is not given has its default.

    Args:
        kind: The dataclass.
        given: Values by name; a table sets a field that is a dataclass.
        where: The origin of the values, as a prefix of error messages, such as `row.toml: `.
        within: The name of the table that holds the values, with a dot: `bm25.`.

    Raises:
        ConfigError: If a name is unknown or missing, or a value has the wrong type or is out of its range.
    """
    if issubclass(kind, Model):
        return cast("Settings", read_settings(kind, given, f"{where}{within}"))
    values = checked(kind, given, where, within=within)
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        has_default = (field.default, field.default_factory) != (MISSING, MISSING)
        if field.init and not has_default and field.name not in values:
            raise ConfigError(f"{where}setting '{within}{field.name}' is missing")
    try:
        return kind(**values)
    except ConfigError as error:
        prefix = f"{within.removesuffix('.')}: " if within else ""
        raise ConfigError(f"{where}{prefix}{error}") from error


def checked(
    kind: type, given: Mapping[str, Any], where: str = "", *, within: str = ""
) -> dict[str, Any]:
    """Return values with the types of the fields that they set.

    A name becomes its enum, a whole number a float, a list a tuple, and a table a dataclass, where the field is one.

    Args:
        kind: The dataclass.
        given: Values by name.
        where: The origin of the values, as a prefix of error messages.
        within: The name of the table that holds the values, with a dot.

    Raises:
        ConfigError: If a name is unknown or a value has the wrong type.
    """
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # of a file
        raise ConfigError(f"{where}expected a table of settings, got {repr(given)[:60]}")
    types = get_type_hints(kind)
    known = [field.name for field in fields(kind) if field.init]
    values: dict[str, Any] = {}
    for name, value in given.items():
        full = f"{within}{name}"
        if name not in known:
            raise ConfigError(
                f"{where}unknown setting {full!r}; known settings: {', '.join(known)}"
            )
        try:
            values[name] = _converted(types[name], value, where, full)
        except TypeError:
            raise ConfigError(
                f"{where}{full} must be {_described(types[name])} got {repr(value)[:60]}"
            ) from None
    return values


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


def _converted(kind: Any, value: Any, where: str, name: str) -> Any:
    """Return a value as one of a type.

    Raises:
        ConfigError: If an entry of a table is wrong.
        TypeError: If it is none.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_union(kind):
        return _first_converted(arguments, value, where, name)
    if origin in (tuple, Sequence) and isinstance(value, list | tuple):
        is_fixed = origin is tuple and ... not in arguments
        kinds = arguments if is_fixed else arguments[:1] * len(value)
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return tuple(_converted(one, entry, where, name) for one, entry in pairs)
    elif _is_table(kind) and isinstance(value, Mapping):
        return settings_from(kind, value, where, within=f"{name}.")
    elif origin is Mapping and isinstance(value, Mapping):
        return {n: _converted(arguments[1], v, where, f"{name}.{n}") for n, v in value.items()}
    elif (origin is Literal and value in arguments) or (origin is None and _is_one(kind, value)):
        return value
    elif (kind is float and type(value) is int) or (
        _is_enum(kind) and value in [*cast("type[StrEnum]", kind)]
    ):
        return cast("Any", kind)(value)
    raise TypeError


def _first_converted(kinds: Sequence[Any], value: Any, where: str, name: str) -> Any:
    for kind in kinds:
        with suppress(TypeError):
            return _converted(kind, value, where, name)
    raise TypeError


def _is_one(kind: Any, value: Any) -> bool:
    """Whether a value is of a class; true and false are no numbers."""
    return type(value) is kind or (kind not in _TYPES and isinstance(value, kind))


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Model))


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _described(kind: Any) -> str:
    """Return what a message expects of a field, with the mark that follows it: `a number,`."""
    one = [k for k in get_args(kind) if k is not NoneType] if _is_union(kind) else [kind]
    return " or ".join(map(_described_one, one)) + (";" if any(map(_is_enum, one)) else ",")


def _described_one(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (tuple, Sequence):
        return f"a list of {_TYPES[arguments[0]][1] if arguments[0] in _TYPES else arguments[0]}"
    if origin is Literal:
        return ", ".join(map(str, arguments))
    if _is_enum(kind):
        return ", ".join(kind)
    return _TYPES[kind][0] if kind in _TYPES else "a table"


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)
