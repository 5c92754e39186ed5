"""The report of an evaluation: a folder for programs, readers and papers.

report.json      all results; its keys are a contract
report.html      the same for reading: one file that runs no script and loads nothing
report.tex       the table for a paper
per_query.csv    every metric of every system for every query
<system>.run     TREC runs
qrels.txt        TREC qrels
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import orjson

from citerec.display import csv_cell, html_page
from citerec.errors import ConfigError
from citerec.evaluation.metrics import (
    METRICS,
    Comparison,
    SystemResult,
    compare,
    evaluate_run,
    per_query,
)
from citerec.evaluation.protocol import NOT_DRAWN
from citerec.evaluation.significance import ALPHA, RESAMPLES
from citerec.evaluation.tables import (
    NONE,
    Cell,
    Table,
    decimal,
    heading,
    latex,
    terminal,
)
from citerec.files.atomic import building
from citerec.files.trec import Qrels, Run, write_qrels, write_run
from citerec.types import Json

JSON = "report.json"
HTML = "report.html"
LATEX = "report.tex"
PER_QUERY_CSV = "per_query.csv"
QRELS = "qrels.txt"
DEPTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the tables by rank
# of the systems, in the provenance
SETTINGS = ("retrievers", "bm25", "fuse", "rerank", "rerank_weights", "ranker", "depth")
_INDENTED = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The runs of some systems on the same queries, and the facts for their report."""

    corpus: str
    split: str
    known_graph: str | None  # None if unknown, for external runs
    qrels: Qrels
    runs: Sequence[Run]  # in the order of the report, with distinct names
    metrics: Sequence[str] = ()  # further ones than `METRICS`, see `metric_names`
    seconds: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    provenance: Mapping[str, Any] = field(default_factory=Json)
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])  # see `EvalSet`
    ceilings: frozenset[str] = frozenset()  # runs made from the gold, not compared
    seed: int = 0  # of the resamples

    def __post_init__(self) -> None:
        names = [run.name for run in self.runs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"two runs are named {twice[0]!r}; rename one")

    @property
    def total(self) -> int:
        """How many queries there are: those of a quick look, and those that it did not draw."""
        return len(self.qrels) + self.left_out.get(NOT_DRAWN, 0)

    @property
    def counted(self) -> str:
        """How many queries were evaluated: "40 of 412" in a quick look."""
        of = f" of {self.total:,}" if self.total > len(self.qrels) else ""
        return f"{len(self.qrels):,}{of}"

    @property
    def omitted(self) -> str:
        """How many queries were left out by reason; empty if none was."""
        reasons = [
            f"{count} {reason}" for reason, count in self.left_out.items() if count
        ]
        total = sum(self.left_out.values())
        return f"{total} left out ({'; '.join(reasons)})" if reasons else ""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The results of an evaluation."""

    evaluation: Evaluation
    systems: Sequence[SystemResult]
    comparisons: Sequence[Comparison] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics, in the order of the report."""
        return tuple(dict.fromkeys((*METRICS, *self.evaluation.metrics)))

    def __str__(self) -> str:
        """Return the table of the systems, and the pairs whose first metric differs significantly."""
        from citerec.export.terminal import PlainConsole

        console = PlainConsole(width=160)
        with console.capture() as text:
            console.print(terminal(summary_table(self)))
        first, *_ = self.metrics
        lines = [text.get().rstrip()]
        for test in self.comparisons:
            if test.metric == first and test.p_holm < ALPHA:
                lines.append(
                    f"{first}: {test.b} - {test.a} = {test.difference:+.3f}, p {test.p_holm:.2g}"
                )
        return "\n".join(lines)

    @property
    def rivals(self) -> list[SystemResult]:
        """The systems that are compared: all but ceilings."""
        return [
            system
            for system in self.systems
            if system.name not in self.evaluation.ceilings
        ]


def assess(evaluation: Evaluation) -> Assessment:
    """Measure all runs, and test all pairs except ceilings; `ConfigError` if a run shares no query with the qrels."""
    seed = evaluation.seed
    extra = [name for name in evaluation.metrics if name not in METRICS]
    systems = [
        evaluate_run(
            run,
            evaluation.qrels,
            rng=np.random.default_rng(seed),  # the same for each run
            seconds=evaluation.seconds.get(run.name),
            extra=extra,
        )
        for run in evaluation.runs
    ]
    rivals = Assessment(evaluation, systems).rivals
    tests = compare(rivals, rng=np.random.default_rng(seed), extra=extra)
    return Assessment(evaluation, systems, tests)


