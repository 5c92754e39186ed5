"""Computes the content of a report from runs and qrels: metrics, tests and breakdowns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluate.bias import CitedPaperStats, by_age, by_citations
from citerec.evaluate.by_year import Year, by_year
from citerec.evaluate.calibration import Band, CalibrationBands, calibrate
from citerec.evaluate.metrics import (
    METRICS,
    Comparison,
    SystemResult,
    compare,
    evaluate_run,
    mean_metrics,
)
from citerec.evaluate.overlap import PairBin, means, pair_bins, quartiles
from citerec.evaluate.significance import RESAMPLES
from citerec.run import Qrels, Run

GOLD_BINS = ((1, 2), (3, 5), (6, 10), (11, 20), (21, None))  # gold papers of a query, inclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The runs of some systems on the same queries, and the facts for their report."""

    corpus: str
    split: str
    known_graph: str | None  # None if unknown, for external runs
    qrels: Qrels
    runs: Sequence[Run]  # in the order of the report, with distinct names
    query_words: Mapping[str, int] = field(default_factory=dict[str, int])  # if known
    query_years: Mapping[str, int] = field(default_factory=dict[str, int])  # if known
    overlap: Mapping[str, Mapping[str, float]] = field(  # `citerec.evaluate.overlap`; if known
        default_factory=dict[str, Mapping[str, float]]
    )
    cited_stats: CitedPaperStats = CitedPaperStats()  # if known
    seconds: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left_out: Mapping[str, int] = field(
        default_factory=dict[str, int]
    )  # number of queries by reason, see `EvalSet`
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
class Bin:
    """Some of the queries, and the metrics of each system on them."""

    label: str
    queries: int
    systems: Mapping[str, Mapping[str, float]]  # by system and metric


@dataclass(frozen=True, slots=True)
class Report:
    """The results of an evaluation."""

    evaluation: Evaluation
    systems: tuple[SystemResult, ...]
    comparisons: tuple[Comparison, ...]
    by_gold: tuple[Bin, ...]  # by the number of gold papers
    by_words: tuple[Bin, ...]  # by the length of the query, in quartiles; empty if unknown
    by_overlap: tuple[Bin, ...]  # by the word overlap of the query and its gold; likewise
    pairs_by_overlap: tuple[
        PairBin, ...
    ]  # pairs of query and gold paper, by word overlap; likewise
    by_age: tuple[PairBin, ...]  # pairs by the age of the paper; likewise
    by_citations: tuple[PairBin, ...]  # pairs by the known citations of the paper; likewise
    by_year: Mapping[str, tuple[Year, ...]]  # f1@20 by the year of the query; empty if unknown
    calibration: Mapping[str, CalibrationBands]  # share of cited papers by score and rank


def assess(evaluation: Evaluation) -> Report:
    """Measure all runs, compare all pairs except ceilings, and break the metrics down.

    Raises:
        ConfigError: If a run shares no query with the qrels.
    """
    systems = tuple(_measured(evaluation, run) for run in evaluation.runs)
    rng = np.random.default_rng(evaluation.seed)
    rivals = [system for system in systems if system.name not in evaluation.ceilings]
    comparisons = compare(rivals, rng=rng, resamples=evaluation.resamples)
    return Report(
        evaluation,
        systems,
        tuple(comparisons),
        by_gold=_by_gold(evaluation, systems),
        by_words=_by_quartile(evaluation, systems, evaluation.query_words, "{:.0f}"),
        by_overlap=_by_quartile(evaluation, systems, means(evaluation.overlap), "{:.2f}"),
        pairs_by_overlap=pair_bins(evaluation.overlap, evaluation.qrels, evaluation.runs),
        by_age=by_age(evaluation.cited_stats, evaluation.qrels, evaluation.runs),
        by_citations=by_citations(evaluation.cited_stats, evaluation.qrels, evaluation.runs),
        by_year=_by_year(evaluation, systems),
        calibration={run.name: calibrate(run, evaluation.qrels) for run in evaluation.runs},
    )


