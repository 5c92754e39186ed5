"""Arguments of LaTeX commands: text in balanced braces or brackets."""

import re

MAX_ARGUMENT = 100_000  # characters; a brace that is not closed within them counts as never closed
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_BRACKET = re.compile(r"\\.|[{}\[\]]", re.DOTALL)
_SPACE = re.compile(r"\s*")


def argument(text: str, at: int) -> tuple[str | None, int]:
    """Return the argument in braces that begins at `at`, after white space, and its end.

    Without an opening brace the argument is None and the end is `at`; an unclosed one is None, too.
    """
    start = _past_space(text, at)
    if not text.startswith("{", start):
        return None, at
    depth = 0
    for match in _BRACE.finditer(text, start, start + MAX_ARGUMENT):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return text[start + 1 : match.start()], match.end()
    return None, at


def optional(text: str, at: int) -> tuple[str | None, int]:
    """Return the argument in brackets that begins at `at`, after white space, and its end; None and `at` if none."""
    start = _past_space(text, at)
    if not text.startswith("[", start):
        return None, at
    braces = brackets = 0
    for match in _BRACKET.finditer(text, start, start + MAX_ARGUMENT):
        sign = match[0]
        braces += {"{": 1, "}": -1}.get(sign, 0)
        if braces == 0:
            brackets += {"[": 1, "]": -1}.get(sign, 0)
        if braces < 0:
            return None, at
        if brackets == 0:
            return text[start + 1 : match.start()], match.end()
    return None, at


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
