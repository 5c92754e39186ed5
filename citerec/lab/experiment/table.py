"""Writes the tables: a line for each row, with its committed result and the published values.

A folder of rows is a table. Its optional `table.toml` has a title, a note, the columns in order, and rows of other
folders.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import BadInputError
from citerec.evaluate.tables import tex
from citerec.inputs import read_whole
from citerec.lab.experiment.kind import MEASURES, ExperimentKind, format_measure
from citerec.lab.experiment.outcome import Verdict, judge
from citerec.lab.experiment.row import Experiment, read_experiment
from citerec.toml import read_toml

SHOWN = ("f1@20", "f1@20 (of means)", "mrr", "recall@100", "recall@1000", "ndcg@20", "map")
ABOUT = "table.toml"  # in the folder of the rows
NONE = "–"
HEAD = (
    "# Tables",
    "",
    "Made by `citerec experiment table`; each row is a file: `citerec experiment run FILE`.",
    "F1@20 is the mean of each query's F1; in brackets its 95 % bootstrap interval.",
    f"Where others published a figure, it stands behind ours: ours / theirs. {NONE}: not run here, or stated by no "
    "source that we hold.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsTable:
    """A folder of rows."""

    name: str
    title: str
    note: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Experiment] = ()
    results: Mapping[Path, Mapping[str, Any]] = field(
        default_factory=dict[Path, Mapping[str, Any]]
    )  # by the row's file


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
    lines = [*HEAD]
    for table in read_tables(root):
        lines += ["", f"## {table.title}", ""]
        lines += [table.note, ""] if table.note else []
        heading = ["row", "corpus", *table.columns, "verdict"]
        lines += [_row(heading), _row(["---"] * len(heading))]
        lines += [_row([*_named(row, root), *_cells(row, table)]) for row in table.rows]
    return "\n".join(lines) + "\n"


def tables_as_latex(root: Path) -> str:
    """Return every table under `root` as LaTeX, for the package booktabs.

    Raises:
        BadInputError: If a row, a result or a table file is invalid.
    """
    lines = ["% Made by `citerec experiment table`; needs \\usepackage{booktabs}."]
    for table in read_tables(root):
        lines += ["", *_latex(table)]
    return "\n".join(lines) + "\n"


def _table(folder: Path, root: Path) -> ResultsTable:
    about = _about(folder / ABOUT)
    others = [root / name for name in about.get("rows", [])]
    own = [path for path in sorted(folder.glob("*.toml")) if path.name != ABOUT]
    rows = [read_experiment(path) for path in (*own, *others)]
    kinds = {row.kind for row in rows if row.kind is not ExperimentKind.PUBLISHED} or {
        ExperimentKind.PUBLISHED
    }
    results = {row.path: _result(row, root) for row in rows}
    usual = SHOWN if kinds == {ExperimentKind.RECOMMEND} else MEASURES[min(kinds)]
    return ResultsTable(
        name=folder.name,
        title=about.get("title", folder.name),
        note=about.get("note", ""),
        columns=about.get("columns", usual),
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
    advice = f"no valid result of a row; run it again: citerec experiment run {row.path}"
    try:
        result = orjson.loads(read_whole(file))
        metrics: Any = result["metrics"]
        if row.kind is ExperimentKind.RECOMMEND and not {*SHOWN} <= {*metrics}:
            raise KeyError("metrics")
        return {"metrics": metrics, "ci95": result.get("ci95", {})}
    except (BadInputError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadInputError(file, advice) from error


def _named(row: Experiment, root: Path) -> list[str]:
    return [f"[{row.title}]({row.path.relative_to(root).as_posix()})", _corpus(row)]


def _corpus(row: Experiment) -> str:
    name = Path(row.corpus).name or NONE
    return f"{name}, {row.split}" if row.kind is ExperimentKind.RECOMMEND else name


def _cells(row: Experiment, table: ResultsTable) -> Iterator[str]:
    """Yield the values of a row and its verdict."""
    result = table.results.get(row.path)
    for column in table.columns:
        own = _ours(column, result)
        published = row.published.get(column)
        yield own if published is None else f"{own} / {format_measure(column, published, digits=3)}"
    unrun = Verdict.PUBLISHED if row.kind is ExperimentKind.PUBLISHED else Verdict.NOT_RUN
    yield str(
        judge(row.expect, result["metrics"])[0] if result else unrun
    )  # by the current expected values


def _ours(column: str, result: Mapping[str, Any] | None) -> str:
    value = result["metrics"].get(column) if result else None
    if result is None or value is None:
        return NONE
    cell = format_measure(column, value)
    if column == "f1@20" and column in result["ci95"]:
        low, high = result["ci95"][column]
        cell += f" [{low:.3f}, {high:.3f}]"
    return cell


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(table: ResultsTable) -> Iterator[str]:
    columns = ["row", "corpus", *table.columns]
    yield f"% {table.name}"
    yield r"\begin{table}"
    yield rf"\caption{{{tex(table.title)}}}"
    yield rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}"
    yield r"\toprule"
    yield " & ".join(map(tex, columns)) + r" \\"
    yield r"\midrule"
    for row in table.rows:
        figures = [*_cells(row, table)][:-1]  # without the verdict
        yield " & ".join(map(tex, [row.title, _corpus(row), *figures])) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"
