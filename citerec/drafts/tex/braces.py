"""Arguments of LaTeX commands: text in balanced braces or brackets. A whole text is scanned once, in linear time."""

import re
from collections.abc import Mapping
from functools import lru_cache

MAX_OPTIONAL = 2_000  # characters of an argument in brackets
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BRACKET = re.compile(r"\\.|[{}\]]", re.DOTALL)
_SPACE = re.compile(r"\s*")


def argument(text: str, at: int) -> tuple[str | None, int]:
    """Return the argument in braces that begins at `at`, after white space, and its end.

    Without an opening brace the argument is None and the end is `at`; an unclosed one is None, too.
    """
    start = _past_space(text, at)
    if not text.startswith("{", start):
        return None, at
    end = _closings(text).get(start)
    return (None, at) if end is None else (text[start + 1 : end], end + 1)


def optional(text: str, at: int) -> tuple[str | None, int]:
    """Return the argument in brackets that begins at `at`, after white space, and its end; None and `at` if none.

    As in TeX, the first closing bracket outside of braces ends it.
    """
    start = _past_space(text, at)
    most = start + MAX_OPTIONAL
    if not text.startswith("[", start) or text.find("]", start, most) < 0:
        return None, at
    place = start + 1
    while match := _BRACKET.search(text, place, most):
        place = match.end()
        if match[0] == "]":
            return text[start + 1 : match.start()], place
        if match[0] == "{":
            place = _closings(text).get(match.start(), most) + 1
        elif match[0] == "}":
            break
    return None, at


@lru_cache(maxsize=4)
def _closings(text: str) -> Mapping[int, int]:
    """Return the position of the closing brace for that of each opening brace that is closed."""
    opened: list[int] = []
    closings: dict[int, int] = {}
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            closings[opened.pop()] = match.start()
    return closings


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
