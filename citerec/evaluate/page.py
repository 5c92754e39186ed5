"""A page of tables and figures as one self-contained HTML file; the only module that imports jinja2.

All text is escaped, since names and titles are untrusted. The page forbids the browser to load anything or to run
scripts other than its own.
"""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from citerec.errors import ConfigError
from citerec.evaluate.svg import key_of

GENERATOR = "citerec"  # marks the pages of citerec

_SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      const value = row => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const x = value(a), y = value(b), lacks = (x === "") - (y === "");
        const order = lacks ? 0 : x - y || (x - y === 0 ? 0 : x.localeCompare(y));
        return lacks || (up ? order : -order);
      };
      body.append(...[...body.rows].sort(compare));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  });
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str
    small: Sequence[str] = ()  # smaller lines below it
    order: float | str | None = None  # sort key; None for the text
    link: str = ""  # http, https, an anchor of this page, or a relative path
    kind: str = ""  # style: best, better, worse, ok, near, fail, none, name, text; never the only information


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table; the first cell of each row is its heading."""

    caption: str
    heading: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_sortable: bool = True

    def __post_init__(self) -> None:
        if bad := [len(row) for row in self.rows if len(row) != len(self.heading)]:
            raise ValueError(
                f"{self.caption}: a row of {bad[0]} cells, {len(self.heading)} columns"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing of `citerec.evaluate.plots` with its legend, and its data as a table."""

    svg: str  # trusted: drawn by citerec
    caption: str
    legend: Sequence[tuple[int, str]]  # number and name of each system
    table: PageTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page."""

    title: str
    text: Sequence[str] = ()  # paragraphs
    notes: Sequence[str] = ()  # a list below the tables
    tables: Sequence[PageTable] = ()
    figures: Sequence[Figure] = ()
    code: str = ""  # preformatted, collapsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole page."""

    title: str
    facts: Sequence[tuple[str, str]]  # name and value of each fact about the evaluation
    sections: Sequence[Section]


def render(page: Page) -> str:
    """Return the page as HTML; the same content gives the same bytes."""
    digest = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    return _template().render(page=page, generator=GENERATOR, script=_SCRIPT, digest=digest)


def safe_link(link: str) -> str:
    """Return a link if it is a web address or a relative path.

    Raises:
        ConfigError: If it is anything else, such as a script.
    """
    if urlsplit(link).scheme not in ("", "http", "https"):
        raise ConfigError(f"a link must be http, https or relative, got {link[:60]!r}")
    return link


def is_address(text: str) -> bool:
    """Return whether a text is a web address and nothing else."""
    return text.startswith(("https://", "http://")) and not any(c.isspace() for c in text)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment: Any = Environment(
        loader=PackageLoader("citerec.evaluate", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"drawn": Markup, "safe_link": safe_link, "key": key_of}
    return environment.get_template("page.html")
