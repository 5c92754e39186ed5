"""Renders a report as one self-contained HTML file; the only module that imports jinja2.

Names and titles are untrusted: all text is escaped, and no character controls the direction of text. The page forbids
the browser to load anything or to run scripts other than its own.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Any

from citerec.evaluate.report.model import Report
from citerec.evaluate.report.svg import key_of
from citerec.export.clean import visible_lines

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


def html(report: Report) -> str:
    """Return a report as HTML; the same content gives the same bytes."""
    digest = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    return _template().render(report=report, generator=GENERATOR, script=_SCRIPT, digest=digest)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def clean(value: Any) -> Any:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        return visible_lines(value)

    environment: Any = Environment(
        loader=PackageLoader("citerec.evaluate.report", "."),
        autoescape=True,
        finalize=clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"drawn": Markup, "key": key_of}
    return environment.get_template("page.html")
