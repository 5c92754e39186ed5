"""Writes the report folder: metrics for programs, readers and papers, and the runs.

report.json          all results
report.md            the results for reading
report.html          the results with figures, in one file
report.tex           the table for a paper
recall_by_depth.png  recall by depth
per_query.csv        every metric of every system for every query
<system>.run         TREC runs
qrels.txt            TREC qrels
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import building
from citerec.errors import BadInputError, ConfigError
from citerec.evaluate.assessment import Report, as_json
from citerec.evaluate.metrics import PER_QUERY
from citerec.evaluate.plots import draw_recall, recall_by_depth
from citerec.evaluate.report_page import report_html
from citerec.evaluate.tables import decimal, latex, markdown, table
from citerec.export.clean import csv_cell
from citerec.inputs import read_whole
from citerec.run import write_qrels, write_run

JSON, MARKDOWN, LATEX, HTML = "report.json", "report.md", "report.tex", "report.html"
PLOT, PER_QUERY_CSV, QRELS = "recall_by_depth.png", "per_query.csv", "qrels.txt"
FILES = {JSON, MARKDOWN, LATEX, HTML, PLOT, PER_QUERY_CSV, QRELS}


def write_report(report: Report, folder: Path) -> None:
    """Write the report folder in one step; an existing report is replaced.

    Raises:
        ConfigError: If `folder` holds anything that is no part of a report.
        OutputError: If it cannot be written.
    """
    target = folder.resolve()
    refuse_others_files(target)
    with building(target) as new:
        (new / JSON).write_bytes(_json(as_json(report)))
        (new / MARKDOWN).write_text("\n".join(_page(report)), encoding="utf-8")
        (new / LATEX).write_text(latex(report), encoding="utf-8")
        (new / HTML).write_text(report_html(report), encoding="utf-8")
        _draw(report, new / PLOT)
        _write_per_query(report, new / PER_QUERY_CSV)
        write_qrels(report.evaluation.qrels, new / QRELS)
        runs = report.evaluation.runs
        for run, name in zip(runs, run_files([run.name for run in runs]), strict=True):
            write_run(run, new / name)


def run_files(names: Sequence[str]) -> list[str]:
    """Return the run file of each system: `<system>.run`, with `_` for characters that a file name may not have.

    Names that are equal, ignoring case, get a number.
    """
    taken: set[str] = set()
    files: list[str] = []
    for name in names:
        stem = re.sub(r"[^\w.+-]", "_", name)[:80].strip(".") or "_"
        file, number = f"{stem}.run", 1
        while file.casefold() in taken:
            number += 1
            file = f"{stem}-{number}.run"
        taken.add(file.casefold())
        files.append(file)
    return files


def refuse_others_files(folder: Path) -> None:
    """Refuse a folder that holds anything but a report, which would be replaced.

    Raises:
        ConfigError: If it does, or is a file.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the report")
    present = sorted(path.name for path in folder.iterdir())
    ours = _files_of(folder / JSON)
    if others := [name for name in present if name not in ours]:
        raise ConfigError(
            f"{folder} holds {others[0]!r}, which is no part of a report; "
            "name a new or an empty folder"
        )


def refuse_own_inputs(folder: Path, inputs: Iterable[Path]) -> None:
    """Refuse a folder that contains one of the input files of the report, which would be replaced.

    Raises:
        ConfigError: If it does.
    """
    target = folder.resolve()
    for file in inputs:
        places = (file.resolve(), file.parent.resolve() / file.name)  # a link, and what it leads to
        if any(place.is_relative_to(target) for place in places):
            raise ConfigError(
                f"the report would replace {folder}, which contains its input {file}; "
                "choose another folder with --output"
            )


def _files_of(report: Path) -> set[str]:
    """Return the files of the report folder with this `report.json`; empty if it is no report."""
    try:
        content: Any = orjson.loads(read_whole(report))
        runs = run_files([system["name"] for system in content["systems"]])
    except (BadInputError, ValueError, TypeError, KeyError):
        return set()
    return FILES | set(runs)


def _json(content: dict[str, Any]) -> bytes:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(content, default=str, option=options)


def _page(report: Report) -> Iterator[str]:
    yield from markdown(report)
    yield from _by_year(report)
    yield f"![recall by depth]({PLOT})"
    yield ""
    yield "## Provenance"
    yield ""
    yield "```json"
    yield _json(dict(report.evaluation.provenance)).decode().rstrip()
    yield "```"
    yield ""


def _by_year(report: Report) -> Iterator[str]:
    names = [system.name for system in report.systems]
    by_name = [report.by_year[name] for name in names]
    if not all(by_name):
        return
    rows = [
        [str(years[0].year), str(years[0].queries), *(decimal(one.mean) for one in years)]
        for years in zip(*by_name, strict=True)
    ]
    yield "## F1@20 by year of the query"
    yield ""
    yield from table(["year", "queries", *names], rows)


def _draw(report: Report, path: Path) -> None:
    evaluation = report.evaluation
    curves = {run.name: recall_by_depth(run, evaluation.qrels) for run in evaluation.runs}
    draw_recall(curves, path, title=f"{evaluation.corpus}, {evaluation.split} split")


def _write_per_query(report: Report, path: Path) -> None:
    evaluation = report.evaluation
    columns = [(system, metric) for system in report.systems for metric in PER_QUERY]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [csv_cell(f"{system.name} {metric}") for system, metric in columns]
        table.writerow(["qid", "n_gold", "query_words", *names])
        for row, qid in enumerate(sorted(evaluation.qrels)):
            scores = [float(system.per_query[metric][row]) for system, metric in columns]
            words = evaluation.query_words.get(qid, "")
            table.writerow([csv_cell(qid), len(evaluation.qrels[qid]), words, *scores])
