r"""Expands the macros that a LaTeX draft defines itself: `\newcommand{\name}{X}`, `\def\name{X}` and the like."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from citerec.drafts.tex.braces import argument, optional

MAX_MACROS = 5_000  # definitions of a draft
MAX_BODY = 5_000  # characters of a definition
_ROUNDS = 8  # macros within macros
_MAX_EXPANDED = 4  # times the length of a text, and
_LEAST_BOUND = 20_000  # at least as many characters
_DEFINITION = re.compile(
    r"""\\(?:(?:new|renew|provide)command\*?|DeclareRobustCommand\*?
          |(?:New|Renew|Provide|Declare)DocumentCommand|DeclareMathOperator\*?)\s*
        (?:\{\s*\\([A-Za-z@]+)\s*\}|\\([A-Za-z@]+))
      | \\[egx]?def\s*\\([A-Za-z@]+)((?:\s*\#[1-9])*)\s*(?=\{)""",
    re.VERBOSE,
)
_COUNT = re.compile(r"\s*\[([0-9])\]")
_USE = re.compile(r"\\([A-Za-z@]+)\*?")
_PARAMETER = re.compile(r"#([1-9])")
_AFTER_XSPACE = re.compile(r"\s*(?=[^\s.,;:!?'\"’”)\]}/~\\-])")


@dataclass(frozen=True, slots=True)
class Macro:
    """The definition of a macro."""

    body: str  # with #1 to #9 for the arguments
    arguments: int = 0
    default: str | None = None  # of the first argument, which is optional if there is one


def defined_macros(text: str) -> dict[str, Macro]:
    """Return the macros that LaTeX source defines, by name; the last definition counts."""
    macros: dict[str, Macro] = {}
    at = 0
    while len(macros) < MAX_MACROS and (match := _DEFINITION.search(text, at)):
        at = match.end()
        name = match[1] or match[2] or match[3]
        count, default = (match[4] or "").count("#"), None
        if "DocumentCommand" in match[0]:
            signature, at = argument(text, at)
            count = len((signature or "").split())
        elif stated := _COUNT.match(text, at):
            count, at = int(stated[1]), stated.end()
            default, at = optional(text, at)
        body, at = argument(text, at)
        if body is None or len(body) > MAX_BODY:
            continue
        macros[name] = Macro(body, count, default)
    return macros


def expand(text: str, macros: Mapping[str, Macro]) -> str:
    """Return `text` with the macros replaced by what they stand for, also within each other.

    A macro that defines itself stays after some rounds; a text that grows too long stays as it is.
    """
    bound = max(_MAX_EXPANDED * len(text), _LEAST_BOUND)
    for _ in range(_ROUNDS):
        expanded = _expand_once(text, macros, bound)
        if expanded is None or expanded == text:
            break
        text = expanded
    return text


def _expand_once(text: str, macros: Mapping[str, Macro], bound: int) -> str | None:
    """Replace each use of a macro once; None if the result is longer than `bound`."""
    pieces: list[str] = []
    length = at = 0
    while match := _USE.search(text, at):
        macro = macros.get(match[1])
        piece, end = match[0], match.end()
        if macro and f"\\{match[1]}" not in macro.body:
            piece, end = _replacement(macro, text, end)
        pieces += (text[at : match.start()], piece)
        length += match.start() - at + len(piece)
        if length > bound:
            return None
        at = end
    return "".join([*pieces, text[at:]])


def _replacement(macro: Macro, text: str, at: int) -> tuple[str, int]:
    """Return what a use of a macro stands for, and the end of its arguments."""
    values: list[str] = []
    if macro.default is not None:
        value, at = optional(text, at)
        values.append(macro.default if value is None else value)
    while len(values) < macro.arguments:
        value, end = argument(text, at)
        if value is None:
            break
        values.append(value)
        at = end
    body = _PARAMETER.sub(
        lambda p: values[int(p[1]) - 1] if int(p[1]) <= len(values) else "", macro.body
    )
    if not macro.arguments and text.startswith("{}", at):
        at += 2
    if body.endswith("\\xspace"):
        body = body.removesuffix("\\xspace")
        if _AFTER_XSPACE.match(text, at) and text[at : at + 1].isspace():
            body += " "
    return body, at
