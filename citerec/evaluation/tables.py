"""Tables as values, rendered for the terminal and as LaTeX; texts are plain, and only renderers escape them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citerec.display import visible, visible_lines

if TYPE_CHECKING:
    from rich.table import Table as RichTable

NONE = "–"  # a value that is not known
HEADINGS = {
    "f1": "F1",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg": "nDCG",
    "recall": "R",
    "precision": "P",
}
_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "\N{EN DASH}": "--",
        "\N{EM DASH}": "---",
        "\N{MINUS SIGN}": "$-$",
        **{mark: f"\\{mark}" for mark in "{}#$%&_"},
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table."""

    text: str
    note: str = ""  # smaller, such as an interval
    marks: str = ""  # superscript, such as the letters of worse systems
    is_best: bool = False  # bold


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; its first columns hold names, the others numbers."""

    caption: str
    columns: Sequence[str]  # line breaks are for the terminal
    rows: Sequence[Sequence[Cell]]
    names: int = 1  # columns of names, to the left
    rule_after: int = 0  # a line below so many rows; 0 for none


def heading(metric: str) -> str:
    """Return a metric as papers write it: `recall@10` is R@10, `ndcg@20` is nDCG@20."""
    name, cut = metric.partition("@")[::2]
    if "(of means)" in cut:
        return f"{HEADINGS.get(name, name)} of means"
    return f"{HEADINGS.get(name, name)}{cut and f'@{cut}'}"


def decimal(value: float) -> str:
    """Format a value with three decimals and without a leading zero, as in IR papers."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def terminal(table: Table) -> "RichTable":
    """Return a table for rich, without its caption."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text  # since "[...]" in a string is markup

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column(visible_lines(table.columns[0]), overflow="fold", min_width=10)
    for number, name in enumerate(table.columns[1:], start=1):
        justify = "left" if number < table.names else "right"
        drawn.add_column(visible_lines(name), justify=justify, no_wrap=True)
    for number, row in enumerate(table.rows, start=1):
        texts = [
            " ".join(filter(None, map(visible, (cell.text, cell.note)))) for cell in row
        ]
        styles = ["bold" if cell.is_best else "" for cell in row]
        drawn.add_row(*map(Text, texts, styles), end_section=number == table.rule_after)
    return drawn


def latex(tables: Sequence[Table], *, made_by: str = "") -> str:
    """Return tables as LaTeX for the package booktabs, with the command that made them as a comment."""
    origin = f"Made by `{made_by}`; " if made_by else ""
    lines = [f"% {origin}needs \\usepackage{{booktabs}}"]
    for table in tables:
        places = "l" * table.names + "r" * (len(table.columns) - table.names)
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(table.caption)}}}",
            rf"\begin{{tabular}}{{{places}}}",
            r"\toprule",
            rf"{' & '.join(map(_latex_text, table.columns))} \\",
            r"\midrule",
        ]
        for number, row in enumerate(table.rows, start=1):
            lines.append(rf"{' & '.join(map(_latex_cell, row))} \\")
            if number == table.rule_after:
                lines.append(r"\midrule")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    text = _latex_text(cell.text)
    if cell.is_best:
        text = rf"\textbf{{{text}}}"
    if cell.marks:
        text += f"$^{{{_latex_text(cell.marks)}}}$"
    return text + (_latex_text(f" {cell.note}") if cell.note else "")


def _latex_text(text: str) -> str:
    """Escape the special characters of LaTeX, and replace characters outside its default fonts by `?`."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    known = "".join(c if ord(c) < 0x180 or ord(c) in _ESCAPES else "?" for c in plain)
    return known.translate(_ESCAPES)
