"""The report of an evaluation: a folder for programs, readers and papers.

report.json      all results; its keys are a contract
report.html      the same for reading, in one file
report.tex       the table for a paper
per_query.csv    every metric of every system for every query
<system>.run     TREC runs
qrels.txt        TREC qrels
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import orjson

from citerec.errors import ConfigError
from citerec.evaluate.metrics import (
    METRICS,
    Comparison,
    SystemResult,
    compare,
    evaluate_run,
    recall_by_depth,
)
from citerec.evaluate.page import page
from citerec.evaluate.significance import ALPHA, RESAMPLES
from citerec.evaluate.tables import NONE, Cell, Table, decimal, heading, latex, p_value, signed
from citerec.io import building, destination
from citerec.run import Qrels, Run, write_qrels, write_run
from citerec.text import csv_cell

JSON, HTML, LATEX = "report.json", "report.html", "report.tex"
PER_QUERY_CSV, QRELS = "per_query.csv", "qrels.txt"
FILES = {JSON, HTML, LATEX, PER_QUERY_CSV, QRELS}
COMPARED = ("f1@20", "mrr")  # metrics of the comparisons on the page; report.json has all
_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The runs of some systems on the same queries, and the facts for their report."""

    corpus: str
    split: str
    known_graph: str | None  # None if unknown, for external runs
    qrels: Qrels
    runs: Sequence[Run]  # in the order of the report, with distinct names
    metrics: Sequence[str] = ()  # besides `METRICS`, see `metric_names`
    seconds: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])  # see `EvalSet`
    ceilings: frozenset[str] = frozenset()  # runs made from the gold, not compared
    seed: int = 0  # of the resamples
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if not self.qrels or not all(self.qrels.values()):
            raise ConfigError("nothing to evaluate: there is no query, or a query has no gold")
        if not self.runs:
            raise ConfigError("nothing to evaluate: there is no run")
        names = [run.name for run in self.runs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"two runs are named {twice[0]!r}; rename one")


