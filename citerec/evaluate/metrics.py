"""Evaluation of runs: ranx's metrics per query, their means and confidence intervals, and paired tests.

This is the only module that imports ranx, which takes 2 s to import and 13 s to compile at its first use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from threading import Lock
from typing import Any

import numpy as np

from citerec.config import RANKING_DEPTH
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
"""The metrics of each query; `f1@20 (of means)` is computed from the means of the last two."""

_QUERIES_AT_ONCE = 512  # 8 MB of ranks
# numba's work queue, which ranx uses, ends the process if two threads enter it.
_RANX = Lock()


@dataclass(frozen=True, slots=True)
class Alignment:
    """A run cut to the queries of the qrels, and the numbers of unmatched queries."""

    run: Run
    dropped: int  # queries of the run that are not in the qrels
    missing: int  # queries of the qrels with an empty or no ranking; they count zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemResult:
    """The metrics of one run."""

    name: str
    metrics: Mapping[str, float]  # by `METRICS`
    ci95: Mapping[str, tuple[float, float]]  # by `METRICS`
    per_query: Mapping[str, Floats]  # by `PER_QUERY`, in the order of the sorted query ids
    dropped: int  # see `Alignment`
    missing: int
    seconds: float | None = None  # duration of the run, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference of two systems in one metric, with p values."""

    a: str
    b: str
    metric: str
    difference: float  # metric of b minus metric of a
    p_student: float | None  # None for the F1 of means, which is no mean over queries
    p_fisher: float
    p_holm: float  # p_fisher, corrected for all compared pairs of this metric


def aligned(run: Run, qrels: Qrels) -> Alignment:
    """Cut a run to the queries of the qrels, and count unmatched queries.

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
    """Measure a run for each query of the qrels, on the top 1000.

    Precision@20 divides by 20 even if fewer papers are ranked. A query without a ranking scores zero; rankings of other
    queries are ignored.

    Returns:
        By each name in `PER_QUERY`, (n,) in the order of the sorted query ids, in [0, 1].

    Raises:
        ValueError: If there is no query, or a query without gold.
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
    """Compute `METRICS` from means of `PER_QUERY`, both on the last axis.

    The F1 of means is 2PR / (P + R) with P and R the mean precision@20 and recall@20, as in Anserini's published
    results.
    """
    columns = zip(PER_QUERY, np.moveaxis(means, -1, 0), strict=True)
    by_name: dict[str, Floats] = dict(columns)
    p, r = by_name["precision@20"], by_name["recall@20"]
    f1 = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)
    by_name["f1@20 (of means)"] = f1
    return np.stack([by_name[name] for name in METRICS], axis=-1)


def mean_metrics(scores: Mapping[str, Floats]) -> dict[str, float]:
    """Average the output of `per_query`, or any part of its queries, into `METRICS`."""
    return dict(zip(METRICS, combine(_table(scores).mean(axis=0)).tolist(), strict=True))


def evaluate_run(
    run: Run,
    qrels: Qrels,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    seconds: float | None = None,
) -> SystemResult:
    """Measure one run, with 95 % bootstrap confidence intervals over queries.

    Args:
        run: Missing queries count zero, queries outside the qrels are dropped.
        qrels: Every query counts.
        rng: Draws the resamples. Use a new generator with the same seed for each run of a report: then all runs have
            the
            same resamples, and an interval does not depend on the other runs.
        resamples: The number of resamples.
        seconds: The duration of the run, for the result.

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
    """Test every pair of systems in every metric on the same queries.

    Returns:
        Metric by metric in the order of `METRICS`, the pairs in the order of `systems`; the difference is the metric of
        the later system minus that of the earlier one.
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


def recall_by_depth(run: Run, qrels: Qrels) -> Floats:
    """Return mean recall at the depths 1 to 1000, shape (1000,).

    Every query of the qrels counts; one without a ranking counts zero.
    """
    gain = np.zeros(RANKING_DEPTH)
    for qid, gold in qrels.items():
        ranking = run.rankings.get(qid)
        ids = ranking.ids[:RANKING_DEPTH] if ranking else ()
        hits = [rank for rank, docid in enumerate(ids) if docid in gold]
        gain[hits] += 1 / len(gold)
    return np.cumsum(gain) / len(qrels)


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
    """Convert rankings to arrays for ranx: gold papers are numbered from 0, every other paper is -1.

    ranx would number papers by `hash(docid)` as float64, which drops bits and differs between processes, and takes
    typed lists that need 20 s to compile. Its metrics use the order of the rows, not the scores, so equal scores keep
    the order of the ranking.

    Returns:
        Gold (n, most gold, 2) and ranked (n, 1000, 2): number, and relevance or score. Both are padded with -1; ranx
        drops entries of relevance -1.
    """
    gold = np.full((len(qids), max(len(qrels[qid]) for qid in qids), 2), -1.0)
    ranked = np.full((len(qids), RANKING_DEPTH, 2), -1.0)
    for row, qid in enumerate(qids):
        numbers = {docid: number for number, docid in enumerate(qrels[qid])}
        gold[row, : len(numbers), 0] = range(len(numbers))
        gold[row, : len(numbers), 1] = 1
        if ranking := run.rankings.get(qid):
            top = [numbers.get(docid, -1) for docid in ranking.ids[:RANKING_DEPTH]]
            ranked[row, : len(top), 0] = top
    return gold, ranked


def _measure(gold: Floats, ranked: Floats) -> dict[str, Floats]:
    from ranx import metrics  # pyright: ignore[reportMissingTypeStubs]

    ranx: Any = metrics
    with _RANX:
        return {
            "f1@20": ranx.f1(gold, ranked, 20),
            "mrr": ranx.reciprocal_rank(gold, ranked, RANKING_DEPTH),
            "recall@100": ranx.recall(gold, ranked, 100),
            "recall@1000": ranx.recall(gold, ranked, 1000),
            "ndcg@20": ranx.ndcg(gold, ranked, 20),
            "map": ranx.average_precision(gold, ranked, RANKING_DEPTH),
            "precision@20": ranx.precision(gold, ranked, 20),
            "recall@20": ranx.recall(gold, ranked, 20),
        }