def as_json(assessment: Assessment) -> Json:
    """Return the content of `report.json`."""
    evaluation = assessment.evaluation
    return {
        "corpus": evaluation.corpus,
        "split": evaluation.split,
        "queries": len(evaluation.qrels),
        "all_queries": evaluation.total,
        "left_out": dict(evaluation.left_out),
        "known_graph": evaluation.known_graph,
        "seed": evaluation.seed,
        "resamples": RESAMPLES,
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
    """Write the report folder in one step; an existing report is replaced, anything else refused."""
    refuse_others_files(folder)
    evaluation = assessment.evaluation
    with building(folder) as new:
        (new / JSON).write_bytes(
            orjson.dumps(as_json(assessment), default=str, option=_INDENTED)
        )
        (new / LATEX).write_text(latex([paper_table(assessment)]), encoding="utf-8")
        (new / HTML).write_text(_page(assessment), encoding="utf-8")
        _write_per_query(assessment, new / PER_QUERY_CSV)
        write_qrels(evaluation.qrels, new / QRELS)
        names = run_files([run.name for run in evaluation.runs])
        for run, name in zip(evaluation.runs, names, strict=True):
            write_run(run, new / name)


def refuse_others_files(folder: Path) -> None:
    """Raise `ConfigError` if a folder contains anything but a report, which would be replaced, or is a file."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder for the report")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
    own = {JSON, HTML, LATEX, PER_QUERY_CSV, QRELS}
    if JSON in names:
        own |= {name for name in names if name.endswith(".run")}
    if others := sorted(names - own):
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
        file = f"{stem}.run"
        number = 1
        while file.casefold() in map(str.casefold, files):
            number += 1
            file = f"{stem}-{number}.run"
        files.append(file)
    return files


def summary_table(
    assessment: Assessment, metrics: Sequence[str] = (), *, has_intervals: bool = False
) -> Table:
    """Return the systems and some metrics, by default all: 80 columns wide in a terminal if names are short.

    The first metric has a 95 % interval, or all of them.
    """
    shown = metrics or assessment.metrics
    best = _best(assessment)
    rows: list[list[Cell]] = []
    for system in assessment.systems:
        row = [Cell(text=system.name)]
        for metric in shown:
            low, high = map(decimal, system.ci95[metric])
            note = f"[{low}, {high}]" if has_intervals or metric == shown[0] else ""
            value = decimal(system.metrics[metric])
            is_best = (system.name, metric) in best
            row.append(Cell(text=value, note=note, is_best=is_best))
        row.append(
            Cell(text=NONE if system.seconds is None else f"{system.seconds:,.1f}")
        )
        rows.append(row)
    names = [heading(metric).replace(" means", "\nmeans") for metric in shown]
    caption = "Bold: the best of a column"
    return Table(caption=caption, columns=["system", *names, "s"], rows=rows)


def paper_table(assessment: Assessment) -> Table:
    """Return the systems and their metrics for a paper.

    The best value of a column is bold. The letters of a value name the systems that are significantly worse. A ceiling
    is in the table, but it is not compared, is never best, and has no letter.
    """
    names = product(("", *map(str, range(1, 100))), ascii_lowercase)  # a to z, a1 to z1
    letters = {
        rival.name: f"{a}{n}"
        for rival, (n, a) in zip(assessment.rivals, names, strict=False)
    }
    worse: dict[tuple[str, str], str] = {}
    for test in assessment.comparisons:
        if test.p_holm < ALPHA and test.difference:
            better, other = (
                (test.b, test.a) if test.difference > 0 else (test.a, test.b)
            )
            worse[better, test.metric] = (
                worse.get((better, test.metric), "") + letters[other]
            )
    best = _best(assessment)
    rows: list[list[Cell]] = []
    for system in assessment.systems:
        row = [Cell(text=letters.get(system.name, "")), Cell(text=system.name)]
        for metric in assessment.metrics:
            key = (system.name, metric)
            value = decimal(system.metrics[metric])
            row.append(Cell(text=value, marks=worse.get(key, ""), is_best=key in best))
        rows.append(row)
    evaluation = assessment.evaluation
    caption = (
        f"{evaluation.corpus}, {evaluation.split} split, {evaluation.counted} queries. "
        "Superscripts name the systems that are significantly worse (paired randomisation test, "
        f"Holm-corrected over pairs, p < {ALPHA})."
    )
    for name in sorted(evaluation.ceilings):
        caption += f" {name} is made from the gold: a ceiling, not compared."
    columns = ["", "System", *map(heading, assessment.metrics)]
    return Table(caption=caption, columns=columns, rows=rows, names=len(columns))


def _page(assessment: Assessment) -> str:
    evaluation = assessment.evaluation
    tests: dict[str, list[Cell]] = {}
    for test in assessment.comparisons:
        pair = f"{test.b} − {test.a}"
        p = decimal(test.p_holm) if test.p_holm >= 0.001 else "< .001"
        is_different = test.p_holm < ALPHA and test.difference != 0
        sign = "+" if test.difference > 0 else "−" if test.difference < 0 else ""
        shown = f"{sign}{decimal(abs(test.difference))}"
        cell = Cell(text=shown, note=f"p {p}", is_best=is_different)
        tests.setdefault(pair, [Cell(text=pair)]).append(cell)
    first, *_ = assessment.metrics
    names = [system.name for system in assessment.systems]
    by_query = zip(
        *(system.per_query[first] for system in assessment.systems), strict=True
    )
    tables = {
        "Systems": summary_table(assessment, has_intervals=True),
        "Significance": Table(
            caption="Differences, with the p of Fisher's randomisation test, paired by query, two-sided, corrected by "
            f"Holm for all pairs; bold: p < {ALPHA}",
            columns=["systems", *map(heading, assessment.metrics)],
            rows=[*tests.values()],
        ),
        "Precision by rank": _by_rank(evaluation, "precision", "Share of gold"),
        "Recall by rank": _by_rank(evaluation, "recall", "Share of the gold"),
        "Queries": Table(
            caption=f"{heading(first)}; every metric is in {PER_QUERY_CSV}, every list in the runs",
            columns=["query", "gold", *names],
            rows=[
                [
                    Cell(text=qid),
                    Cell(text=str(len(evaluation.qrels[qid]))),
                    *(Cell(text=decimal(float(value))) for value in values),
                ]
                for qid, values in zip(sorted(evaluation.qrels), by_query, strict=True)
            ],
        ),
    }
    provenance = orjson.dumps(
        dict(evaluation.provenance), default=str, option=_INDENTED
    )
    return html_page(
        "citerec.evaluation",
        title=f"{evaluation.corpus}, {evaluation.split} split",
        facts=[*_facts(assessment)],
        tables={name: table for name, table in tables.items() if table.rows},
        provenance=provenance.decode() if evaluation.provenance else "",
    )


def _by_rank(evaluation: Evaluation, metric: str, what: str) -> Table:
    cuts = [f"{metric}@{depth}" for depth in DEPTHS]
    rows: list[list[Cell]] = []
    for run in evaluation.runs:
        measured = per_query(run, evaluation.qrels, cuts)
        means = [decimal(float(measured[cut].mean())) for cut in cuts]
        rows.append([Cell(text=text) for text in (run.name, *means)])
    caption = f"{what} among the best so many papers, mean of the queries"
    return Table(caption=caption, columns=["system", *map(str, DEPTHS)], rows=rows)


def _facts(assessment: Assessment) -> Iterator[str]:
    evaluation = assessment.evaluation
    queries = f"{evaluation.counted} queries with gold"
    yield "; ".join(part for part in (queries, evaluation.omitted) if part)
    if evaluation.known_graph is not None:
        yield f"citations known: {evaluation.known_graph}"
    yield f"95 % intervals: bootstrap of {RESAMPLES:,} resamples, seed {evaluation.seed}"
    for name in SETTINGS:
        if value := evaluation.provenance.get(name):
            pairs = value.items() if isinstance(value, Mapping) else [("", value)]
            yield f"{name}: {', '.join(f'{key} {part}'.strip() for key, part in pairs)}"
    for system in assessment.systems:
        if system.name in evaluation.ceilings:
            yield f"{system.name} is made from the gold: a ceiling, which is not compared"
        if system.missing:
            yield f"{system.name} has an empty ranking for {system.missing:,} queries; they count zero"
        if system.dropped:
            yield f"{system.name}: {system.dropped:,} queries of its run are not among them"


def _best(assessment: Assessment) -> set[tuple[str, str]]:
    """Return system and metric of the best values, as printed; a ceiling is none."""
    best: set[tuple[str, str]] = set()
    for metric in assessment.metrics:
        shown = {
            system.name: decimal(system.metrics[metric]) for system in assessment.rivals
        }
        most = max(shown.values(), default="")
        best |= {(name, metric) for name, text in shown.items() if text == most}
    return best


def _write_per_query(assessment: Assessment, path: Path) -> None:
    qrels = assessment.evaluation.qrels
    columns = [
        (system, metric) for system in assessment.systems for metric in system.per_query
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        names = [csv_cell(f"{system.name} {metric}") for system, metric in columns]
        table.writerow(["qid", "n_gold", *names])
        for row, qid in enumerate(sorted(qrels)):
            scores = [
                float(system.per_query[metric][row]) for system, metric in columns
            ]
            table.writerow([csv_cell(qid), len(qrels[qid]), *scores])
