"""No regular expression repeats what repeats itself: on a text that fits nearly, it would try every division of it."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

import pytest

import citerec

# the others give nothing back, so they try one division
GREEDY = (
    "MAX_REPEAT",
    "MIN_REPEAT",
)


def nested(pattern: Any) -> Iterator[str]:
    """Yield the repeats of a parsed pattern whose text may be nothing but another repeat."""
    for kind, value in pattern:
        parts = value if isinstance(value, list | tuple) else [value]
        inner = [
            one
            for part in parts
            for one in (part if isinstance(part, list) else [part])
        ]
        inner = [one for one in inner if isinstance(one, parser.SubPattern)]
        if str(kind) in GREEDY and value[1] is parser.MAXREPEAT:
            yield from (str(body) for body in inner if _only_repeats(body))
        for body in inner:
            yield from nested(body)


def _only_repeats(body: Any) -> bool:
    """Return whether one unbounded repeat, directly or in a group or branch, can be the whole text."""
    least = [parser.SubPattern(body.state, [one]).getwidth()[0] for one in body]
    for place, (kind, value) in enumerate(body):
        if sum(least) > least[place]:
            continue
        if str(kind) in GREEDY and value[1] is parser.MAXREPEAT:
            return True
        branches = (
            value[1]
            if str(kind) == "BRANCH"
            else [value[-1]]
            if str(kind) == "SUBPATTERN"
            else []
        )
        if any(_only_repeats(one) for one in branches):
            return True
    return False


def patterns() -> dict[str, str]:
    """Return the patterns of the package by their text, with their files."""
    found: dict[str | bytes, str] = {}
    for module in pkgutil.walk_packages(citerec.__path__, "citerec."):
        if module.name != "citerec.__main__":
            values = vars(importlib.import_module(module.name)).values()
            found |= {
                one.pattern: module.name
                for one in values
                if isinstance(one, re.Pattern)
            }
    for file in Path(citerec.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:  # within a function
                case ast.Call(ast.Attribute(ast.Name("re")), [ast.Constant(text), *_]):
                    found[text] = file.name
    return {
        k if isinstance(k, str) else k.decode("latin-1"): v for k, v in found.items()
    }


@pytest.mark.parametrize(
    ("pattern", "is_nested"),
    [
        (r"(a+)+b", True),
        (r"(?:a|b*)*c", True),
        (r"([ \t]*\n?)*x", True),
        (r"(?:ab+)*", False),
        (r"(?:[^a]++|b)*c", False),
        (r"(?:\s|%[^\n]*\n)*@", False),
    ],
)
def test_what_counts_as_nested(pattern: str, is_nested: bool) -> None:
    assert bool([*nested(parser.parse(pattern))]) == is_nested


def test_no_pattern_of_the_package_is_nested() -> None:
    found = patterns()

    assert len(found) > 150
    assert {p: where for p, where in found.items() if [*nested(parser.parse(p))]} == {}
