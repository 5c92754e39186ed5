"""The tables of a report: Markdown for reading, LaTeX for a paper, rich for the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING

from citerec.evaluate.assessment import Bin, Evaluation, Report
from citerec.evaluate.metrics import METRICS, SystemResult
from citerec.evaluate.overlap import PairBin
from citerec.export.clean import visible

if TYPE_CHECKING:
    from rich.table import Table

HEADINGS = {
    "f1@20": "F1@20",
    "f1@20 (of means)": "F1 of means",
    "mrr": "MRR",
    "recall@100": "R@100",
    "recall@1000": "R@1000",
    "ndcg@20": "nDCG@20",
    "map": "MAP",
}
ALPHA = 0.05  # a corrected p below it is marked as significant
COMPARED = ("f1@20", "mrr")  # metrics of the comparisons in Markdown; report.json has all
BY_OVERLAP = ("f1@20", "mrr", "recall@1000")  # likewise

_LATEX = str.maketrans(
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


def decimal(value: float) -> str:
    """Format a value with three decimals and without a leading zero, as in IR papers."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def left_out(evaluation: Evaluation) -> str:
    """Return how many queries were left out by reason; empty if none was."""
    parts = [f"{count} {why}" for why, count in evaluation.left_out.items() if count]
    return f"{sum(evaluation.left_out.values())} left out ({'; '.join(parts)})" if parts else ""


def markdown(report: Report) -> Iterator[str]:
    """Yield the lines of `report.md`, without the provenance."""
    evaluation = report.evaluation
    yield f"# {_cell(evaluation.corpus)}, {_cell(evaluation.split)} split"
    yield ""
    yield f"{len(evaluation.qrels)} queries with gold; a query with an empty ranking counts zero."
    if dropped := left_out(evaluation):
        yield f"Further queries of the split: {_cell(dropped)}."
    if evaluation.known_graph is not None:
        yield f"Citations known to the systems: {_cell(evaluation.known_graph)}."
    yield f"In brackets: 95 % bootstrap intervals over queries ({_draws(report)})."
    yield ""
    yield from _systems(report)
    yield from _notes(report)
    yield from _comparisons(report)
    yield from _breakdown("citations of the query", report.by_gold)
    yield from _breakdown("words of the query", report.by_words)
    for metric in BY_OVERLAP:
        yield from _breakdown(
            "mean share of a cited paper's words in the query", report.by_overlap, metric
        )
    yield from _pairs("the share of their words in the query", "share", report.pairs_by_overlap)
    yield from _pairs("how many years old they were", "years", report.by_age)
    yield from _pairs("how often they were known to be cited", "citations", report.by_citations)


def latex(report: Report) -> str:
    """Return a LaTeX table; its document needs only the package booktabs.

    The best value of a column is bold. The letters of a value name the systems that are significantly worse. A ceiling
    is in the table, but it is not compared, is never best, and has no letter.
    """
    heading = " & ".join(["", "System", *HEADINGS.values()])
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_caption(report)}}}",
        f"\\begin{{tabular}}{{ll{'l' * len(METRICS)}}}",
        "\\toprule",
        f"{heading} \\\\",
        "\\midrule",
        *(f"{row} \\\\" for row in _latex_rows(report)),
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_rows(report: Report) -> Iterator[str]:
    rivals = [s for s in report.systems if s.name not in report.evaluation.ceilings]
    letters = {s.name: _letter(number) for number, s in enumerate(rivals)}
    beaten = _beaten(report, letters)
    best = {m: max((decimal(s.metrics[m]) for s in rivals), default="") for m in METRICS}
    for s in report.systems:
        is_rival = s.name in letters
        values = [
            _value(s, m, best[m] if is_rival else "", beaten.get((s.name, m), "")) for m in METRICS
        ]
        yield " & ".join([letters.get(s.name, ""), tex(s.name), *values])


