r"""The names of the authors in the `\author` commands of the common LaTeX classes."""

import re
from collections.abc import Iterable

from citerec.drafts.tex.braces import argument
from citerec.drafts.tex.fields import MAX_AUTHORS, commands
from citerec.drafts.tex.plain import as_text

_IEEE = re.compile(r"\\IEEEauthorblockN(?![A-Za-z@])")
_AND = re.compile(r"\\(?:and|And|AND|AndAnd|Andand|ANDAND)(?![A-Za-z@])")
_NEXT_LINE = re.compile(
    r"\\\\|\\newline(?![A-Za-z@])|\\(?:affiliation|address|addr|institute|email|thanks)(?![A-Za-z@])"
)
_NAME = re.compile(r"\\name(?![A-Za-z@])\s*")
_PARTS = re.compile(r"\\(fnm|sur|spfx|pfx)(?![A-Za-z@])")
_MARKS = re.compile(r"\$[^$]*\$|\^\{[^{}]*\}|\\textsuperscript\s*\{[^{}]*\}|[*†‡§¶∗]|\d+")
_SEPARATOR = re.compile(r"\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+|\s*;\s*")
_SUFFIX = re.compile(r"(?:Jr|Sr|II|III|IV|PhD|Ph\.D|MD|M\.D)\.?", re.IGNORECASE)
_NO_NAME = re.compile(
    r"[@/\\{}]|anonymous|universit|institut|department|corresponding|author", re.IGNORECASE
)


def names(arguments: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the arguments of the author commands of a draft; what is no name is left out."""
    found: list[str] = []
    for latex in arguments:
        blocks = list(commands(latex, _IEEE)) or [latex]
        for block in blocks:
            for part in _AND.split(block):
                found += _names_of(part)
    return tuple(dict.fromkeys(found[:MAX_AUTHORS]))


def _names_of(latex: str) -> list[str]:
    r"""Return the names in one part of an author command, such as `A. One, B. Two` or `A. One \\ University`."""
    latex = _NAME.sub("", latex)
    if _PARTS.search(latex):  # Springer Nature: \fnm{Ada} \sur{Lovelace}
        pieces = [argument(latex, match.end())[0] or "" for match in _PARTS.finditer(latex)]
        return [as_text(" ".join(pieces))]
    lines = [line for line in _NEXT_LINE.split(_MARKS.sub(" ", latex)) if line.strip(" \t\n{}[]")]
    if not lines:
        return []
    return [name for name in _split(as_text(lines[0])) if _is_name(name)]


def _split(text: str) -> list[str]:
    """Split names at commas and "and"; a suffix such as Jr. stays with its name."""
    names_found: list[str] = []
    for piece in _SEPARATOR.split(text):
        name = piece.strip(" ,.;") + ("." if piece.strip().endswith(("Jr.", "Sr.")) else "")
        if _SUFFIX.fullmatch(name) and names_found:
            names_found[-1] += f" {name}"
        elif name:
            names_found.append(name)
    return names_found


def _is_name(text: str) -> bool:
    words = text.split()
    return (
        1 <= len(words) <= 6 and len(text) <= 80 and not _NO_NAME.search(text) and text[0].isalpha()
    )
