"""Computes the content of a report from runs and qrels: metrics, tests and breakdowns."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluate.bias import CitedPaperStats
from citerec.evaluate.bins import (
    PairBin,
    QueryBin,
    Year,
    by_year,
    pair_bins,
    quartiles,
    query_bins,
    ranges,
)
from citerec.evaluate.calibration import Band, CalibrationBands, calibrate
from citerec.evaluate.metrics import (
    METRICS,
    Comparison,
    SystemResult,
    compare,
    evaluate_run,
)
from citerec.evaluate.overlap import means
from citerec.evaluate.significance import RESAMPLES
from citerec.run import Qrels, Run

GOLD_BINS = ((1, 2), (3, 5), (6, 10), (11, 20), (21, None))  # gold papers of a query
AGES = ((0, 1), (2, 3), (4, 6), (7, 10), (11, 20), (21, None))  # of a cited paper, in years
CITATIONS = ((0, 0), (1, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, None))  # of a cited paper


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
class Assessment:
    """The results of an evaluation."""

    evaluation: Evaluation
    systems: tuple[SystemResult, ...]
    comparisons: tuple[Comparison, ...]
    by_gold: tuple[QueryBin, ...]  # by the number of gold papers
    by_words: tuple[QueryBin, ...]  # by the length of the query, in quartiles; empty if unknown
    by_overlap: tuple[QueryBin, ...]  # by the word overlap of the query and its gold; likewise
    pairs_by_overlap: tuple[
        PairBin, ...
    ]  # pairs of query and gold paper, by word overlap; likewise
    by_age: tuple[PairBin, ...]  # pairs by the age of the paper; likewise
    by_citations: tuple[PairBin, ...]  # pairs by the known citations of the paper; likewise
    by_year: Mapping[str, tuple[Year, ...]]  # f1@20 by the year of the query; empty if unknown
    calibration: Mapping[str, CalibrationBands]  # share of cited papers by score and rank

    @property
    def rivals(self) -> list[SystemResult]:
        """The systems that are compared: all but ceilings."""
        return [system for system in self.systems if system.name not in self.evaluation.ceilings]


def assess(evaluation: Evaluation) -> Assessment:
    """Measure all runs, compare all pairs except ceilings, and break the metrics down.

    Raises:
        ConfigError: If a run shares no query with the qrels.
    """
    qrels, runs, stats = evaluation.qrels, evaluation.runs, evaluation.cited_stats
    systems = tuple(_measured(evaluation, run) for run in runs)
    rng = np.random.default_rng(evaluation.seed)
    rivals = [system for system in systems if system.name not in evaluation.ceilings]
    comparisons = compare(rivals, rng=rng, resamples=evaluation.resamples)
    sizes = {qid: len(gold) for qid, gold in qrels.items()}
    shares = partial(quartiles, form="{:.2f}")
    return Assessment(
        evaluation,
        systems,
        tuple(comparisons),
        by_gold=query_bins(sizes, partial(ranges, bounds=GOLD_BINS), qrels, systems),
        by_words=query_bins(
            evaluation.query_words, partial(quartiles, form="{:.0f}"), qrels, systems
        ),
        by_overlap=query_bins(means(evaluation.overlap), shares, qrels, systems),
        pairs_by_overlap=pair_bins(evaluation.overlap, shares, qrels, runs),
        by_age=pair_bins(stats.ages, partial(ranges, bounds=AGES), qrels, runs),
        by_citations=pair_bins(stats.citations, partial(ranges, bounds=CITATIONS), qrels, runs),
        by_year=_by_year(evaluation, systems),
        calibration={run.name: calibrate(run, qrels) for run in runs},
    )


def as_json(assessment: Assessment) -> dict[str, Any]:
    """Return the content of `report.json`; its keys are a contract of `citerec evaluate`."""
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
        "systems": [_system_json(system) for system in assessment.systems],
        "comparisons": [*map(asdict, assessment.comparisons)],
        "breakdown": {
            "gold": [_bin_json(part) for part in assessment.by_gold],
            "query_words": [_bin_json(part) for part in assessment.by_words],
        },
        "by_overlap": {
            "queries": [_bin_json(part) for part in assessment.by_overlap],
            "pairs": [_pairs_json(part) for part in assessment.pairs_by_overlap],
        },
        "by_age": [_pairs_json(part) for part in assessment.by_age],
        "by_citations": [_pairs_json(part) for part in assessment.by_citations],
        "by_year": {name: [*map(asdict, years)] for name, years in assessment.by_year.items()},
        "calibration": {
            name: _calibration_json(calibration)
            for name, calibration in assessment.calibration.items()
        },
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


def _by_year(
    evaluation: Evaluation, systems: Sequence[SystemResult]
) -> dict[str, tuple[Year, ...]]:
    qids = sorted(evaluation.qrels)
    years = evaluation.query_years
    return {system.name: by_year(system.per_query["f1@20"], qids, years) for system in systems}


def _system_json(system: SystemResult) -> dict[str, Any]:
    return {
        "name": system.name,
        "metrics": dict(system.metrics),
        "ci95": {metric: list(system.ci95[metric]) for metric in METRICS},
        "seconds": system.seconds,
        "dropped_queries": system.dropped,
        "missing_queries": system.missing,
    }


def _bin_json(part: QueryBin) -> dict[str, Any]:
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
