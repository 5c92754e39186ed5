"""A report as values: sections of text, tables and figures.

Every text is plain. Only the renderers escape it: `html`, `markdown`, `latex` and `terminal`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from citerec.errors import ConfigError

NONE = "–"  # a value that is not known
CellKind = Literal["", "best", "better", "worse", "ok", "near", "fail", "none"]
ColumnStyle = Literal["number", "name", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str
    interval: tuple[str, str] | None = None  # low and high
    notes: Sequence[str] = ()  # smaller lines below it, or in brackets
    marks: str = ""  # superscript letters, such as those of systems that are significantly worse
    order: float | str | None = None  # sort key; None for the text
    link: str = ""  # http, https, an anchor of the page, or a relative path
    kind: CellKind = (
        ""  # bold for the best, a colour on a page; except `best` never the only information
    )

    def __post_init__(self) -> None:
        if urlsplit(self.link).scheme not in ("", "http", "https"):
            raise ConfigError(f"a link must be http, https or relative, got {self.link[:60]!r}")

    @property
    def on_one_line(self) -> str:
        """The text with its interval and notes: `.5 [.4, .6] (expected .5)`."""
        parts = [self.text]
        if self.interval:
            parts.append(f"[{', '.join(self.interval)}]")
        if self.notes:
            parts.append(f"({'; '.join(self.notes)})")
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Column:
    """The heading of a column, and the style of its cells."""

    heading: str  # its line breaks are for the terminal
    style: ColumnStyle = "number"  # numbers to the right; names to the left; text in several lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; the first cell of each row is its heading."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    is_sortable: bool = True  # by the reader of a page
    details: "Table | None" = None  # the same in full: collapsed on a page, below it elsewhere
    rule_after: int = 0  # a line below so many rows; 0 for none

    def __post_init__(self) -> None:
        if bad := [len(row) for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(
                f"{self.caption}: a row of {bad[0]} cells, {len(self.columns)} columns"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with its legend, and its data as a table; outside of a page only the file and the table."""

    draw: Callable[[str], str]  # makes trusted SVG from the prefix of its ids
    caption: str
    legend: Sequence[tuple[int, str]]  # number and name of each system
    table: Table
    file: str = ""  # a picture of the same next to the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report."""

    title: str
    text: Sequence[str] = ()  # paragraphs; Markdown keeps their lines
    drawn: Sequence[str] = ()  # paragraphs about the drawings, where there are drawings
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()  # a list below the tables
    figures: Sequence[Figure] = ()
    code: str = ""  # JSON; collapsed on a page


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report."""

    title: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()  # name and value of each
    text: Sequence[str] = ()  # paragraphs


def columns(first: str, *others: str) -> list[Column]:
    """Return a column of names and columns of numbers."""
    return [Column(first, "name"), *map(Column, others)]


def non_empty(sections: Iterable[Section]) -> list[Section]:
    """Return the sections with content besides text."""
    return [
        section
        for section in sections
        if section.tables or section.figures or section.notes or section.code
    ]


def is_address(text: str) -> bool:
    """Return whether a text is a web address and nothing else."""
    return text.startswith(("https://", "http://")) and not any(c.isspace() for c in text)
