"""The report of an evaluation, and its tables for a paper and for the terminal."""

from collections.abc import Iterator, Sequence
from string import ascii_lowercase

import orjson

from citerec.evaluate.assessment import Assessment
from citerec.evaluate.bins import PairBin, QueryBin
from citerec.evaluate.metrics import METRICS, SystemResult, recall_by_depth
from citerec.evaluate.report import parts
from citerec.evaluate.report.model import (
    NONE,
    Cell,
    Column,
    Report,
    Section,
    Table,
    columns,
    non_empty,
)
from citerec.evaluate.report.numbers import HEADINGS, decimal
from citerec.evaluate.significance import ALPHA

PLOT = "recall_by_depth.png"
BY_OVERLAP = ("f1@20", "mrr", "recall@1000")  # metrics by word overlap; report.json has all


def report_of(assessment: Assessment) -> Report:
    """Return the report of an evaluation."""
    evaluation = assessment.evaluation
    return Report(
        title=f"{evaluation.corpus}, {evaluation.split} split",
        facts=list(_facts(assessment)),
        sections=non_empty(_sections(assessment)),
    )


def summary_table(assessment: Assessment) -> Table:
    """Return the systems and their metrics for the terminal, 80 columns wide if names are short."""
    names = [name.replace(" means", "\nmeans") for name in HEADINGS.values()]
    return _systems(assessment, columns("system", *names, "s"), intervals=METRICS[:1])


def paper_table(assessment: Assessment) -> Table:
    """Return the systems and their metrics for a paper.

    The best value of a column is bold. The letters of a value name the systems that are significantly worse. A ceiling
    is in the table, but it is not compared, is never best, and has no letter.
    """
    letters = {system.name: _letter(n) for n, system in enumerate(assessment.rivals)}
    worse, best = _worse(assessment, letters), _best(assessment)
    rows = [
        [
            Cell(text=letters.get(system.name, "")),
            Cell(text=system.name),
            *(_value(system, m, best, marks=worse.get((system.name, m), "")) for m in METRICS),
        ]
        for system in assessment.systems
    ]
    names = ("", "System", *HEADINGS.values())  # values to the left, since superscripts follow
    return Table(
        caption=_paper_caption(assessment),
        columns=[Column(name, "name") for name in names],
        rows=rows,
    )


def left_out(assessment: Assessment) -> str:
    """Return how many queries were left out by reason; empty if none was."""
    reasons = assessment.evaluation.left_out
    by_reason = [f"{count} {why}" for why, count in reasons.items() if count]
    return f"{sum(reasons.values())} left out ({'; '.join(by_reason)})" if by_reason else ""


def _facts(assessment: Assessment) -> Iterator[tuple[str, str]]:
    evaluation = assessment.evaluation
    yield "Corpus", evaluation.corpus
    yield "Split", evaluation.split
    queries = f"{len(evaluation.qrels):,} with gold"
    yield "Queries", "; ".join(part for part in (queries, left_out(assessment)) if part)
    if evaluation.known_graph is not None:
        yield "Citations known", evaluation.known_graph
    draws = f"{evaluation.resamples:,} resamples of the queries, seed {evaluation.seed}"
    yield "Intervals", f"95 %, bootstrap of {draws}"


def _sections(assessment: Assessment) -> Iterator[Section]:
    evaluation = assessment.evaluation
    rivals = {system.name: system for system in assessment.rivals}
    systems = [system.name for system in assessment.systems]
    heads = columns("system", *HEADINGS.values(), "seconds")
    tables = [_systems(assessment, heads, intervals=METRICS)]
    yield Section(title="Systems", tables=tables, notes=list(_notes(assessment)))
    if len(rivals) > 1:
        tables = [parts.matrix([*rivals], assessment.comparisons, m) for m in parts.COMPARED]
        yield Section(title="Significance", text=[parts.TESTED], tables=tables)
    curves = {run.name: recall_by_depth(run, evaluation.qrels) for run in evaluation.runs}
    yield Section(title="Recall by depth", figures=[parts.recall(curves, PLOT)])
    if len(rivals) > 1:
        figures = [
            parts.differences({n: s.per_query[m] for n, s in rivals.items()}, m, systems)
            for m in parts.COMPARED
        ]
        yield Section(title="Query by query", drawn=[parts.SORTED], figures=figures)
    bands = {name: assessment.calibration[name] for name in rivals}
    figures = parts.calibration(bands, systems)
    yield Section(title="Calibration", text=[parts.CALIBRATED], figures=figures)
    yield Section(title="By year", figures=parts.by_year(assessment.by_year, "f1@20"))
    yield from _breakdowns(assessment)
    yield Section(title="Provenance", code=_provenance(assessment))


def _systems(assessment: Assessment, heads: Sequence[Column], intervals: Sequence[str]) -> Table:
    """Return a row for each system, with the intervals of some metrics."""
    best = _best(assessment)
    rows = [
        [
            Cell(text=system.name),
            *(_value(system, m, best, with_interval=m in intervals) for m in METRICS),
            _seconds(system),
        ]
        for system in assessment.systems
    ]
    caption = "With 95 % intervals; bold: the best of a column"
    return Table(caption=caption, columns=heads, rows=rows)


