"""Converts the title, the abstract and the names of a LaTeX draft to plain text, by pylatexenc."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from citerec.bibliography.latex import to_text
from citerec.drafts.tex.braces import argument, optional
from citerec.errors import extra
from citerec.text import normalized

MAX_TEXT = 60_000  # characters that are converted
_MAX_DEPTH = 100  # of braces and environments, for pylatexenc's recursion
_CITE = r"[A-Za-z]*[cC]ite(?:[A-Za-z]*)"
_DROPPED = re.compile(  # with their arguments
    rf"""\\(?P<name>{_CITE}|footnote(?:mark|text)?|thanks|tnoteref|fnref|corref|footref|label|ref|eqref|[cC]ref
        |autoref|pageref|index|vspace|hspace|vskip|titlenote|authornote|inst|orcid(?:ID|link)?|email|includegraphics
        |affiliation|institution|address|todo|marginpar|hypertarget|keywords|color|fontsize|selectfont|setlength
        |IEEEmembership|IEEEauthorrefmark|textsuperscript)\*?(?![A-Za-z@])""",
    re.VERBOSE,
)
_KEPT = re.compile(r"\\(?:mbox|hbox|fbox|texorpdfstring|textcolor|href|url|path)(?![A-Za-z@])")
_SECOND = ("textcolor", "href")  # the second of two arguments is the text
_FLOATS = re.compile(
    r"\\begin\s*\{(figure\*?|table\*?|wrapfigure|equation\*?|align\*?|gather\*?|algorithm\*?|tabular\*?|tikzpicture"
    r"|keywords?|IEEEkeywords|CCSXML|teaserfigure|multline\*?|eqnarray\*?)\}"
)
_MOVES = re.compile(
    r"\\(?:noindent|par|maketitle|centering|newpage|clearpage|smallskip|medskip|bigskip|indent|xspace|protect|newline"
    r"|linebreak|break|and|quad|qquad|,|;|!|:)(?![A-Za-z@])\s?|\\\\(?:\s*\[[^\]]{0,300}\])?"
)
_LONE = re.compile(r"\s+([.,;:!?)])")
_EMPTY_BRACKETS = re.compile(r"\(\s*(?:(?:e\.g\.|i\.e\.|see|cf\.?)[,\s]*)?\)|\[\s*\]")


def as_text(latex: str) -> str:
    r"""Return LaTeX as plain text (NFC) on one line; citations, footnotes, labels, floats and displays are left out."""
    latex = latex[:MAX_TEXT]
    latex = _replace(latex, _DROPPED, _drop)
    latex = _without_environments(_replace(latex, _KEPT, _keep))
    latex = _MOVES.sub(" ", latex)
    text = _converted(latex)
    text = _EMPTY_BRACKETS.sub(" ", text.replace("\u00a0", " "))
    return _LONE.sub(r"\1", " ".join(normalized("NFC", text).split()))


def _replace(
    text: str, pattern: re.Pattern[str], replace: Callable[[str, re.Match[str]], tuple[str, int]]
) -> str:
    pieces: list[str] = []
    at = 0
    while match := pattern.search(text, at):
        piece, end = replace(text, match)
        pieces += (text[at : match.start()], piece)
        at = end
    return "".join([*pieces, text[at:]])


def _drop(text: str, match: re.Match[str]) -> tuple[str, int]:
    """Leave a command out, with its optional arguments and one or more in braces."""
    at, any_braces = match.end(), False
    while True:
        value, end = optional(text, at)
        if value is None:
            value, end = argument(text, at)
            if value is None or (any_braces and text[at : at + 1].isspace()):
                return "", at
            any_braces = True
        at = end


def _keep(text: str, match: re.Match[str]) -> tuple[str, int]:
    """Return the text of a command: its second argument if the first is a link or a colour, else its first."""
    first, at = argument(text, match.end())
    if first is None:
        return "", match.end()
    name = match[0][1:]
    if name in ("url", "path"):
        return "", at
    if name in _SECOND or name == "texorpdfstring":
        second, end = argument(text, at)
        if second is not None:
            return f"{{{second}}}", end
    return f"{{{first}}}", at


def _without_environments(text: str) -> str:
    """Leave out figures, tables, displayed formulas and keywords."""
    pieces: list[str] = []
    at = 0
    while match := _FLOATS.search(text, at):
        end = text.find(f"\\end{{{match[1]}}}", match.end())
        pieces.append(text[at : match.start()])
        at = match.end() if end < 0 else end + len(match[1]) + 6
        if end < 0:
            break
    return "".join([*pieces, " ", text[at:]])


def _converted(latex: str) -> str:
    """Convert by pylatexenc; where it fails (deep nesting, half a command), by the reader of bibliographies."""
    if _depth(latex) <= _MAX_DEPTH:
        try:
            return _converter().latex_to_text(latex, tolerant_parsing=True)
        except Exception:
            pass
    return to_text(latex)


def _depth(latex: str) -> int:
    """Return a bound of how deep `latex` is nested."""
    depth = most = 0
    for sign in re.findall(r"\\begin|\\end|\\[^A-Za-z]|[{}\[$]", latex):
        depth += {"}": -1, "\\end": -1}.get(sign, 0 if sign[0] == "\\" and sign != "\\begin" else 1)
        depth = max(depth, 0)
        most = max(most, depth)
    return most


@cache
def _converter() -> Any:
    with extra("drafts"):
        from pylatexenc.latex2text import LatexNodes2Text
    import logging

    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)
    return LatexNodes2Text(math_mode="text", strict_latex_spaces=False)
