"""Reads the settings of a training: a named recipe, a TOML file that overrides it, and options that override both.

The settings of each trainer are a frozen dataclass; the annotation of a field holds its type and its bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cache
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from citerec.encode.config import Precision
from citerec.errors import ConfigError
from citerec.toml import read_toml

Check = Callable[[str, Any], None]  # (name, value); raises a ConfigError

_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_ENTRY_NAMES = {float: "numbers", str: "texts"}
RENAMED = {"precision": "dtype"}  # settings of earlier versions


def at_least(bound: float) -> Check:
    """Return the check of a finite number of at least `bound`."""

    def check(name: str, value: float) -> None:
        if not isfinite(value):
            raise ConfigError(f"{name} must be a finite number, got {value}")
        if value < bound:
            raise ConfigError(f"{name} must be at least {bound}, got {value}")

    return check


def at_most(bound: float) -> Check:
    """Return the check of a number of at most `bound`."""

    def check(name: str, value: float) -> None:
        if value > bound:
            raise ConfigError(f"{name} must be at most {bound:,}, got {value:,}")

    return check


def less_than_2_to(power: int) -> Check:
    """Return the check of a number less than a power of two."""

    def check(name: str, value: int) -> None:
        if value >= 2**power:
            raise ConfigError(f"{name} must be less than 2^{power}, got {value}")

    return check


def _above_0(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name} must be greater than 0, got {value}")


def _below_1(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ConfigError(f"{name} must lie in [0, 1), got {value}")


def _trainable(name: str, value: Precision) -> None:
    if value is Precision.FLOAT16:
        raise ConfigError(f"{name} must be auto, float32 or bfloat16 in training")


def _auto_or_cpu(name: str, value: str) -> None:
    if value not in ("auto", "cpu"):
        raise ConfigError(f"{name} must be auto or cpu, got {value!r}")


From0 = Annotated[int, at_least(0)]
From1 = Annotated[int, at_least(1)]
NotNegative = Annotated[float, at_least(0)]
AboveZero = Annotated[float, _above_0]
Share = Annotated[float, _below_1]  # in [0, 1)
Seed = Annotated[int, at_least(0), less_than_2_to(32)]
Dtype = Annotated[Precision, _trainable]
Device = Annotated[str, _auto_or_cpu]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its type and its checks."""

    kind: type
    entries: type | None  # the type of the entries of a list
    checks: tuple[Check, ...]


class TrainingSettings:
    """The reading of settings; the subclasses are frozen dataclasses whose fields all have a default."""

    __slots__ = ()
    RECIPES: ClassVar[
        Mapping[str, Mapping[str, Any]]
    ] = {}  # the defaults of each; the first is the default recipe
    RIVALS: ClassVar[Mapping[str, str]] = {}  # settings that exclude each other
    REMOVED: ClassVar[Mapping[str, Any]] = {}  # former settings, with the value that is now fixed

    def __post_init__(self) -> None:
        for name, setting in _settings_of(type(self)).items():
            for check in setting.checks:
                check(name, getattr(self, name))
        self.check_together()

    def check_together(self) -> None:
        """Check the settings that depend on each other.

        Raises:
            ConfigError: If they do not fit.
        """

    @classmethod
    def read(cls, file: Path | None, options: Mapping[str, Any]) -> Self:
        """Read the settings: options override the file, the file overrides the recipe.

        Args:
            file: TOML; keys as the fields.
            options: From the command line; None means not given. An option replaces its rival in the file.

        Raises:
            BadInputError: If the file cannot be read.
            ConfigError: If a name or a value is invalid.
        """
        values: dict[str, Any] = {}
        if file is not None:
            values = read_toml(file)
            cls.of(values, f"{file}: ")
        given = {name: value for name, value in options.items() if value is not None}
        replaced = {rival for name, rival in cls.RIVALS.items() if name in given}
        return cls.of({k: v for k, v in values.items() if k not in replaced} | given)

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Complete values with the defaults of their recipe.

        Args:
            given: Values by name, from a TOML file or the command line.
            where: The origin of the values, as a prefix of error messages.

        Raises:
            ConfigError: If a name is unknown or a value is invalid.
        """
        cls.check_given(given, where)
        values = {name: _typed(cls, name, value, where) for name, value in given.items()}
        if not cls.RECIPES:
            return cls(**values)
        recipe = values.get("recipe", next(iter(cls.RECIPES)))
        return cls(**{"recipe": recipe, **cls.recipe_defaults(recipe, values), **values})

    @classmethod
    def check_given(cls, given: Mapping[str, Any], where: str) -> None:
        """Check the names of the given settings beyond those of all fields.

        Raises:
            ConfigError: If one does not fit.
        """

    @classmethod
    def recipe_defaults(cls, recipe: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults of a recipe.

        Args:
            recipe: The recipe.
            values: The settings that are given, and replace defaults.
        """
        return cls.RECIPES[recipe]

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)  # pyright: ignore[reportArgumentType]  # every subclass is a dataclass


@cache
def _settings_of(settings: type) -> Mapping[str, Setting]:
    hints = get_type_hints(settings, include_extras=True)
    return {field.name: _setting(hints[field.name]) for field in fields(settings)}


def _setting(hint: Any) -> Setting:
    kind, *checks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(kind) is tuple:
        return Setting(tuple, get_args(kind)[0], tuple(checks))
    optional = [one for one in get_args(kind) if one is not NoneType]
    return Setting(optional[0] if optional else kind, None, tuple(checks))


def _typed(settings: type, name: str, value: Any, where: str) -> Any:
    """Return a value with the type of its setting: names become enums, whole numbers floats, lists tuples."""
    known = _settings_of(settings)
    if name in RENAMED and RENAMED[name] in known:
        raise ConfigError(f"{where}{name} is now named {RENAMED[name]}; rename it")
    if name not in known:
        raise ConfigError(f"{where}unknown setting {name!r}; known settings: {', '.join(known)}")
    kind, entries = known[name].kind, known[name].entries
    if entries:
        return _listed(entries, name, value, where)
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise ConfigError(f"{where}{name} must be {', '.join(kind)}; got {value!r}")
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigError(f"{where}{name} must be {_TYPE_NAMES[kind]}, got {value!r}")
    return value


def _listed(kind: type, name: str, value: Any, where: str) -> tuple[Any, ...]:
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(value, list | tuple) or not all(type(entry) in allowed for entry in value):
        raise ConfigError(f"{where}{name} must be a list of {_ENTRY_NAMES[kind]}, got {value!r}")
    return tuple(map(kind, value))
