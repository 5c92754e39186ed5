"""How good runs are: ranx's metrics for each query, their means and intervals, and paired tests.

This is the only door to ranx, which takes 2 s to import and 13 s to compile at its very first use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from threading import Lock
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.evaluate.significance import (
    RESAMPLES,
    Floats,
    bootstrap_interval,
    holm,
    randomisation_test,
    student_test,
)
from citerec.run import Qrels, Run

METRICS = ("f1@20", "f1@20 (of means)", "mrr", "recall@100", "recall@1000", "ndcg@20", "map")
PER_QUERY = (
    "f1@20",
    "mrr",
    "recall@100",
    "recall@1000",
    "ndcg@20",
    "map",
    "precision@20",
    "recall@20",
)
"""What is measured for each query; `f1@20 (of means)` is made of the means of the last two."""

DEPTH = 1000  # ranks that any metric reads
_QUERIES_AT_ONCE = 512  # 8 MB of ranks
# numba's work queue, which ranx chooses, ends the process if two threads enter it.
_RANX = Lock()


@dataclass(frozen=True, slots=True)
class Alignment:
    """A run cut to the queries of the qrels, and what did not match."""

    run: Run
    dropped: int  # queries of the run that the qrels do not have
    missing: int  # queries of the qrels that the run finds nothing for; they count zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemResult:
    """How good one run is."""

    name: str
    metrics: Mapping[str, float]  # by `METRICS`
    ci95: Mapping[str, tuple[float, float]]  # by `METRICS`
    per_query: Mapping[str, Floats]  # by `PER_QUERY`, in the order of the sorted query ids
    dropped: int  # see `Alignment`
    missing: int
    seconds: float | None = None  # what the run took, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How two systems differ in one metric."""

    a: str
    b: str
    metric: str
    difference: float  # b's metric less a's
    p_student: float | None  # none for the F1 of means, which is no mean over queries
    p_fisher: float
    p_holm: float  # p_fisher, corrected for all pairs that are compared in this metric


def aligned(run: Run, qrels: Qrels) -> Alignment:
    """Cut `run` to the queries of `qrels`, and count what does not match.

    Raises:
        ConfigError: If the two share no query.
    """
    shared = {qid: ranking for qid, ranking in run.rankings.items() if qid in qrels}
    if run.rankings and not shared:
        raise ConfigError(
            f"run {run.name!r} is for another query set: it has e.g. {min(run.rankings)!r}, "
            f"the qrels have e.g. {min(qrels)!r}"
        )
    answered = sum(1 for ranking in shared.values() if len(ranking))
    dropped = len(run.rankings) - len(shared)
    return Alignment(Run(run.name, shared), dropped, len(qrels) - answered)


def per_query(run: Run, qrels: Qrels) -> dict[str, Floats]:
    """Measure `run` for each query of `qrels`, reading the top 1000.

    Precision@20 divides by 20 however few papers were found. A query with no ranking scores zero;
    rankings for other queries are not read.

    Returns:
        By each name in `PER_QUERY`, (n,) in the order of the sorted query ids, in [0, 1].

    Raises:
        ValueError: If there is no query, or one with nothing to find.
    """
    if not qrels or not all(qrels.values()):
        raise ValueError("qrels need at least one query, and every query at least one paper")
    qids = sorted(qrels)
    parts = [
        _measure(*_as_arrays(run, qrels, qids[start : start + _QUERIES_AT_ONCE]))
        for start in range(0, len(qids), _QUERIES_AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in PER_QUERY}


def combine(means: Floats) -> Floats:
    """Make `METRICS` of means of `PER_QUERY`, both on the last axis.

    The F1 of means is 2PR / (P + R) with P and R the mean precision@20 and recall@20, as Anserini's
    published figures have it.
    """
    columns = zip(PER_QUERY, np.moveaxis(means, -1, 0), strict=True)
    by_name: dict[str, Floats] = dict(columns)
    p, r = by_name["precision@20"], by_name["recall@20"]
    f1 = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)
    by_name["f1@20 (of means)"] = f1
    return np.stack([by_name[name] for name in METRICS], axis=-1)


def mean_metrics(scores: Mapping[str, Floats]) -> dict[str, float]:
    """Average what `per_query` measured, or any part of its queries, into `METRICS`."""
    return dict(zip(METRICS, combine(_table(scores).mean(axis=0)).tolist(), strict=True))


