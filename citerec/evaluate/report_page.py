"""The page of a report: `report.html`."""

from collections.abc import Iterator, Sequence

import orjson

from citerec.evaluate import parts
from citerec.evaluate.assessment import Bin, Report
from citerec.evaluate.metrics import METRICS, SystemResult
from citerec.evaluate.overlap import PairBin
from citerec.evaluate.page import Cell, Page, PageTable, Section, render
from citerec.evaluate.plots import recall_by_depth
from citerec.evaluate.tables import BY_OVERLAP, COMPARED, HEADINGS, decimal, left_out


def report_html(report: Report) -> str:
    """Return the page of a report: one self-contained file."""
    evaluation = report.evaluation
    return render(
        Page(
            title=f"{evaluation.corpus}, {evaluation.split} split",
            facts=list(_facts(report)),
            sections=parts.non_empty(list(_sections(report))),
        )
    )


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    evaluation = report.evaluation
    yield "Corpus", evaluation.corpus
    yield "Split", evaluation.split
    dropped = left_out(evaluation)
    yield "Queries", f"{len(evaluation.qrels):,} with gold" + (f"; {dropped}" if dropped else "")
    yield "Citations known", evaluation.known_graph or "unknown"
    draws = f"{evaluation.resamples:,} resamples of the queries, seed {evaluation.seed}"
    yield "Intervals", f"95 %, bootstrap of {draws}"


def _sections(report: Report) -> Iterator[Section]:
    evaluation = report.evaluation
    rivals = [s for s in report.systems if s.name not in evaluation.ceilings]
    yield Section(title="Systems", tables=[_systems(report)], notes=list(_notes(report)))
    if len(rivals) > 1:
        names = [system.name for system in rivals]
        tables = [parts.matrix(names, report.comparisons, metric) for metric in COMPARED]
        yield Section(title="Significance", text=[parts.TESTED], tables=tables)
    all_systems = [system.name for system in report.systems]
    curves = {run.name: recall_by_depth(run, evaluation.qrels) for run in evaluation.runs}
    yield Section(title="Recall by depth", figures=[parts.recall(curves, "recall")])
    if len(rivals) > 1:
        figures = [
            parts.differences(
                {system.name: system.per_query[metric] for system in rivals},
                metric,
                f"diff{number}",
                all_systems,
            )
            for number, metric in enumerate(COMPARED)
        ]
        yield Section(title="Query by query", text=[parts.SORTED], figures=figures)
    bands = {system.name: report.calibration[system.name] for system in rivals}
    figures = parts.calibration(bands, "cal", all_systems)
    yield Section(title="Calibration", text=[parts.CALIBRATED], figures=figures)
    yield Section(title="By year", figures=parts.by_year(report.by_year, "f1@20", "year"))
    yield from _breakdowns(report)
    yield Section(title="Provenance", code=_provenance(report))


def _systems(report: Report) -> PageTable:
    rivals = [s for s in report.systems if s.name not in report.evaluation.ceilings]
    best = {m: max((decimal(s.metrics[m]) for s in rivals), default="") for m in METRICS}
    rows = [
        [
            Cell(text=system.name),
            *(_metric(system, m, best[m] if system in rivals else "") for m in METRICS),
            _seconds(system),
        ]
        for system in report.systems
    ]
    heading = ["system", *HEADINGS.values(), "seconds"]
    return PageTable(
        caption="With 95 % intervals; bold: the best of a column", heading=heading, rows=rows
    )


def _metric(system: SystemResult, metric: str, best: str) -> Cell:
    low, high = system.ci95[metric]
    value = system.metrics[metric]
    return Cell(
        text=decimal(value),
        small=[f"{decimal(low)} to {decimal(high)}"],
        order=value,
        kind="best" if decimal(value) == best else "",
    )


def _seconds(system: SystemResult) -> Cell:
    if system.seconds is None:
        return Cell(text="–", order="", kind="none")
    return Cell(text=f"{system.seconds:,.1f}", order=system.seconds)


def _notes(report: Report) -> Iterator[str]:
    yield "A query with an empty ranking counts zero."
    for system in report.systems:
        if system.name in report.evaluation.ceilings:
            yield f"{system.name} is made from the gold: a ceiling, which is not compared."
        if system.missing:
            yield f"{system.name} has an empty ranking for {system.missing:,} queries."
        if system.dropped:
            yield f"{system.name}: {system.dropped:,} queries of its run have no judgements and are dropped."


def _provenance(report: Report) -> str:
    content = dict(report.evaluation.provenance)
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(content, default=str, option=options).decode() if content else ""


def _breakdowns(report: Report) -> Iterator[Section]:
    by_query = [
        _of_queries(report.by_gold, "citations of the query", "f1@20"),
        _of_queries(report.by_words, "words of the query", "f1@20"),
        *(_of_queries(report.by_overlap, "share of words", metric) for metric in BY_OVERLAP),
    ]
    tables = [table for table in by_query if table.rows]
    text = ["Share of words: the mean share of a cited paper's words that are in the query."]
    yield Section(title="Kinds of queries", text=text if report.by_overlap else (), tables=tables)
    by_paper = [
        _of_papers(report.pairs_by_overlap, "share of their words in the query"),
        _of_papers(report.by_age, "age in years"),
        _of_papers(report.by_citations, "citations known"),
    ]
    tables = [table for table in by_paper if table.rows]
    text = ["The share of cited papers in the top 20, over all pairs of query and cited paper."]
    yield Section(title="Kinds of cited papers", text=text, tables=tables)


def _of_queries(bins: Sequence[Bin], by: str, metric: str) -> PageTable:
    names = list(bins[0].systems) if bins else []
    rows = [_row(b.label, b.queries, [b.systems[name][metric] for name in names]) for b in bins]
    heading = [by, "queries", *names]
    return PageTable(
        caption=f"{HEADINGS[metric]} by {by}", heading=heading, rows=rows, is_sortable=False
    )


def _of_papers(bins: Sequence[PairBin], by: str) -> PageTable:
    names = list(bins[0].recall) if bins else []
    rows = [_row(b.label, b.pairs, [b.recall[name] for name in names]) for b in bins]
    heading = [by, "cited papers", *names]
    return PageTable(
        caption=f"In the top 20, by {by}", heading=heading, rows=rows, is_sortable=False
    )


def _row(label: str, count: int, values: Sequence[float]) -> list[Cell]:
    return [Cell(text=label), Cell(text=f"{count:,}"), *(Cell(text=decimal(v)) for v in values)]
