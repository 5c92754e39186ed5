"""Reads the settings of a training: a named recipe, a TOML file that overrides it, and options that override both.

The settings of each trainer are a frozen dataclass; the annotation of a field holds its type and its bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from citerec.encode.config import Precision
from citerec.errors import ConfigError
from citerec.settings import checked
from citerec.toml import read_toml

Check = Callable[[str, Any], None]  # (name, value); raises a ConfigError

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


From0 = Annotated[int, at_least(0), less_than_2_to(31)]
From1 = Annotated[int, at_least(1), less_than_2_to(31)]
Batch = Annotated[int, at_least(1), at_most(1_000_000)]
Threads = Annotated[int, at_least(0), at_most(1024)]
NotNegative = Annotated[float, at_least(0)]
AboveZero = Annotated[float, _above_0]
Share = Annotated[float, _below_1]  # in [0, 1)
Seed = Annotated[int, at_least(0), less_than_2_to(32)]
Dtype = Annotated[Precision, _trainable]
Device = Annotated[str, _auto_or_cpu]


class TrainingSettings:
    """The reading of settings; the subclasses are frozen dataclasses whose fields all have a default."""

    __slots__ = ()
    RECIPES: ClassVar[
        Mapping[str, Mapping[str, Any]]
    ] = {}  # the defaults of each; the first is the default recipe
    RIVALS: ClassVar[Mapping[str, str]] = {}  # settings that exclude each other
    REMOVED: ClassVar[Mapping[str, Any]] = {}  # former settings, with the value that is now fixed

    def __post_init__(self) -> None:
        for name, checks in _checks_of(type(self)).items():
            for check in checks:
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
        fields = get_type_hints(cls)
        for name in (n for n in given if RENAMED.get(n) in fields):
            raise ConfigError(f"{where}{name} is now named {RENAMED[name]}; rename it")
        values = checked(cls, given, where)
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
    def replaced_by(cls, given: Mapping[str, Any]) -> set[str]:
        """Return the names of settings that given ones replace, or leave without effect."""
        return {rival for name, rival in cls.RIVALS.items() if name in given}

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
def _checks_of(settings: type) -> Mapping[str, tuple[Check, ...]]:
    """Return the checks in the annotation of each field that has some."""
    hints = get_type_hints(settings, include_extras=True)
    return {n: get_args(h)[1:] for n, h in hints.items() if get_origin(h) is Annotated}
