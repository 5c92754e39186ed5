"""Reads objects inside of records; null and a missing key are an empty object or list everywhere."""

from collections.abc import Iterator
from typing import Any, cast

from citerec.corpus.readers.fields import MAX_SHORT, Fields
from citerec.errors import shown


def inner(fields: Fields, *keys: str) -> Fields:
    """Return the object at a path of keys; it is empty if one is missing or null.

    Raises:
        BadRecordError: If one of them is no object.
    """
    for key in keys:
        value: Any = fields.record.get(key)
        if value is not None and not isinstance(value, dict):
            fields.fail(f"{key!r} must be an object, found {shown(value)}")
        fields = Fields(cast("dict[str, Any]", value or {}), fields.path, fields.line)
    return fields


def objects(fields: Fields, key: str) -> Iterator[Fields]:
    """Yield the objects of a list; null and missing items are skipped.

    Raises:
        BadRecordError: If it is no list, or holds other values.
    """
    for value in listed(fields, key):
        if value is None:
            continue
        if not isinstance(value, dict):
            fields.fail(f"{key!r} must hold objects, found {shown(value)}")
        yield Fields(cast("dict[str, Any]", value), fields.path, fields.line)


def listed(fields: Fields, key: str) -> list[Any]:
    """Return a list; it is empty if it is missing or null.

    Raises:
        BadRecordError: If it is no list.
    """
    value: Any = fields.record.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        fields.fail(f"{key!r} must be a list, found {shown(value)}")
    return cast("list[Any]", value)


def number_text(value: Any) -> str:
    """Return a text or a whole number as text without surrounding blanks; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def short(fields: Fields, key: str) -> str:
    """Return a short text or number as one line; a longer one, and any other type, counts as missing."""
    text = " ".join(number_text(fields.record.get(key)).split())
    return text if len(text) <= MAX_SHORT else ""


def page_range(first: str, last: str) -> str:
    """Return pages such as `12-19`; `12` if there is one page only."""
    return f"{first}-{last}" if first and last and first != last else first or last