def evaluate_run(
    run: Run,
    qrels: Qrels,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    seconds: float | None = None,
) -> SystemResult:
    """Measure one run, with 95 % bootstrap intervals over queries.

    Args:
        run: May lack queries of the qrels, which count zero, or have others, which are dropped.
        qrels: Every query of it counts.
        rng: Draws the resamples. Give each run of one report a fresh one of the same seed: all are
            then resampled alike, and a run's interval does not depend on the runs before it.
        resamples: How many.
        seconds: Passed on.

    Raises:
        ConfigError: If run and qrels share no query.
    """
    alignment = aligned(run, qrels)
    scores = per_query(alignment.run, qrels)
    interval = bootstrap_interval(_table(scores), combine, rng=rng, resamples=resamples)
    bounds = [(low, high) for low, high in interval.T.tolist()]
    return SystemResult(
        name=run.name,
        metrics=mean_metrics(scores),
        ci95=dict(zip(METRICS, bounds, strict=True)),
        per_query=scores,
        dropped=alignment.dropped,
        missing=alignment.missing,
        seconds=seconds,
    )


def compare(
    systems: Sequence[SystemResult], *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> list[Comparison]:
    """Test every pair of systems in every metric, over the same queries.

    Returns:
        Metric by metric in the order of `METRICS`, the pairs in the order of `systems`, so that the
        difference is the later system's gain over the earlier one.
    """
    pairs = list(combinations(systems, 2))
    p_fisher = [
        randomisation_test(
            _table(a.per_query), _table(b.per_query), combine, rng=rng, resamples=resamples
        )
        for a, b in pairs
    ]
    return [
        comparison
        for column, metric in enumerate(METRICS)
        for comparison in _compared(pairs, metric, [float(p[column]) for p in p_fisher])
    ]


def _compared(
    pairs: Sequence[tuple[SystemResult, SystemResult]], metric: str, p_fisher: Sequence[float]
) -> list[Comparison]:
    return [
        Comparison(
            a=a.name,
            b=b.name,
            metric=metric,
            difference=b.metrics[metric] - a.metrics[metric],
            p_student=_student(a, b, metric),
            p_fisher=p,
            p_holm=corrected,
        )
        for (a, b), p, corrected in zip(pairs, p_fisher, holm(p_fisher), strict=True)
    ]


def _student(a: SystemResult, b: SystemResult, metric: str) -> float | None:
    if metric not in PER_QUERY:
        return None
    return student_test(a.per_query[metric], b.per_query[metric])


def _table(scores: Mapping[str, Floats]) -> Floats:
    return np.stack([scores[name] for name in PER_QUERY], axis=1)


def _as_arrays(run: Run, qrels: Qrels, qids: Sequence[str]) -> tuple[Floats, Floats]:
    """Turn papers into numbers for ranx, query by query: the cited from 0, every other one is -1.

    ranx would number them by `hash(docid)` as a float64, which drops bits, differs between processes,
    and takes typed lists whose types need 20 s to compile. Its metrics read the order of rows, and no
    scores, so equal scores keep the order of the ranking.

    Returns:
        Gold (n, most gold, 2) and found (n, 1000, 2): number and relevance or score. Both
        are padded with -1, as a number no citation and as a relevance none, so that ranx drops it.
    """
    gold = np.full((len(qids), max(len(qrels[qid]) for qid in qids), 2), -1.0)
    found = np.full((len(qids), DEPTH, 2), -1.0)
    for row, qid in enumerate(qids):
        numbers = {docid: number for number, docid in enumerate(qrels[qid])}
        gold[row, : len(numbers), 0] = range(len(numbers))
        gold[row, : len(numbers), 1] = 1
        if ranking := run.rankings.get(qid):
            top = [numbers.get(docid, -1) for docid in ranking.ids[:DEPTH]]
            found[row, : len(top), 0] = top
    return gold, found


def _measure(gold: Floats, found: Floats) -> dict[str, Floats]:
    from ranx import metrics  # pyright: ignore[reportMissingTypeStubs]

    ranx: Any = metrics
    with _RANX:
        return {
            "f1@20": ranx.f1(gold, found, 20),
            "mrr": ranx.reciprocal_rank(gold, found, DEPTH),
            "recall@100": ranx.recall(gold, found, 100),
            "recall@1000": ranx.recall(gold, found, 1000),
            "ndcg@20": ranx.ndcg(gold, found, 20),
            "map": ranx.average_precision(gold, found, DEPTH),
            "precision@20": ranx.precision(gold, found, 20),
            "recall@20": ranx.recall(gold, found, 20),
        }
