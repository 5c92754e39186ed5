"""Evaluation of runs: ranx's metrics per query, their means and confidence intervals, and paired tests.

The only module that imports ranx, which takes 2 s to import and 13 s to compile at its first use.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from threading import Lock
from typing import Any

import numpy as np

from citerec.config import RANKING_DEPTH
from citerec.errors import ConfigError
from citerec.evaluation.significance import (
    bootstrap_interval,
    holm,
    randomisation_test,
    student_test,
)
from citerec.files.arrays import Floats, batched
from citerec.files.trec import Qrels, Run

METRICS = (
    "f1@20",
    "f1@20 (of means)",
    "mrr",
    "recall@100",
    "recall@1000",
    "ndcg@20",
    "map",
)
PER_QUERY = tuple(
    "f1@20 mrr recall@100 recall@1000 ndcg@20 map precision@20 recall@20".split()
)
"""The metrics of each query; `f1@20 (of means)` is computed from the means of the last two."""

_SHORT = {
    "r": "recall",
    "p": "precision",
    "rr": "mrr",
    "ap": "map",
    "rprec": "r-precision",
}
# those of ranx for gold without negatives; a cut is at most `RANKING_DEPTH`, `-l2` counts grades from 2 alone
_CUT = r"(hits|hit_rate|precision|recall|f1|mrr|map|n?dcg(_burges)?)(@([1-9]\d{0,2}|1000))?"
_FORM = re.compile(rf"({_CUT}|r-precision|rbp\.\d+)(-l[1-9])?")
_QUERIES_AT_ONCE = 512  # 8 MB of ranks
# numba's work queue, which ranx uses, ends the process if two threads enter it
_RANX = Lock()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemResult:
    """The metrics of one run."""

    name: str
    metrics: Mapping[str, float]  # by `METRICS`, then by further metrics
    ci95: Mapping[str, tuple[float, float]]  # likewise
    # by `PER_QUERY` and further metrics; by rising query id
    per_query: Mapping[str, Floats]
    dropped: int  # queries of the run that are not in the qrels
    missing: int  # queries of the qrels with an empty or no ranking; they count zero
    seconds: float | None  # duration of the run, if known


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


def metric_names(text: str) -> tuple[str, ...]:
    """Return comma-separated metrics by ranx's names, each once: `R@10` is `recall@10`.

    ConfigError if there is no such metric, or a cut is not from 1 to 1000.
    """
    names: list[str] = []
    for given in filter(None, map(str.strip, text.split(","))):
        stem, at, cut = given.lower().partition("@")
        name = f"{_SHORT.get(stem, stem)}{at}{cut}"
        if not _FORM.fullmatch(name):
            raise ConfigError(
                f"no metric {given!r}; such as R@10, nDCG@10, P@5, F1@10, MRR@10, MAP, hit_rate@10, r-precision, "
                f"rbp.95, with a cut from 1 to {RANKING_DEPTH} (bpref needs negatives)"
            )
        names.append(name)
    return tuple(dict.fromkeys(names))


def per_query(run: Run, qrels: Qrels, extra: Sequence[str] = ()) -> dict[str, Floats]:
    """Measure a run for each query of the qrels, on the top 1000: by each name in `PER_QUERY` and `extra`.

    Each array has shape (n,), by rising query id. A query without a ranking scores zero; rankings of other queries are
    ignored. Precision@20 divides by 20 also where fewer papers are ranked. The gain of nDCG is the grade, as in
    trec_eval; all other metrics take each grade from 1 as relevant. ValueError if there is no query, or a query without
    gold.
    """
    from ranx.meta.evaluate import extract_metric_and_params
    from ranx.metrics import metric_switch

    if not qrels or not all(qrels.values()):
        raise ValueError(
            "qrels need at least one query, and every query at least one paper"
        )
    names = _columns(extra)
    qids = sorted(qrels)
    parts: dict[str, list[Floats]] = {name: [] for name in names}
    for part in batched(qids, _QUERIES_AT_ONCE):
        gold, ranked = _as_arrays(run, qrels, part)
        with _RANX:
            for name in names:
                # depth: 0 for all; the persistence of rbp
                metric, depth, least = extract_metric_and_params(name)
                measure: Any = metric_switch(metric)
                parts[name].append(measure(gold, ranked, depth, least))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def combine(means: Floats, extra: Sequence[str] = ()) -> Floats:
    """Compute `METRICS` and `extra` from means of the metrics of each query, both on the last axis.

    The F1 of means is 2PR / (P + R) with P and R the mean precision@20 and recall@20, as Anserini publishes it.
    """
    by_name: dict[str, Floats] = dict(
        zip(_columns(extra), np.moveaxis(means, -1, 0), strict=True)
    )
    p = by_name["precision@20"]
    r = by_name["recall@20"]
    f1 = np.divide(2 * p * r, p + r, out=np.zeros_like(p), where=p + r > 0)
    by_name["f1@20 (of means)"] = f1
    return np.stack([by_name[name] for name in (*METRICS, *extra)], axis=-1)


def evaluate_run(
    run: Run,
    qrels: Qrels,
    *,
    rng: np.random.Generator,
    seconds: float | None = None,
    extra: Sequence[str] = (),
) -> SystemResult:
    """Measure one run, with 95 % bootstrap confidence intervals over queries.

    Every query of the qrels counts; those of the run that are not among them are dropped. `rng` draws the resamples:
    with a new generator of the same seed for each run of a report, all runs have the same resamples, and an interval
    does not depend on the other runs. `extra` are metrics by `metric_names`, none of `METRICS`. ConfigError if run and
    qrels share no query.
    """
    shared = {qid: ranking for qid, ranking in run.rankings.items() if qid in qrels}
    if run.rankings and not shared:
        raise ConfigError(
            f"run {run.name!r} is for another query set: it has e.g. {min(run.rankings)!r}, "
            f"the qrels have e.g. {min(qrels)!r}"
        )
    scores = per_query(run, qrels, extra)
    names = (*METRICS, *extra)
    table = np.stack([*scores.values()], axis=1)
    means = combine(table.mean(axis=0), extra)
    bounds = bootstrap_interval(table, partial(combine, extra=extra), rng=rng)
    return SystemResult(
        name=run.name,
        metrics=dict(zip(names, means.tolist(), strict=True)),
        ci95={
            name: (a, b) for name, (a, b) in zip(names, bounds.T.tolist(), strict=True)
        },
        per_query=scores,
        dropped=len(run.rankings) - len(shared),
        missing=len(qrels) - sum(map(bool, shared.values())),
        seconds=seconds,
    )


def compare(
    systems: Sequence[SystemResult],
    *,
    rng: np.random.Generator,
    extra: Sequence[str] = (),
) -> list[Comparison]:
    """Test every pair of systems in every metric: metric by metric, the pairs in the order of `systems`."""
    tables = {
        system.name: np.stack([*system.per_query.values()], axis=1)
        for system in systems
    }
    pairs = list(combinations(systems, 2))
    statistic = partial(combine, extra=extra)
    p_fisher = [
        randomisation_test(tables[a.name], tables[b.name], statistic, rng=rng)
        for a, b in pairs
    ]
    comparisons: list[Comparison] = []
    for column, metric in enumerate((*METRICS, *extra)):
        p_metric = [float(p[column]) for p in p_fisher]
        for (a, b), p, corrected in zip(pairs, p_metric, holm(p_metric), strict=True):
            is_mean = metric in a.per_query
            comparisons.append(
                Comparison(
                    a=a.name,
                    b=b.name,
                    metric=metric,
                    difference=b.metrics[metric] - a.metrics[metric],
                    p_student=student_test(a.per_query[metric], b.per_query[metric])
                    if is_mean
                    else None,
                    p_fisher=p,
                    p_holm=corrected,
                )
            )
    return comparisons


def _columns(extra: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*PER_QUERY, *extra)))


def _as_arrays(run: Run, qrels: Qrels, qids: Sequence[str]) -> tuple[Floats, Floats]:
    """Convert rankings to arrays for ranx: gold papers are numbered from 0, every other paper is -1.

    ranx would number papers by `hash(docid)` as float64, which drops bits and differs between processes, and takes
    typed lists that need 20 s to compile. Its metrics use the order of the rows, not the scores, so equal scores keep
    the order of the ranking.

    Returns gold (n, most gold, 2) and ranked (n, 1000, 2): number, and grade or score. Both are padded with -1; ranx
    drops entries of grade -1. Gold is in the order of an ideal ranking, by falling grade: ranx takes it for that.
    """
    gold = np.full((len(qids), max(len(qrels[qid]) for qid in qids), 2), -1.0)
    ranked = np.full((len(qids), RANKING_DEPTH, 2), -1.0)
    for row, qid in enumerate(qids):
        grades = qrels[qid]
        best_first = sorted(grades, key=lambda docid: -grades[docid])
        numbers = {docid: number for number, docid in enumerate(best_first)}
        gold[row, : len(numbers), 0] = range(len(numbers))
        gold[row, : len(numbers), 1] = [grades[docid] for docid in best_first]
        if ranking := run.rankings.get(qid):
            top = [numbers.get(docid, -1) for docid in ranking.ids[:RANKING_DEPTH]]
            ranked[row, : len(top), 0] = top
    return gold, ranked
