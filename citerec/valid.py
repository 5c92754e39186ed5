"""Validates the fields of papers and queries, from readers, the command line or programs."""

import unicodedata
from operator import index
from typing import Any

from citerec.errors import InvalidValueError, shown

YEARS = range(1, 10_000)
MAX_TITLE = 20_000  # characters
MAX_ABSTRACT = 2_000_000  # characters


def id_fault(value: object) -> str:
    """Return why a value cannot be the id of a paper or a query; empty if it can."""
    if not isinstance(value, str):
        return f"must be a string, found {shown(value)}"
    if not value.strip():
        return "is empty; expected an id of at least one visible character"
    if not value.isprintable() and any(unicodedata.category(c) == "Cc" for c in value):
        return f"holds a line break or control character: {shown(value)}"
    return ""


def year_fault(value: object) -> str:
    """Return why a value cannot be a year; empty if it can. A bool is not a year, although it is a number in Python."""
    is_number = hasattr(value, "__index__") and not isinstance(value, bool)
    if value is None or (is_number and index(value) in YEARS):  # pyright: ignore[reportArgumentType]
        return ""
    return f"must be a year such as 2019, or null; found {shown(value)}"


def whole(value: Any) -> Any:
    """Return a float such as 2019.0, which tables with gaps have instead of 2019, as an int; other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_id(value: object, what: str) -> None:
    """Refuse a value that cannot be the id of a paper or a query.

    Raises:
        InvalidValueError: If it cannot.
    """
    if fault := id_fault(value):
        raise InvalidValueError(f"a {what}", f"its id {fault}")


def check_title(value: object, what: str, *, may_be_empty: bool = False) -> None:
    """Refuse a value that cannot be a title.

    Raises:
        InvalidValueError: If it is not a string, or has no word although it must.
    """
    if not isinstance(value, str):
        raise InvalidValueError(what, f"its title must be a string, found {shown(value)}")
    if not may_be_empty and not value.strip():
        raise InvalidValueError(what, "it has no title, and a query needs one")


def check_text(value: object, name: str, what: str) -> None:
    """Refuse a value that is not a text; it may be empty.

    Raises:
        InvalidValueError: If it is not a string.
    """
    if not isinstance(value, str):
        raise InvalidValueError(what, f"its {name} must be a string, found {shown(value)}")


def checked_year(value: Any, what: str) -> int | None:
    """Return a year as a Python int; NumPy and pandas have other integer types.

    Raises:
        InvalidValueError: If it is not a whole number from 1 to 9999; NaN, for example.
    """
    value = whole(value)
    if fault := year_fault(value):
        raise InvalidValueError(what, f"its year {fault}")
    return None if value is None else index(value)


def checked_strings(value: Any, name: str, what: str) -> tuple[str, ...]:
    """Return the strings of any iterable, such as a list of authors, as a tuple.

    Raises:
        InvalidValueError: If it is a single string, which would be split into letters, or holds other values.
    """
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidValueError(what, f"its {name} must be a list of strings, found {shown(value)}")
    strings = tuple(value)
    if wrong := [item for item in strings if not isinstance(item, str)]:
        raise InvalidValueError(what, f"its {name} must be strings, found {shown(wrong[0])}")
    return strings
