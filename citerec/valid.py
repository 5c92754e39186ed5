"""What every paper and every query must be, whoever makes them: a reader, the command line or a program."""

import unicodedata
from operator import index
from typing import Any

from citerec.errors import InvalidValueError, shown

YEARS = range(1, 10_000)


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
    """Return why a value cannot be a year; empty if it can. A bool is a number in Python, but no year."""
    is_number = hasattr(value, "__index__") and not isinstance(value, bool)
    if value is None or (is_number and index(value) in YEARS):  # pyright: ignore[reportArgumentType]
        return ""
    return f"must be a year such as 2019, or null; found {shown(value)}"


def whole(value: Any) -> Any:
    """Return a float such as 2019.0, which tables with gaps hold in place of 2019, as an int; all else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_id(value: object, what: str) -> None:
    """Refuse what cannot be the id of a paper or a query.

    Raises:
        InvalidValueError: If it cannot.
    """
    if fault := id_fault(value):
        raise InvalidValueError(f"a {what}", f"its id {fault}")


def check_title(value: object, what: str, *, may_be_empty: bool = False) -> None:
    """Refuse what cannot be a title.

    Raises:
        InvalidValueError: If it is no string, or holds no word where it must.
    """
    if not isinstance(value, str):
        raise InvalidValueError(what, f"its title must be a string, found {shown(value)}")
    if not may_be_empty and not value.strip():
        raise InvalidValueError(what, "it has no title, and a query needs one")


def check_text(value: object, name: str, what: str) -> None:
    """Refuse what is no text; an empty one may be.

    Raises:
        InvalidValueError: If it is no string.
    """
    if not isinstance(value, str):
        raise InvalidValueError(what, f"its {name} must be a string, found {shown(value)}")


def checked_year(value: Any, what: str) -> int | None:
    """Return a year as an int of Python, which NumPy's and pandas' are not.

    Raises:
        InvalidValueError: If it is no whole number from 1 to 9999, such as NaN.
    """
    value = whole(value)
    if fault := year_fault(value):
        raise InvalidValueError(what, f"its year {fault}")
    return None if value is None else index(value)


def checked_strings(value: Any, name: str, what: str) -> tuple[str, ...]:
    """Return the strings of any iterable, such as a list of authors, as a tuple.

    Raises:
        InvalidValueError: If it is a single string, whose letters would be taken, or holds something else.
    """
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidValueError(what, f"its {name} must be a list of strings, found {shown(value)}")
    strings = tuple(value)
    if strange := [item for item in strings if not isinstance(item, str)]:
        raise InvalidValueError(what, f"its {name} must be strings, found {shown(strange[0])}")
    return strings
