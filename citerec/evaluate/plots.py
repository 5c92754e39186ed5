"""The one picture of a report: how much of what queries cite is found down to each rank."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from citerec.evaluate.significance import Floats
from citerec.run import Qrels, Run

DEPTH = 1000
_LINES = ("-", "--", "-.", ":")  # change where the ten colours start again


def recall_by_depth(run: Run, qrels: Qrels) -> Floats:
    """Return mean recall at every depth, (1000,), for depths 1 to 1000.

    Every query of the qrels counts; one with no ranking counts zero.
    """
    gain = np.zeros(DEPTH)
    for qid, gold in qrels.items():
        ranking = run.rankings.get(qid)
        ids = ranking.ids[:DEPTH] if ranking else ()
        found = [rank for rank, docid in enumerate(ids) if docid in gold]
        gain[found] += 1 / len(gold)
    return np.cumsum(gain) / len(qrels)


def draw_recall(curves: Mapping[str, Floats], path: Path, *, title: str) -> None:
    """Draw one line per system into a PNG, depth on a logarithmic axis.

    Args:
        curves: What `recall_by_depth` gives, by system.
        path: The file.
        title: Over the picture.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(6.4, 4.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for number, curve in enumerate(curves.values()):
        style = _LINES[number // 10 % len(_LINES)]
        axes.plot(np.arange(1, len(curve) + 1), curve, style, color=f"C{number % 10}")
    axes.set(xscale="log", xlim=(1, DEPTH), ylim=(0, 1.02), xlabel="depth", ylabel="recall")
    axes.set_title(title, parse_math=False)
    axes.grid(visible=True, alpha=0.3)
    # A leading underscore would hide a line from the legend.
    labels = [f" {name}" if name.startswith("_") else name for name in curves]
    for text in axes.legend(axes.get_lines(), labels, loc="upper left").get_texts():
        text.set_parse_math(False)  # "$" in a name is a dollar
    with warnings.catch_warnings():
        # The font lacks some scripts; a box in a name is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(path, format="png")
