"""Writes the tables: a line for each row, with its committed result and the published values.

A folder of rows is a table. Its optional `table.toml` has a title, a note, the columns in order, and rows of other
folders.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.display import visible
from citerec.errors import BadInputError
from citerec.evaluation.metrics import METRICS
from citerec.evaluation.tables import NONE, Cell, Table, latex
from citerec.files.reading import read_toml, read_whole
from citerec.lab.experiment.row import (
    MEASURES,
    Experiment,
    ExperimentKind,
    format_measure,
    read_experiment,
)
from citerec.lab.experiment.run import Verdict, judge

ABOUT = "table.toml"  # in the folder of the rows
TEXT = (
    "Made by `citerec experiment table`; each row is a file: `citerec experiment run FILE`.\n"
    "F1@20 is the mean of each query's F1; in brackets its 95 % bootstrap interval.\n"
    "Where others published a figure, it stands behind ours: ours / theirs. "
    f"{NONE}: not run here, or stated by no source that we hold."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsTable:
    """A folder of rows."""

    name: str
    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Experiment]
    # by the row's file
    results: Mapping[Path, Mapping[str, Any]]


def read_tables(root: Path) -> list[ResultsTable]:
    """Read every table under a folder: its rows and their committed results.

    Raises:
        BadInputError: If a row, a result or a table file is invalid.
    """
    folders = sorted({path.parent for path in root.glob("*/*.toml")})
    return [_table(folder, root) for folder in folders]


def tables(root: Path) -> str:
    """Return every table under `root` as Markdown.

    Raises:
        BadInputError: If a row, a result or a table file is invalid.
    """
    blocks = ["# Tables", TEXT]
    for table in read_tables(root):
        rendered = _rendered(table)
        note = "\n".join(map(_text, table.note.splitlines()))
        blocks += [f"## {_text(table.title)}", *filter(None, [note])]
        rules = ["---", "---", *["---:"] * len(table.columns), "---"]
        lines = [[*rendered.columns], rules]
        for row, cells in zip(table.rows, rendered.rows, strict=True):
            title = f"[{_text(row.title)}]({row.path.relative_to(root).as_posix()})"
            lines.append([title, *(_text(cell.text) for cell in cells[1:])])
        blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(blocks) + "\n"


def _text(text: str) -> str:
    return visible(text).replace("|", "\\|")


def tables_as_latex(root: Path) -> str:
    """Return every table under `root` as LaTeX, without verdicts, for the package booktabs.

    Raises:
        BadInputError: If a row, a result or a table file is invalid.
    """
    drawn = [_rendered(table) for table in read_tables(root)]
    own = [
        replace(t, columns=t.columns[:-1], rows=[row[:-1] for row in t.rows])
        for t in drawn
    ]
    return latex(own, made_by="citerec experiment table")


def _table(folder: Path, root: Path) -> ResultsTable:
    about = _about(folder / ABOUT)
    others = [root / name for name in about.get("rows", [])]
    own = [path for path in sorted(folder.glob("*.toml")) if path.name != ABOUT]
    rows = [read_experiment(path) for path in (*own, *others)]
    kinds = {row.kind for row in rows if row.kind is not ExperimentKind.PUBLISHED} or {
        ExperimentKind.PUBLISHED
    }
    results = {row.path: _result(row, root) for row in rows}
    return ResultsTable(
        name=folder.name,
        title=about.get("title", folder.name),
        note=about.get("note", ""),
        columns=about.get("columns", MEASURES[min(kinds)]),
        rows=rows,
        results={path: result for path, result in results.items() if result},
    )


def _about(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    about = read_toml(path)
    if unknown := about.keys() - {"title", "note", "columns", "rows"}:
        raise BadInputError(
            path, f"unknown key {min(unknown)!r}; known: columns, note, rows, title"
        )
    return about


def _result(row: Experiment, root: Path) -> Mapping[str, Any] | None:
    file = root / "results" / row.table / f"{row.path.stem}.json"
    if not file.is_file():
        return None
    advice = (
        f"no valid result of a row; run it again: citerec experiment run {row.path}"
    )
    try:
        result = orjson.loads(read_whole(file))
        metrics: Any = result["metrics"]
        if row.kind is ExperimentKind.RECOMMEND and not {*METRICS} <= {*metrics}:
            raise KeyError("metrics")
        return {"metrics": metrics, "ci95": result.get("ci95", {})}
    except (BadInputError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInputError(file, advice) from error


def _rendered(table: ResultsTable) -> Table:
    rows = [
        [Cell(text=text) for text in (row.title, _corpus(row), *_cells(row, table))]
        for row in table.rows
    ]
    columns = ["row", "corpus", *table.columns, "verdict"]
    return Table(caption=table.title, columns=columns, rows=rows, names=2)


def _corpus(row: Experiment) -> str:
    name = Path(row.corpus).name or NONE
    return f"{name}, {row.split}" if row.kind is ExperimentKind.RECOMMEND else name


def _cells(row: Experiment, table: ResultsTable) -> Iterator[str]:
    """Yield the values of a row and its verdict."""
    result = table.results.get(row.path)
    for column in table.columns:
        own = _ours(column, result)
        published = row.published.get(column)
        yield (
            own
            if published is None
            else f"{own} / {format_measure(column, published, digits=3)}"
        )
    unrun = (
        Verdict.PUBLISHED if row.kind is ExperimentKind.PUBLISHED else Verdict.NOT_RUN
    )
    # by the current expected values
    yield str(judge(row.expect, result["metrics"])[0] if result else unrun)


def _ours(column: str, result: Mapping[str, Any] | None) -> str:
    value = result["metrics"].get(column) if result else None
    if result is None or value is None:
        return NONE
    cell = format_measure(column, value)
    if column == "f1@20" and column in result["ci95"]:
        low, high = result["ci95"][column]
        cell += f" [{low:.3f}, {high:.3f}]"
    return cell
