"""Renders tables as LaTeX, for the package booktabs."""

from collections.abc import Iterator, Sequence

from citerec.evaluate.report.model import Cell, Table

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
        "\N{EN DASH}": "--",
        "\N{EM DASH}": "---",
        **{mark: f"\\{mark}" for mark in "{}#$%&_"},
    }
)


def latex(tables: Sequence[Table], *, made_by: str = "") -> str:
    """Return tables as LaTeX, with the command that made them; their document needs only the package booktabs."""
    origin = f"Made by `{made_by}`; " if made_by else ""
    lines = [f"% {origin}needs \\usepackage{{booktabs}}"]
    for table in tables:
        lines += _table(table)
        lines += _table(table.details) if table.details else ()
    return "\n".join(lines) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield rf"\caption{{{_text(table.caption)}}}"
    alignment = "".join("r" if column.style == "number" else "l" for column in table.columns)
    yield rf"\begin{{tabular}}{{{alignment}}}"
    yield r"\toprule"
    yield _line([_text(column.heading) for column in table.columns])
    yield r"\midrule"
    for number, row in enumerate(table.rows, start=1):
        yield _line([_cell(cell) for cell in row])
        if number == table.rule_after:
            yield r"\midrule"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def _line(cells: list[str]) -> str:
    line = rf"{' & '.join(cells)} \\"
    return f"{{}}{line}" if line.startswith(("[", "*")) else line  # else options of the line above


def _cell(cell: Cell) -> str:
    text = _text(cell.text)
    if cell.kind == "best":
        text = rf"\textbf{{{text}}}"
    if cell.marks:
        text += f"$^{{{_text(cell.marks)}}}$"
    return text + _text(cell.on_one_line.removeprefix(cell.text))


def _text(text: str) -> str:
    """Escape the special characters of LaTeX, and replace characters outside its default fonts by `?`."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    known = "".join(c if ord(c) < 0x180 or ord(c) in _ESCAPES else "?" for c in plain)
    return known.translate(_ESCAPES)
