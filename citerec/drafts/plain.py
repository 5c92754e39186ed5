"""Reads a query from plain text: the title on the first line, the abstract below it."""

import re
from pathlib import Path

import orjson

from citerec.bibliography.record import Draft, Record
from citerec.errors import BadInputError

_TITLE = re.compile(r"(?:#+\s+)?(title\s*:\s*)?", re.IGNORECASE)
_ABSTRACT = re.compile(r"(?:#+\s+)?abstract(?:\s*[:.\u2014\u2013]\s*|\s+-\s+|\s*$)", re.IGNORECASE)
_NOT_PROSE = (
    (
        re.compile(r"^[ \t]*\\(?:documentclass|begin\{document|title\{)", re.MULTILINE),
        "LaTeX source",
    ),
    (re.compile(r"\APMID- ", re.MULTILINE), "PubMed's own format"),
)


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the one paper that `text` is: the first line that is not blank is the title, the rest the abstract.

    Labels `Title:` and `Abstract:` are recognised; with both, the title may take several lines.

    Raises:
        BadInputError: If the text is LaTeX source, PubMed's format or a single JSON value.
    """
    _refuse(text, name)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    title, rest = _split(lines)
    if rest:
        rest[0] = _ABSTRACT.sub("", rest[0], count=1) if _ABSTRACT.match(rest[0]) else rest[0]
    record = Record(number=1, line=1, fields={})
    return [
        Draft(
            record=record,
            id="",
            title=title,
            abstract=" ".join(rest),
            year=None,
            authors=(),
            venue="",
        )
    ]


def _split(lines: list[str]) -> tuple[str, list[str]]:
    """Split the lines into the title and the lines of the abstract, including its label."""
    label = _TITLE.match(lines[0])
    first = lines[0][label.end() :] if label else lines[0]
    if _ABSTRACT.match(first):
        return "", lines
    if label and label[1]:
        starts = [i for i, line in enumerate(lines) if i and _ABSTRACT.match(line)]
        end = starts[0] if starts else (1 if first else 2)
        return " ".join([first, *lines[1:end]]), lines[end:]
    return first, lines[1:]


def _refuse(text: str, name: Path | str) -> None:
    for pattern, format_name in _NOT_PROSE:
        if pattern.search(text):
            raise BadInputError(
                name,
                f"this is {format_name}; pass the paper: citerec recommend --title T --abstract A",
            )
    if _is_json_value(text.strip()):
        raise BadInputError(
            name, "this is a single JSON value; expected an object with a title", line=1
        )


def _is_json_value(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return text in {"NaN", "Infinity", "-Infinity"}
    return True