def _notes(assessment: Assessment) -> Iterator[str]:
    yield "A query with an empty ranking counts zero."
    for system in assessment.systems:
        if system.name in assessment.evaluation.ceilings:
            yield f"{system.name} is made from the gold: a ceiling, which is not compared."
        if system.missing:
            yield f"{system.name} has an empty ranking for {system.missing:,} queries."
        if system.dropped:
            yield f"{system.name}: {system.dropped:,} queries of its run have no judgements and are dropped."


def _breakdowns(assessment: Assessment) -> Iterator[Section]:
    overlap = "mean share of a cited paper's words in the query"
    tables = [
        *_of_queries(assessment.by_gold, "citations of the query", "f1@20"),
        *_of_queries(assessment.by_words, "words of the query", "f1@20"),
        *(
            table
            for metric in BY_OVERLAP
            for table in _of_queries(assessment.by_overlap, overlap, metric)
        ),
    ]
    yield Section(title="Kinds of queries", tables=tables)
    words, age, cited = assessment.pairs_by_overlap, assessment.by_age, assessment.by_citations
    tables = [
        *_of_papers(words, "the share of their words in the query", "share"),
        *_of_papers(age, "how many years old they were", "years"),
        *_of_papers(cited, "how often they were known to be cited", "citations"),
    ]
    text = ["The share of cited papers in the top 20, over all pairs of query and cited paper."]
    yield Section(title="Kinds of cited papers", text=text, tables=tables)


def _of_queries(bins: Sequence[QueryBin], by: str, metric: str) -> Iterator[Table]:
    if bins:
        values = [(b.label, b.queries, [of[metric] for of in b.systems.values()]) for b in bins]
        yield _breakdown(f"{HEADINGS[metric]} by {by}", [by, "queries", *bins[0].systems], values)


def _of_papers(bins: Sequence[PairBin], by: str, first: str) -> Iterator[Table]:
    if bins:
        values = [(b.label, b.pairs, [*b.recall.values()]) for b in bins]
        caption = f"Cited papers in the top 20, by {by}"
        yield _breakdown(caption, [first, "cited papers", *bins[0].recall], values)


def _breakdown(
    caption: str, headings: Sequence[str], bins: Sequence[tuple[str, int, Sequence[float]]]
) -> Table:
    rows = [
        [Cell(text=label), Cell(text=f"{count:,}"), *(Cell(text=decimal(v)) for v in values)]
        for label, count, values in bins
    ]
    return Table(caption=caption, columns=columns(*headings), rows=rows, is_sortable=False)


def _best(assessment: Assessment) -> dict[tuple[str, str], bool]:
    """Return which values are the best of a metric as printed, by system and metric; a ceiling is none."""
    rivals = assessment.rivals
    best = {m: max((decimal(s.metrics[m]) for s in rivals), default="") for m in METRICS}
    return {(s.name, m): decimal(s.metrics[m]) == best[m] for s in rivals for m in METRICS}


def _value(
    system: SystemResult,
    metric: str,
    best: dict[tuple[str, str], bool],
    *,
    with_interval: bool = False,
    marks: str = "",
) -> Cell:
    low, high = system.ci95[metric]
    return Cell(
        text=decimal(system.metrics[metric]),
        interval=(decimal(low), decimal(high)) if with_interval else None,
        marks=marks,
        order=system.metrics[metric],
        kind="best" if best.get((system.name, metric)) else "",
    )


def _seconds(system: SystemResult) -> Cell:
    if system.seconds is None:
        return Cell(text=NONE, order="", kind="none")
    return Cell(text=f"{system.seconds:,.1f}", order=system.seconds)


def _provenance(assessment: Assessment) -> str:
    content = dict(assessment.evaluation.provenance)
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(content, default=str, option=options).decode() if content else ""


def _letter(number: int) -> str:
    rounds, letter = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(rounds) if rounds else "")


def _worse(assessment: Assessment, letters: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return by system and metric the letters of the significantly worse systems."""
    found: dict[tuple[str, str], str] = {}
    for c in assessment.comparisons:
        if c.p_holm < ALPHA and c.difference:
            better, worse = (c.b, c.a) if c.difference > 0 else (c.a, c.b)
            found[better, c.metric] = found.get((better, c.metric), "") + letters[worse]
    return found


def _paper_caption(assessment: Assessment) -> str:
    evaluation = assessment.evaluation
    ceilings = (
        f" {name} is made from the gold: a ceiling, not compared."
        for name in sorted(evaluation.ceilings)
    )
    return (
        f"{evaluation.corpus}, {evaluation.split} split, {len(evaluation.qrels)} queries. "
        "Superscripts name the systems that are significantly worse (paired randomisation test, "
        f"Holm-corrected over pairs, p < {ALPHA})." + "".join(ceilings)
    )
