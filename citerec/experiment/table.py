"""Writes the tables: a line for each row's file, with its committed result."""

from pathlib import Path

import orjson

from citerec.errors import BadInputError
from citerec.experiment.row import Experiment, read_experiment
from citerec.experiment.run import Verdict

SHOWN = ("f1@20", "f1@20 (of means)", "mrr", "recall@100", "recall@1000", "ndcg@20", "map")


def tables(root: Path) -> str:
    """Return every table under `root` as Markdown: the rows' files and their committed results.

    Raises:
        BadInputError: If a row or a result cannot be made out.
    """
    lines = [
        "# Tables",
        "",
        "Made by `citerec experiment table`; each row is a file: `citerec experiment run FILE`.",
        "F1@20 is the mean of each query's F1; in brackets its 95 % bootstrap interval.",
    ]
    for folder in sorted({path.parent for path in root.glob("*/*.toml")}):
        heading = ["row", "corpus", *SHOWN, "verdict"]
        lines += ["", f"## {folder.name}", "", _row(heading), _row(["---"] * len(heading))]
        lines += [_table_row(read_experiment(path), root) for path in sorted(folder.glob("*.toml"))]
    return "\n".join(lines) + "\n"


def _table_row(experiment: Experiment, root: Path) -> str:
    name = f"[{experiment.title}]({experiment.table}/{experiment.path.name})"
    corpus = f"{Path(experiment.corpus).name}, {experiment.split}"
    file = root / "results" / experiment.table / f"{experiment.path.stem}.json"
    if not file.is_file():
        return _row([name, corpus, *("–" for _ in SHOWN), str(Verdict.NOT_RUN)])
    try:
        result = orjson.loads(file.read_bytes())
        cells = [f"{result['metrics'][metric]:.4f}" for metric in SHOWN]
        low, high = result["ci95"]["f1@20"]
        cells[0] += f" [{low:.3f}, {high:.3f}]"
        return _row([name, corpus, *cells, result["verdict"]])
    except (OSError, ValueError, TypeError, KeyError) as error:
        advice = f"citerec experiment run {experiment.path}"
        raise BadInputError(file, f"no result of a row; make it again: {advice}") from error


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