@dataclass(frozen=True, slots=True)
class Assessment:
    """The results of an evaluation."""

    evaluation: Evaluation
    systems: tuple[SystemResult, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics, in the order of the report."""
        return (*METRICS, *self.evaluation.metrics)

    @property
    def rivals(self) -> list[SystemResult]:
        """The systems that are compared: all but ceilings."""
        return [system for system in self.systems if system.name not in self.evaluation.ceilings]


def assess(evaluation: Evaluation) -> Assessment:
    """Measure all runs, and test all pairs except ceilings.

    Raises:
        ConfigError: If a run shares no query with the qrels.
    """
    draws = {"resamples": evaluation.resamples}
    systems = tuple(
        evaluate_run(
            run,
            evaluation.qrels,
            rng=np.random.default_rng(evaluation.seed),
            seconds=evaluation.seconds.get(run.name),
            extra=evaluation.metrics,
            **draws,
        )
        for run in evaluation.runs
    )
    assessment = Assessment(evaluation, systems, ())
    rng = np.random.default_rng(evaluation.seed)
    tests = compare(assessment.rivals, rng=rng, extra=evaluation.metrics, **draws)
    return Assessment(evaluation, systems, tuple(tests))


def as_json(assessment: Assessment) -> dict[str, Any]:
    """Return the content of `report.json`."""
    evaluation = assessment.evaluation
    return {
        "corpus": evaluation.corpus,
        "split": evaluation.split,
        "queries": len(evaluation.qrels),
        "left_out": dict(evaluation.left_out),
        "known_graph": evaluation.known_graph,
        "seed": evaluation.seed,
        "resamples": evaluation.resamples,
        "ceilings": sorted(evaluation.ceilings),
        "systems": [
            {
                "name": system.name,
                "metrics": dict(system.metrics),
                "ci95": {metric: list(ends) for metric, ends in system.ci95.items()},
                "seconds": system.seconds,
                "dropped_queries": system.dropped,
                "missing_queries": system.missing,
            }
            for system in assessment.systems
        ],
        "comparisons": [*map(asdict, assessment.comparisons)],
        "provenance": dict(evaluation.provenance),
    }


def write_report(assessment: Assessment, folder: Path) -> None:
    """Write the report folder in one step; an existing report is replaced.

    Raises:
        ConfigError: If `folder` holds anything that is no part of a report.
        OutputError: If it cannot be written.
    """
    refuse_others_files(folder)
    evaluation = assessment.evaluation
    with building(destination(folder)) as new:
        (new / JSON).write_bytes(orjson.dumps(as_json(assessment), default=str, option=_INDENTED))
        (new / LATEX).write_text(latex([paper_table(assessment)]), encoding="utf-8")
        (new / HTML).write_text(_page(assessment), encoding="utf-8")
        _write_per_query(assessment, new / PER_QUERY_CSV)
        write_qrels(evaluation.qrels, new / QRELS)
        names = run_files([run.name for run in evaluation.runs])
        for run, name in zip(evaluation.runs, names, strict=True):
            write_run(run, new / name)


def refuse_others_files(folder: Path) -> None:
    """Refuse a folder that contains anything but a report, which would be replaced.

    Raises:
        ConfigError: If it does, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the report")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
    runs = {name for name in names if name.endswith(".run")} if JSON in names else set[str]()
    if others := sorted(names - FILES - runs):
        raise ConfigError(
            f"{folder} holds {others[0]!r}, which is no part of a report; "
            "name a new or an empty folder"
        )


def run_files(names: Sequence[str]) -> list[str]:
    """Return the run file of each system: `<system>.run`, with `_` for characters that a file name may not have.

    Names that are equal, ignoring case, get a number.
    """
    files: list[str] = []
    for name in names:
        stem = re.sub(r"[^\w.+-]", "_", name)[:80].strip(".") or "_"
        file, number = f"{stem}.run", 1
        while file.casefold() in map(str.casefold, files):
            number += 1
            file = f"{stem}-{number}.run"
        files.append(file)
    return files


def left_out(assessment: Assessment) -> str:
    """Return how many queries were left out by reason; empty if none was."""
    reasons = assessment.evaluation.left_out
    by_reason = [f"{count} {why}" for why, count in reasons.items() if count]
    return f"{sum(reasons.values())} left out ({'; '.join(by_reason)})" if by_reason else ""


def summary_table(assessment: Assessment, metrics: Sequence[str] = ()) -> Table:
    """Return the systems and some metrics, by default all, for the terminal: 80 columns wide if names are short."""
    shown = metrics or assessment.metrics
    names = [heading(metric).replace(" means", "\nmeans") for metric in shown]
    rows = _system_rows(assessment, shown, intervals=shown[:1])
    return Table(caption="Systems", columns=["system", *names, "s"], rows=rows)


def paper_table(assessment: Assessment) -> Table:
    """Return the systems and their metrics for a paper.

    The best value of a column is bold. The letters of a value name the systems that are significantly worse. A ceiling
    is in the table, but it is not compared, is never best, and has no letter.
    """
    letters = {system.name: _letter(n) for n, system in enumerate(assessment.rivals)}
    worse: dict[tuple[str, str], str] = {}
    for test in assessment.comparisons:
        if test.p_holm < ALPHA and test.difference:
            better, other = (test.b, test.a) if test.difference > 0 else (test.a, test.b)
            worse[better, test.metric] = worse.get((better, test.metric), "") + letters[other]
    best = _best(assessment)
    rows = [
        [
            Cell(text=letters.get(system.name, "")),
            Cell(text=system.name),
            *(
                Cell(
                    text=decimal(system.metrics[metric]),
                    marks=worse.get((system.name, metric), ""),
                    is_best=(system.name, metric) in best,
                )
                for metric in assessment.metrics
            ),
        ]
        for system in assessment.systems
    ]
    evaluation = assessment.evaluation
    caption = (
        f"{evaluation.corpus}, {evaluation.split} split, {len(evaluation.qrels)} queries. "
        "Superscripts name the systems that are significantly worse (paired randomisation test, "
        f"Holm-corrected over pairs, p < {ALPHA})."
    )
    for name in sorted(evaluation.ceilings):
        caption += f" {name} is made from the gold: a ceiling, not compared."
    columns = ["", "System", *map(heading, assessment.metrics)]
    return Table(caption=caption, columns=columns, rows=rows, names=len(columns))


def matrix(names: Sequence[str], comparisons: Sequence[Comparison], metric: str) -> Table:
    """Return the tests of one metric, row minus column, with the systems as rows and columns."""
    tests = {(c.a, c.b): (-c.difference, c.p_holm) for c in comparisons if c.metric == metric}
    tests |= {(b, a): (-gain, p) for (a, b), (gain, p) in tests.items()}
    rows = [
        [Cell(text=row), *(_test(*tests.get((row, column), (0.0, None))) for column in names)]
        for row in names
    ]
    return Table(
        caption=f"{heading(metric)}: row minus column", columns=["system", *names], rows=rows
    )


def _test(gain: float, p: float | None) -> Cell:
    if p is None:
        return Cell(text=NONE)
    note = f"p {p_value(p)}"
    if p >= ALPHA or not gain:
        return Cell(text=signed(gain), note=note)
    mark, kind = ("▲", "better") if gain > 0 else ("▼", "worse")
    return Cell(text=f"{mark} {signed(gain)}", note=note, kind=kind)  # pyright: ignore[reportArgumentType]


def _page(assessment: Assessment) -> str:
    evaluation, rivals = assessment.evaluation, [one.name for one in assessment.rivals]
    tests = [matrix(rivals, assessment.comparisons, metric) for metric in COMPARED]
    systems = Table(
        caption="With 95 % intervals; bold: the best of a column",
        columns=["system", *map(heading, assessment.metrics), "seconds"],
        rows=_system_rows(assessment, assessment.metrics, intervals=assessment.metrics),
    )
    content = orjson.dumps(dict(evaluation.provenance), default=str, option=_INDENTED)
    return page(
        title=f"{evaluation.corpus}, {evaluation.split} split",
        facts=[*_facts(assessment)],
        systems=systems,
        tests=tests if len(rivals) > 1 else [],
        alpha=ALPHA,
        curves={run.name: recall_by_depth(run, evaluation.qrels) for run in evaluation.runs},
        provenance=content.decode() if evaluation.provenance else "",
    )


def _facts(assessment: Assessment) -> Iterator[str]:
    evaluation = assessment.evaluation
    queries = f"{len(evaluation.qrels):,} queries with gold"
    yield "; ".join(part for part in (queries, left_out(assessment)) if part)
    if evaluation.known_graph is not None:
        yield f"citations known: {evaluation.known_graph}"
    yield f"95 % intervals: bootstrap of {evaluation.resamples:,} resamples, seed {evaluation.seed}"
    for system in assessment.systems:
        if system.name in evaluation.ceilings:
            yield f"{system.name} is made from the gold: a ceiling, which is not compared"
        if system.missing:
            yield f"{system.name} has an empty ranking for {system.missing:,} queries; they count zero"
        if system.dropped:
            yield f"{system.name}: {system.dropped:,} queries of its run have no judgements"


def _system_rows(
    assessment: Assessment, metrics: Sequence[str], intervals: Sequence[str]
) -> list[list[Cell]]:
    best = _best(assessment)
    rows: list[list[Cell]] = []
    for system in assessment.systems:
        cells = [
            Cell(
                text=decimal(system.metrics[metric]),
                note="[{}, {}]".format(*map(decimal, system.ci95[metric]))
                if metric in intervals
                else "",
                is_best=(system.name, metric) in best,
            )
            for metric in metrics
        ]
        seconds = NONE if system.seconds is None else f"{system.seconds:,.1f}"
        rows.append([Cell(text=system.name), *cells, Cell(text=seconds)])
    return rows


def _best(assessment: Assessment) -> set[tuple[str, str]]:
    """Return system and metric of the best values, as printed; a ceiling is none."""
    best: set[tuple[str, str]] = set()
    for metric in assessment.metrics:
        shown = {system.name: decimal(system.metrics[metric]) for system in assessment.rivals}
        most = max(shown.values(), default="")
        best |= {(name, metric) for name, text in shown.items() if text == most}
    return best


def _letter(number: int) -> str:
    rounds, letter = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(rounds) if rounds else "")


def _write_per_query(assessment: Assessment, path: Path) -> None:
    qrels = assessment.evaluation.qrels
    columns = [(one, metric) for one in assessment.systems for metric in one.per_query]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [csv_cell(f"{system.name} {metric}") for system, metric in columns]
        table.writerow(["qid", "n_gold", *names])
        for row, qid in enumerate(sorted(qrels)):
            scores = [float(system.per_query[metric][row]) for system, metric in columns]
            table.writerow([csv_cell(qid), len(qrels[qid]), *scores])
