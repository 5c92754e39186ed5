"""Renders a report as one self-contained HTML page; the only module that imports jinja2.

Names are untrusted: all text is escaped, and no character controls the direction of text. The page runs no script and
loads nothing.
"""

import warnings
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np

from citerec.config import RANKING_DEPTH
from citerec.evaluate.significance import Floats
from citerec.evaluate.tables import Table, decimal
from citerec.text import visible, visible_lines

DEPTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the table of recall
LONGEST_LABEL = 40  # characters of a name in the legend
LINES = ("-", "--", "-.", ":")  # the next style for every ten colours


def page(
    *,
    title: str,
    facts: Sequence[str],
    systems: Table,
    tests: Sequence[Table],
    alpha: float,
    curves: Mapping[str, Floats],
    provenance: str,
) -> str:
    """Return the page of a report.

    Args:
        title: The corpus and the split.
        facts: What the figures are of, one line each.
        systems: The systems and their metrics.
        tests: The significance tests of each compared metric; may be empty.
        alpha: The level of these tests.
        curves: Recall at the depths from 1, by system.
        provenance: JSON.
    """
    depths = {
        name: [decimal(float(curve[d - 1])) for d in DEPTHS] for name, curve in curves.items()
    }
    return _template().render(
        title=title,
        facts=facts,
        systems=systems,
        tests=tests,
        alpha=alpha,
        picture=b64encode(_recall_svg(curves)).decode(),
        heads=DEPTHS,
        depths=depths,
        provenance=provenance,
    )


def _recall_svg(curves: Mapping[str, Floats]) -> bytes:
    """Draw recall by depth, one line per system, with a logarithmic axis; the same curves give the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    buffer = BytesIO()
    settings: Any = {"svg.hashsalt": "citerec", "svg.fonttype": "none", "text.parse_math": False}
    with rc_context(settings), warnings.catch_warnings():
        # The font that measures names lacks some scripts; the browser has them.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure: Any = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, curve) in enumerate(curves.items()):
            label = visible(name)[:LONGEST_LABEL]
            axes.plot(
                np.arange(1, len(curve) + 1),
                curve,
                LINES[number // 10 % len(LINES)],
                color=f"C{number % 10}",
                label=f" {label}",  # a leading underscore would hide the line
            )
        axes.set(xscale="log", xlim=(1, RANKING_DEPTH), ylim=(0, 1.02))
        axes.set(xlabel="papers read", ylabel="recall")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(loc="upper left", fontsize=8)
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _clean(value: Any) -> Any:
    return visible_lines(value) if type(value) is str else value  # not markup of the template


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("citerec.evaluate", "."),
        autoescape=True,
        finalize=_clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")
