"""Writes the report folder: metrics for programs, readers and papers, and the runs.

report.json          all results
report.md            the results for reading
report.html          the results with figures, in one file
report.tex           the table for a paper
recall_by_depth.png  recall by depth
per_query.csv        every metric of every system for every query
<system>.run         TREC runs
qrels.txt            TREC qrels

The functions `refuse_*` find, before the systems run, what could not be written.
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import building, destination
from citerec.corpus.papers import Papers
from citerec.errors import BadInputError, ConfigError
from citerec.evaluate.assessment import Assessment, as_json
from citerec.evaluate.contents import PLOT, paper_table, report_of
from citerec.evaluate.metrics import PER_QUERY, recall_by_depth
from citerec.evaluate.report.html import html
from citerec.evaluate.report.latex import latex
from citerec.evaluate.report.markdown import markdown
from citerec.evaluate.report.plots import draw_recall
from citerec.export.clean import csv_cell
from citerec.inputs import read_whole
from citerec.run import Qrels, Run, trec_id, write_qrels, write_run

JSON, MARKDOWN, LATEX, HTML = "report.json", "report.md", "report.tex", "report.html"
PER_QUERY_CSV, QRELS = "per_query.csv", "qrels.txt"
NOT_PLAIN = "[^!-~]"  # only ids with such characters can change in a TREC file
_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
FILES = {JSON, MARKDOWN, LATEX, HTML, PLOT, PER_QUERY_CSV, QRELS}


def write_report(assessment: Assessment, folder: Path) -> None:
    """Write the report folder in one step; an existing report is replaced.

    Raises:
        ConfigError: If `folder` holds anything that is no part of a report.
        OutputError: If it cannot be written.
    """
    target = destination(folder)
    refuse_others_files(target)
    report = report_of(assessment)
    texts = {
        MARKDOWN: markdown(report),
        LATEX: latex([paper_table(assessment)]),
        HTML: html(report),
    }
    with building(target) as new:
        (new / JSON).write_bytes(orjson.dumps(as_json(assessment), default=str, option=_INDENTED))
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
        _draw(assessment, new / PLOT)
        _write_per_query(assessment, new / PER_QUERY_CSV)
        write_qrels(assessment.evaluation.qrels, new / QRELS)
        runs = assessment.evaluation.runs
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


def refuse_others_files(folder: Path, files_of: Callable[[Path], Set[str]] | None = None) -> None:
    """Refuse a folder that contains anything but a report, which would be replaced.

    Args:
        folder: The folder.
        files_of: Returns the names of the files of the report in a folder; by default of one by `write_report`.

    Raises:
        ConfigError: If it does, or is a file.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the report")
    present = sorted(path.name for path in folder.iterdir())
    ours = (files_of or _files_of)(folder)
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
    target = destination(folder)
    for file in inputs:
        places = (file.resolve(), file.parent.resolve() / file.name)  # a link, and what it leads to
        if any(place.is_relative_to(target) for place in places):
            raise ConfigError(
                f"the report would replace {folder}, which contains its input {file}; "
                "choose another folder with --output"
            )


def refuse_meeting_ids(ids: Iterable[str], whose: str) -> None:
    """Refuse different ids that are equal in a TREC file, where white space becomes `_`.

    Raises:
        ConfigError: If there are two.
    """
    written: dict[str, str] = {}
    for original in ids:
        other = written.setdefault(trec_id(original), original)
        if other != original:
            raise ConfigError(
                f"the ids {other!r} and {original!r} of {whose} are the same in a TREC file, where white space "
                "becomes '_'; rename one of them"
            )


def refuse_meeting_papers(papers: Papers) -> None:
    """Check the papers of an index; only ids that change in a TREC file are held in memory."""
    altered = [i for i in papers.ids_like(NOT_PLAIN) if trec_id(i) != i]
    targets = sorted({trec_id(i) for i in altered})
    rows = papers.rows_of(targets).tolist()
    existing = (i for i, row in zip(targets, rows, strict=True) if row >= 0)
    refuse_meeting_ids([*existing, *altered], "the corpus")


def refuse_meeting_qrels(qrels: Qrels) -> None:
    """Check the ids of the queries and of all gold papers."""
    refuse_meeting_ids(qrels, "the queries")
    refuse_meeting_ids(frozenset[str]().union(*qrels.values()), "the papers of the qrels")


def refuse_meeting_run(run: Run) -> None:
    """Check the ids of the queries of a run and of all its papers."""
    refuse_meeting_ids(run.rankings, f"the queries of run {run.name!r}")
    rankings = (ranking.ids for ranking in run.rankings.values())
    refuse_meeting_ids(frozenset[str]().union(*rankings), f"run {run.name!r}")


def _files_of(folder: Path) -> Set[str]:
    """Return the names of the files of a report, from its `report.json`; empty if there is none."""
    try:
        content: Any = orjson.loads(read_whole(folder / JSON))
        runs = run_files([system["name"] for system in content["systems"]])
    except (BadInputError, ValueError, TypeError, KeyError):
        return set()
    return FILES | set(runs)


def _draw(assessment: Assessment, path: Path) -> None:
    evaluation = assessment.evaluation
    curves = {run.name: recall_by_depth(run, evaluation.qrels) for run in evaluation.runs}
    draw_recall(curves, path, title=f"{evaluation.corpus}, {evaluation.split} split")


def _write_per_query(assessment: Assessment, path: Path) -> None:
    evaluation = assessment.evaluation
    columns = [(system, metric) for system in assessment.systems for metric in PER_QUERY]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [csv_cell(f"{system.name} {metric}") for system, metric in columns]
        table.writerow(["qid", "n_gold", "query_words", *names])
        for row, qid in enumerate(sorted(evaluation.qrels)):
            scores = [float(system.per_query[metric][row]) for system, metric in columns]
            words = evaluation.query_words.get(qid, "")
            table.writerow([csv_cell(qid), len(evaluation.qrels[qid]), words, *scores])