def as_json(report: Report) -> dict[str, Any]:
    """Return the content of `report.json`; its keys are a contract of `citerec evaluate`."""
    evaluation = report.evaluation
    return {
        "corpus": evaluation.corpus,
        "split": evaluation.split,
        "queries": len(evaluation.qrels),
        "left_out": dict(evaluation.left_out),
        "known_graph": evaluation.known_graph,
        "seed": evaluation.seed,
        "resamples": evaluation.resamples,
        "ceilings": sorted(evaluation.ceilings),
        "systems": [_system_json(system) for system in report.systems],
        "comparisons": [_comparison_json(comparison) for comparison in report.comparisons],
        "breakdown": {
            "gold": [_bin_json(part) for part in report.by_gold],
            "query_words": [_bin_json(part) for part in report.by_words],
        },
        "by_overlap": {
            "queries": [_bin_json(part) for part in report.by_overlap],
            "pairs": [_pairs_json(part) for part in report.pairs_by_overlap],
        },
        "by_age": [_pairs_json(part) for part in report.by_age],
        "by_citations": [_pairs_json(part) for part in report.by_citations],
        "by_year": {name: [*map(asdict, years)] for name, years in report.by_year.items()},
        "calibration": {name: _calibration_json(one) for name, one in report.calibration.items()},
        "provenance": dict(evaluation.provenance),
    }


def _measured(evaluation: Evaluation, run: Run) -> SystemResult:
    return evaluate_run(
        run,
        evaluation.qrels,
        rng=np.random.default_rng(evaluation.seed),
        resamples=evaluation.resamples,
        seconds=evaluation.seconds.get(run.name),
    )


def _by_gold(evaluation: Evaluation, systems: Sequence[SystemResult]) -> tuple[Bin, ...]:
    sizes = {qid: len(gold) for qid, gold in evaluation.qrels.items()}
    parts = (
        _bin(
            f"{low}+" if high is None else f"{low}-{high}",
            evaluation,
            systems,
            lambda qid, low=low, high=high: low <= sizes[qid] and (not high or sizes[qid] <= high),
        )
        for low, high in GOLD_BINS
    )
    return tuple(part for part in parts if part.queries)


def _by_year(
    evaluation: Evaluation, systems: Sequence[SystemResult]
) -> dict[str, tuple[Year, ...]]:
    qids = sorted(evaluation.qrels)
    years = evaluation.query_years
    return {system.name: by_year(system.per_query["f1@20"], qids, years) for system in systems}


def _by_quartile(
    evaluation: Evaluation,
    systems: Sequence[SystemResult],
    values: Mapping[str, float],
    form: str,
) -> tuple[Bin, ...]:
    """Break the metrics down by the quartiles of a value of each query; empty if no value is known."""
    known = {qid: value for qid, value in values.items() if qid in evaluation.qrels}
    if not known:
        return ()
    parts: list[Bin] = []
    for quarter in quartiles([*known.values()], form):
        inside = frozenset(qid for qid, is_in in zip(known, quarter.members, strict=True) if is_in)
        parts.append(_bin(quarter.label, evaluation, systems, inside.__contains__))
    return tuple(parts)


def _bin(
    label: str,
    evaluation: Evaluation,
    systems: Sequence[SystemResult],
    belongs: Callable[[str], bool],
) -> Bin:
    inside = np.array([belongs(qid) for qid in sorted(evaluation.qrels)])
    if not inside.any():
        return Bin(label, 0, {})
    metrics = {
        system.name: mean_metrics({name: s[inside] for name, s in system.per_query.items()})
        for system in systems
    }
    return Bin(label, int(inside.sum()), metrics)


def _system_json(system: SystemResult) -> dict[str, Any]:
    return {
        "name": system.name,
        "metrics": dict(system.metrics),
        "ci95": {metric: list(system.ci95[metric]) for metric in METRICS},
        "seconds": system.seconds,
        "dropped_queries": system.dropped,
        "missing_queries": system.missing,
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "a": comparison.a,
        "b": comparison.b,
        "metric": comparison.metric,
        "difference": comparison.difference,
        "p_student": comparison.p_student,
        "p_fisher": comparison.p_fisher,
        "p_holm": comparison.p_holm,
    }


def _bin_json(part: Bin) -> dict[str, Any]:
    systems = {name: dict(metrics) for name, metrics in part.systems.items()}
    return {"bin": part.label, "queries": part.queries, "systems": systems}


def _pairs_json(part: PairBin) -> dict[str, Any]:
    return {"bin": part.label, "pairs": part.pairs, "recall@20": dict(part.recall)}


def _calibration_json(calibration: CalibrationBands) -> dict[str, Any]:
    return {
        "scores": [_band_json(band) for band in calibration.scores],
        "ranks": [_band_json(band) for band in calibration.ranks],
    }


def _band_json(band: Band) -> dict[str, Any]:
    return {"bin": band.label, "mean": band.at, "papers": band.papers, "cited": band.cited}
