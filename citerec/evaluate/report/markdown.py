"""Renders a report as Markdown."""

import re
from collections.abc import Iterator
from urllib.parse import quote

from citerec.evaluate.report.model import Cell, Figure, Report, Section, Table
from citerec.export.clean import visible, visible_lines

_MARKUP = re.compile(r"\||<(?=[A-Za-z/!?])|(?<=\])\(")  # of tables, HTML and links
_NOT_IN_LINK = re.compile(r"[\s()<>]")


def markdown(report: Report) -> str:
    """Return a report as Markdown; figures are tables, and a picture where there is a file of it."""
    blocks = [f"# {_text(report.title)}"]
    blocks.append("\n".join(f"- {_text(name)}: {_text(value)}" for name, value in report.facts))
    blocks += map(_paragraph, report.text)
    for section in report.sections:
        blocks += _section(section)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"## {_text(section.title)}"
    yield from map(_paragraph, section.text)
    for table in section.tables:
        yield from _table(table, section.title)
    yield "\n".join(f"- {_text(note)}" for note in section.notes)
    for figure in section.figures:
        yield from _figure(figure, section.title)
    if section.code:
        yield f"```json\n{visible_lines(section.code)}\n```"


def _figure(figure: Figure, title: str) -> Iterator[str]:
    if figure.file:
        yield f"![{_text(figure.caption)}]({figure.file})"
    yield from _table(figure.table, title)


def _table(table: Table, title: str) -> Iterator[str]:
    if table.caption != title:
        yield _text(table.caption)
    rules = ["---:" if column.style == "number" else "---" for column in table.columns]
    lines = [
        _line([_text(column.heading) for column in table.columns]),
        _line(rules),
        *(_line([_cell(cell) for cell in row]) for row in table.rows),
    ]
    yield "\n".join(lines)
    if table.details:
        yield from _table(table.details, title)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = _text(cell.text)
    if cell.link:
        link = _NOT_IN_LINK.sub(lambda char: quote(char[0]), visible(cell.link))
        text = f"[{text}]({link})"
    if cell.kind == "best":
        text = f"**{text}**"
    marks = f"<sup>{_text(cell.marks)}</sup>" if cell.marks else ""
    more = _text(cell.on_one_line.removeprefix(cell.text))
    return f"{text}{marks} {more}".strip()


def _paragraph(text: str) -> str:
    return "\n".join(map(_text, text.splitlines()))


def _text(text: str) -> str:
    """Return a text on one line without markup of tables, HTML and links, and without control characters."""
    return _MARKUP.sub(lambda mark: f"\\{mark[0]}", visible(text))
