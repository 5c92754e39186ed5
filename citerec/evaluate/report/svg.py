"""Figures as SVG elements of a page: in its colours (light or dark) and font, with reproducible bytes.

matplotlib draws with colours that stand for CSS variables of the page. The names of systems are in a legend of the
page. The page must define --ink, --rule and --s0 to --s9.
"""

import re
from html import escape
from typing import Any

from citerec.export.clean import visible

COLOURS = 10  # --s0 to --s9
DASHES: tuple[tuple[str, str], ...] = (  # of matplotlib, and of a legend in the page
    ("-", ""),
    ("--", "6 3"),
    ("-.", "7 2 1.5 2"),
    (":", "1.5 2.5"),
)
MARKERS = "os^DvPX*"
INK, RULE = "#c0de10", "#c0de11"

_VARIABLES = {f"#c0de0{n}": f"var(--s{n})" for n in range(COLOURS)} | {
    INK: "var(--ink)",
    RULE: "var(--rule)",
}
_SETTINGS: Any = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "citerec",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.parse_math": False,
}
# The page sets fonts and line joins for all figures; a rotation by 0 is dropped.
_OURS = re.compile(
    r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>| font-family: [^;]*;"
    r'| transform="rotate\(-?0 [^"]*"',
    re.DOTALL,
)
_PLACES = re.compile(r'(?<= (?:d|x|y)=")[^"]*|(?<= transform=")[^"]*')
_LONG = re.compile(r"(\d\.\d\d)\d+")


def style(number: int) -> dict[str, Any]:
    """Return the line style of a system number from 0; the first twenty are distinct."""
    dash = DASHES[(number + number // 20) % len(DASHES)][0]
    return {"color": f"#c0de0{number % COLOURS}", "linestyle": dash, "linewidth": 1.8}


def marked(number: int) -> dict[str, Any]:
    """Return `style` with a marker at each point."""
    return {**style(number), "marker": MARKERS[number % len(MARKERS)], "markersize": 4.5}


def key_of(number: int) -> tuple[str, str]:
    """Return colour and dashes of `style` in CSS."""
    return f"var(--s{number % COLOURS})", DASHES[(number + number // 20) % len(DASHES)][1]


def settings() -> Any:
    """Return the context in which a figure must be drawn and written."""
    from matplotlib import rc_context

    return rc_context(_SETTINGS)


def new_figure(height: float) -> Any:
    """Return an empty figure without background; 5 inches wide, so that its text is legible on a phone."""
    from matplotlib.figure import Figure

    return Figure(figsize=(5.0, height), layout="constrained", facecolor="none")


def as_svg(figure: Any, key: str, title: str) -> str:
    """Write a figure as an SVG element of a page.

    Args:
        figure: Drawn within `settings`.
        key: Prefix of all ids, unique in the page; letters, digits and hyphens.
        title: A description of the figure, for screen readers.
    """
    from io import StringIO

    buffer = StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=no_metadata, transparent=True)
    inner = buffer.getvalue().partition("<svg")[2]
    box = re.search(r'viewBox="[^"]*"', inner)
    body = inner.partition(">")[2].rpartition("</svg>")[0]
    body = _OURS.sub("", body)
    body = _PLACES.sub(lambda place: _LONG.sub(r"\1", " ".join(place[0].split())), body)
    body = re.sub(r' id="', f' id="{key}-', body)
    body = body.replace('xlink:href="#', f'href="#{key}-').replace("url(#", f"url(#{key}-")
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, variable)
    label = f'<title id="{key}-title">{escape(visible(title))}</title>'
    opening = f'<svg {box[0] if box else ""} role="img" aria-labelledby="{key}-title">'
    body = re.sub(r">\s+<", "><", body.strip())
    return f"{opening}{label}{body}</svg>"
