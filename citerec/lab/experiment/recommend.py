"""Rows of the kind `recommend`: a system answers the queries of a split."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

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
from citerec.rank.ltr import open_ranker
from citerec.retrieve.bm25 import resolve
from citerec.types import Progress


def recommend(experiment: Experiment, indexes: Path, progress: Progress) -> Outcome:
    """Run the system of a row and measure it; see `run_experiment` for the errors."""
    index = index_of(experiment, indexes, progress)
    reranker = reranker_of(experiment, index, progress)
    ranker = ranker_of(experiment, index, indexes, progress)
    config = _eval_config(experiment, reranker, ranker)
    task = load_task(index, experiment.split, experiment.rules)
    systems = Systems(index, task, config, progress=progress)
    run, seconds = systems.run(experiment.system)
    measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), seconds=seconds)
    verdict, why = judge(experiment.expect, measured.metrics)
    settings = _settings(experiment, index, config, systems)
    result = _result(experiment, measured, verdict, task, settings)
    return Outcome(experiment, verdict, why, measured.metrics, result)


def _eval_config(experiment: Experiment, reranker: str | None, ranker: str) -> EvalConfig:
    weight = None if experiment.system in RANKED else 1
    return EvalConfig(
        bm25=experiment.bm25,
        fuse=experiment.fuse.replace(method=FuseMethod.WEIGHTED),
        rerank=experiment.rerank.config(reranker, weight) if reranker else None,
        candidates=experiment.candidates,
        ranker=ranker,
        disabled_features=tuple(map(Group, experiment.disabled_features)),
        known_graph=experiment.known_graph,
    )


def _settings(
    experiment: Experiment, index: IndexFolder, config: EvalConfig, systems: Systems
) -> dict[str, Any]:
    """Return the settings of a run for its provenance."""
    retriever = read_by(
        experiment.system, index, config
    )  # the system itself, unless it reranks another one
    reranks = experiment.system in RERANKED
    uses_reranker = reranks or (experiment.system in RANKED and config.rerank)
    cascade = systems.cascade_of(experiment.system) if uses_reranker else None
    bm25, fuse = bm25_of(retriever, config), fuse_of(retriever, config)
    return {
        "system": experiment.system,
        "bm25": resolve(bm25, index).model_dump() if bm25 else None,  # with the resolved stop words
        "encoder": index.manifest.settings["encoder"],
        "fuse": fuse.model_dump() if fuse else None,
        "candidates": retriever if reranks else None,
        "rerank": [reranker.as_json() for reranker in cascade.rerankers] if cascade else None,
        "ranker": _ranker_facts(experiment, config),
        "known_graph": experiment.known_graph,
        "rules": asdict(experiment.rules),
        "corpus_sha256": index.manifest.corpus["sha256"],
    }


def _ranker_facts(experiment: Experiment, config: EvalConfig) -> dict[str, Any] | None:
    """Return name and sha256 of the learning-to-rank model; None if the system has none."""
    if experiment.system not in RANKED:
        return None
    ranker = open_ranker(Path(config.ranker), RANKED[experiment.system])
    corpora = [Path(corpus).name for corpus in experiment.ranker_corpora]
    disabled_features = [*experiment.disabled_features] or None
    return {
        "model": ranker.shown,
        "weights": ranker.fingerprint,
        "learned_from": corpora or None,
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
        "provenance": provenance(settings),
    }