def summary_table(report: Report) -> "Table":
    """Return the systems and their metrics as a table for the terminal, 80 columns wide if names are short."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("system", overflow="fold", min_width=10)
    for heading in [*HEADINGS.values(), "s"]:
        table.add_column(heading.replace(" means", "\nmeans"), justify="right", no_wrap=True)
    for system in report.systems:
        figures = [decimal(system.metrics[metric]) for metric in METRICS]
        figures[0] += f" {_interval(system, METRICS[0])}"
        # Text, since "[...]" in a string is markup.
        cells = [system.name, *figures, _seconds(system)]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _systems(report: Report) -> Iterator[str]:
    rows = [
        [s.name, *(f"{decimal(s.metrics[m])} {_interval(s, m)}" for m in METRICS), _seconds(s)]
        for s in report.systems
    ]
    yield from table(["system", *HEADINGS.values(), "seconds"], rows)


def _notes(report: Report) -> Iterator[str]:
    for system in report.systems:
        if system.name in report.evaluation.ceilings:
            yield f"- {_cell(system.name)} is made from the gold: a ceiling, which is not compared."
        if system.missing:
            yield f"- {_cell(system.name)}: queries with an empty ranking, counted as zero: {system.missing}."
        if system.dropped:
            yield f"- {_cell(system.name)}: queries of its run that are not in the qrels, dropped: {system.dropped}."
    yield ""


def _comparisons(report: Report) -> Iterator[str]:
    shown = [c for c in report.comparisons if c.metric in COMPARED]
    if not shown:
        return
    yield "## Comparisons"
    yield ""
    yield "Paired by query, two-sided: Student's t, Fisher's randomisation test, and the latter"
    yield "corrected by Holm for all pairs of a metric. All metrics are in report.json."
    yield ""
    rows = [
        [
            HEADINGS[c.metric],
            c.a,
            c.b,
            f"{c.difference:+.4f}",
            "-" if c.p_student is None else _p(c.p_student),
            _p(c.p_fisher),
            _p(c.p_holm),
        ]
        for c in shown
    ]
    heading = ["metric", "a", "b", "b - a", "p Student", "p Fisher", "p Holm"]
    yield from table(heading, rows)


def _breakdown(by: str, bins: Sequence[Bin], metric: str = "f1@20") -> Iterator[str]:
    if not bins:
        return
    yield f"## {HEADINGS[metric]} by {by}"
    yield ""
    names = list(bins[0].systems)
    rows = [
        [b.label, str(b.queries), *(decimal(b.systems[n][metric]) for n in names)] for b in bins
    ]
    yield from table([by, "queries", *names], rows)


def _pairs(by: str, heading: str, bins: Sequence[PairBin]) -> Iterator[str]:
    """Yield the recall of each system over all pairs of query and cited paper, by bin."""
    if not bins:
        return
    yield f"## Cited papers in the top 20, by {by}"
    yield ""
    names = list(bins[0].recall)
    rows = [[b.label, str(b.pairs), *(decimal(b.recall[n]) for n in names)] for b in bins]
    yield from table([heading, "cited papers", *names], rows)


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, and an empty one."""
    yield _row(heading)
    yield _row(["---"] * len(heading))
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return visible(text.replace("|", "\\|"))


def _interval(system: SystemResult, metric: str) -> str:
    low, high = system.ci95[metric]
    return f"[{decimal(low)}, {decimal(high)}]"


def _seconds(system: SystemResult) -> str:
    return "-" if system.seconds is None else f"{system.seconds:.1f}"


def _p(p: float) -> str:
    return "< .001" if p < 0.001 else decimal(p)


def _draws(report: Report) -> str:
    return f"{report.evaluation.resamples:,} resamples, seed {report.evaluation.seed}"


def _letter(number: int) -> str:
    rounds, letter = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(rounds) if rounds else "")


def _beaten(report: Report, letters: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return by system and metric the letters of the significantly worse systems."""
    beaten: dict[tuple[str, str], str] = {}
    for c in report.comparisons:
        if c.p_holm < ALPHA and c.difference:
            better, worse = (c.b, c.a) if c.difference > 0 else (c.a, c.b)
            beaten[better, c.metric] = beaten.get((better, c.metric), "") + letters[worse]
    return beaten


def _value(system: SystemResult, metric: str, best: str, beaten: str) -> str:
    text = decimal(system.metrics[metric])
    shown = f"\\textbf{{{text}}}" if text == best else text
    return f"{shown}$^{{{beaten}}}$" if beaten else shown


def _caption(report: Report) -> str:
    evaluation = report.evaluation
    ceilings = (
        f" {tex(name)} is made from the gold: a ceiling, not compared."
        for name in sorted(evaluation.ceilings)
    )
    return (
        f"{tex(evaluation.corpus)}, {tex(evaluation.split)} split, {len(evaluation.qrels)} queries. "
        "Superscripts name the systems that are significantly worse (paired randomisation test, "
        f"Holm-corrected over pairs, $p < {ALPHA}$)." + "".join(ceilings)
    )


def tex(text: str) -> str:
    """Escape the special characters of LaTeX, and replace characters outside its default fonts by `?`."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    known = "".join(c if ord(c) < 0x180 or ord(c) in _LATEX else "?" for c in plain)
    return known.translate(_LATEX)
