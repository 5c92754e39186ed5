"""A row that recommends: a system answers the queries of a split."""

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.config import FuseMethod
from citerec.evaluate.catalogue import RANKED, RERANKED, bm25_of, fuse_of, read_by
from citerec.evaluate.metrics import SystemResult, evaluate_run
from citerec.evaluate.protocol import EvalConfig, EvalSet, load_task
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.lab.experiment.models import index_of, ranker_of, reranker_of
from citerec.lab.experiment.outcome import Outcome, Verdict, judge
from citerec.lab.experiment.row import Experiment
from citerec.provenance import provenance
from citerec.rank.features import Group
from citerec.rank.ranker import open_ranker
from citerec.retrieve.bm25 import resolve
from citerec.types import Progress

PAIRED = ("f1@20", "mrr")  # kept for each query, so that rows can be compared in pairs
DIGITS = 5


def recommend(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Run the system of a row and measure it; `run_experiment` says what it raises."""
    index = index_of(experiment, indexes, progress)
    reranker = reranker_of(experiment, index, progress)
    ranker = ranker_of(experiment, index, indexes, progress)
    setting = _setting(experiment, reranker, ranker)
    task = load_task(index, experiment.split, experiment.rules)
    systems = Systems(index, task, setting, progress=progress)
    run, seconds = systems.run(experiment.system)
    measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), seconds=seconds)
    verdict, why = judge(experiment.expect, measured.metrics)
    settings = _settings(experiment, index, setting, systems)
    result = _result(experiment, measured, verdict, task, settings)
    return Outcome(experiment, verdict, why, measured.metrics, result, run, task)


def paired(measured: SystemResult, task: EvalSet) -> dict[str, Any]:
    """Return what two rows are compared by: figures of each query, by rising query id, and what names queries and gold.

    The ids themselves stay out: a result is figures alone.
    """
    asked = orjson.dumps([[qid, *sorted(task.qrels[qid])] for qid in sorted(task.qrels)])
    among = orjson.dumps([rule.year_max for rule in task.eligible])
    digest = hashlib.sha256(asked + among).hexdigest()
    figures = {name: measured.per_query[name].round(DIGITS).tolist() for name in PAIRED}
    return {"queries_sha256": digest, **figures}


def _setting(experiment: Experiment, reranker: str | None, ranker: str) -> EvalConfig:
    weight = None if experiment.system in RANKED else 1
    return EvalConfig(
        bm25=experiment.bm25,
        fuse=replace(experiment.fuse, method=FuseMethod.WEIGHTED),
        rerank=experiment.rerank.config(reranker, weight) if reranker else None,
        candidates=experiment.candidates,
        ranker=ranker,
        disabled_features=tuple(map(Group, experiment.disabled_features)),
        known_graph=experiment.known_graph,
    )


def _settings(
    experiment: Experiment, index: IndexFolder, setting: EvalConfig, systems: Systems
) -> dict[str, Any]:
    """Return with what a row was run."""
    found_by = read_by(experiment.system, index, setting)  # the system itself, unless it reranks
    reranks = experiment.system in RERANKED
    reads = reranks or (experiment.system in RANKED and setting.rerank)
    cascade = systems.cascade_of(experiment.system) if reads else None
    bm25, fuse = bm25_of(found_by, setting), fuse_of(found_by, setting)
    return {
        "system": experiment.system,
        "bm25": asdict(resolve(bm25, index)) if bm25 else None,  # as it was searched with
        "encoder": index.manifest.settings["encoder"],
        "fuse": asdict(fuse) if fuse else None,
        "candidates": found_by if reranks else None,
        "rerank": [stage.as_json() for stage in cascade.stages] if cascade else None,
        "ranker": _told_ranker(experiment, setting),
        "known_graph": experiment.known_graph,
        "rules": asdict(experiment.rules),
        "corpus_sha256": index.manifest.corpus["sha256"],
    }


def _told_ranker(experiment: Experiment, setting: EvalConfig) -> dict[str, Any] | None:
    """Return which ranker ranked, and its sha256; None if none did."""
    if experiment.system not in RANKED:
        return None
    ranker = open_ranker(Path(setting.ranker), RANKED[experiment.system])
    learned = [Path(corpus).name for corpus in experiment.ranker_corpora]
    disabled_features = [*experiment.disabled_features] or None
    return {
        "model": ranker.shown,
        "weights": ranker.fingerprint,
        "learned_from": learned or None,
        "disabled_features": disabled_features,
    }


def _result(
    experiment: Experiment,
    measured: SystemResult,
    verdict: Verdict,
    task: EvalSet,
    settings: dict[str, Any],
) -> dict[str, Any]:
    return {
        "row": experiment.path.name,
        "corpus": Path(experiment.corpus).name,
        "split": experiment.split,
        "queries": len(task.queries),
        "left_out": dict(task.left_out),
        "metrics": measured.metrics,
        "ci95": measured.ci95,
        "seconds": measured.seconds,
        "expect": dict(experiment.expect),
        "verdict": str(verdict),
        "per_query": paired(measured, task),
        "provenance": provenance(settings),
    }
