"""Runs one row of a results table, and holds it against what it should give."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.build import BuildConfig, build_index
from citerec.config import FuseMethod
from citerec.corpus.queries import open_queries, shipped_queries
from citerec.corpus.readers.source import find_source, reading, sha256_of
from citerec.corpus.splits import SPLITS, read_ids, shipped_splits
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.encoder import open_encoder
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError, writing
from citerec.evaluate.catalogue import RANKED, RERANKED, bm25_of, fuse_of, read_by
from citerec.evaluate.metrics import SystemResult, evaluate_run
from citerec.evaluate.protocol import Setting, Task, load_task
from citerec.evaluate.systems import Systems
from citerec.experiment.row import Experiment
from citerec.folder import IndexFolder, open_index
from citerec.manifest import NAME
from citerec.provenance import provenance
from citerec.rank.features import Group
from citerec.rank.ranker import DEFAULT, open_ranker
from citerec.rerank.opening import OWN
from citerec.retrieve.bm25 import resolve
from citerec.types import Progress, untold

OK_WITHIN, NEAR_WITHIN = 0.002, 0.01  # of an expected value, either way


class Verdict(StrEnum):
    """How a row came out."""

    OK = "OK"
    NEAR = "near"
    FAIL = "FAIL"
    NOT_RUN = "not run here"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running a row gave."""

    experiment: Experiment
    verdict: Verdict
    why: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    result: Mapping[str, Any] = field(default_factory=dict[str, Any])


def run_experiment(experiment: Experiment, indexes: Path, tell: Progress = untold) -> Outcome:
    """Run a row; where its corpus is not here, that is said, and is no failure.

    Args:
        experiment: The row.
        indexes: Where indexes lie; that of the row's corpus is built if there is none, and the row's models
            trained.
        tell: Is told how far that is.

    Raises:
        ConfigError: If the index is of another corpus or of other splits.
        CiterecError: Whatever else keeps a corpus that is here from being indexed or searched.
    """
    corpus = Path(experiment.corpus)
    with reading(corpus):
        for path in (corpus, *map(Path, experiment.ranker_corpora)):
            if not path.exists():
                return Outcome(experiment, Verdict.NOT_RUN, f"{path} is not here")
    index = _index_of(experiment, indexes, tell)
    reranker, ranker = _reranker(experiment, index, tell), _ranker(experiment, index, indexes, tell)
    setting = _setting(experiment, reranker, ranker)
    task = load_task(index, experiment.split)
    systems = Systems(index, task, setting, progress=tell)
    run, seconds = systems.run(experiment.system)
    measured = evaluate_run(run, task.qrels, rng=np.random.default_rng(0), seconds=seconds)
    verdict, why = judge(experiment.expect, measured.metrics)
    settings = _settings(experiment, index, setting, systems)
    result = _result(experiment, measured, verdict, task, settings)
    return Outcome(experiment, verdict, why, measured.metrics, result)


def judge(expect: Mapping[str, float], metrics: Mapping[str, float]) -> tuple[Verdict, str]:
    """Hold metrics against what they should be: OK within 0.002, near within 0.01, else FAIL."""
    gaps = {name: abs(metrics[name] - value) for name, value in expect.items()}
    if not gaps or max(gaps.values()) <= OK_WITHIN:
        return Verdict.OK, ""
    worst = max(gaps, key=lambda name: gaps[name])
    why = f"{worst} is {metrics[worst]:.4f}, expected {expect[worst]:.4f}"
    return (Verdict.NEAR if gaps[worst] <= NEAR_WITHIN else Verdict.FAIL), why


def write_result(outcome: Outcome, folder: Path) -> Path:
    """Write what a row gave to `<folder>/<table>/<row>.json`; return the file.

    Raises:
        OutputError: If it cannot be written.
    """
    experiment = outcome.experiment
    path = folder / experiment.table / f"{experiment.path.stem}.json"
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(outcome.result, option=options))
    return path


def _setting(experiment: Experiment, reranker: str | None, ranker: str) -> Setting:
    weight = None if experiment.system in RANKED else 1
    return Setting(
        bm25=experiment.bm25,
        fuse=replace(experiment.fuse, method=FuseMethod.WEIGHTED),
        rerank=experiment.rerank.config(reranker, weight) if reranker else None,
        candidates=experiment.candidates,
        ranker=ranker,
        lacking=tuple(map(Group, experiment.lacking)),
        known_graph=experiment.known_graph,
    )


def _index_of(experiment: Experiment, indexes: Path, tell: Progress) -> IndexFolder:
    """Open the index of a row; what is missing of it is made, from where it was broken off."""
    corpus, folder = Path(experiment.corpus), indexes / experiment.index_name
    if not (folder / NAME).is_file():
        build_index(corpus, folder, BuildConfig(encoder=experiment.encoder, resume=True), tell)
    index = open_index(folder)
    source = find_source(corpus)
    advice = f"rebuild it: citerec index {corpus} --index {folder} --force"
    if index.manifest.corpus["sha256"] != sha256_of(source):
        raise ConfigError(f"{folder} is of another corpus than {corpus}; {advice}")
    if not _has_splits_of(index, source.folder):
        raise ConfigError(f"{folder} asks other queries than {corpus} ships; {advice}")
    if experiment.train:
        return _embedded(index, _trained(Path(experiment.train), index, tell), tell)
    return _embedded(index, experiment.encoder, tell) if experiment.encoder else index


def _embedded(index: IndexFolder, encoder: str, tell: Progress) -> IndexFolder:
    """Embed the papers of an index, unless they are by this very encoder."""
    model = open_encoder(encoder, base=index.path)
    recorded = index.manifest.settings["encoder"]
    if recorded and Fingerprint.from_json(recorded).key == model.fingerprint.key:
        return index
    embed_anew(index.path, model, EmbedConfig(resume=True), tell)
    return open_index(index.path)


def _trained(settings: Path, index: IndexFolder, tell: Progress) -> str:
    """Train the encoder of a row on its index, unless that was done; return its folder."""
    from citerec.train.encoder.config import read_training
    from citerec.train.encoder.train import train_encoder, was_trained_so

    model, config = index.models / "encoder", read_training(settings, {})
    if not was_trained_so(model, index, config):
        train_encoder(index, model, config, resume=True, force=True, tell=tell)
    return str(model)


def _reranker(experiment: Experiment, index: IndexFolder, tell: Progress) -> str | None:
    """Return the reranker that a row names; it is trained on the index, unless that was done.

    It lies beside the index's own, which `recommend` reads: a row changes nothing of what that recommends.
    """
    if not experiment.train_reranker:
        return experiment.reranker
    from citerec.train.reranker.config import read_training
    from citerec.train.reranker.train import train_reranker, was_trained_so

    settings = Path(experiment.train_reranker)
    config = read_training(settings, {})
    own = index.models / OWN
    beside = own.with_name(f"{OWN}-{settings.stem}")
    for model in (own, beside):
        if was_trained_so(model, index, config):
            return str(model)
    train_reranker(index, beside, config, resume=True, force=True, tell=tell)
    return str(beside)


def _ranker(experiment: Experiment, index: IndexFolder, indexes: Path, tell: Progress) -> str:
    """Return the ranker of a row that ranks; it is trained on the row's corpora, unless that was done.

    What learned from other corpora is not the index's own: `recommend` would take it for that.
    """
    if experiment.system not in RANKED or not experiment.train_ranker:
        return experiment.ranker or str(DEFAULT)
    from citerec.train.ranker.config import read_training
    from citerec.train.ranker.train import train_ranker, was_trained_so

    settings = Path(experiment.train_ranker)
    config = read_training(settings, {})
    corpora = experiment.ranker_corpora or (experiment.corpus,)
    learned = [_index_of(replace(experiment, corpus=corpus), indexes, tell) for corpus in corpora]
    model = index.models / f"ranker-{settings.stem}"
    apart = [] if any(one.path == index.path for one in learned) else [index]
    if not was_trained_so(model, learned, config):
        train_ranker(learned, model, config, apart=apart, force=True, tell=tell)
    return str(model)


def _has_splits_of(index: IndexFolder, corpus: Path) -> bool:
    """Whether the index asks what the corpus ships: the checksum of a corpus covers its papers alone."""
    queries = shipped_queries(corpus)
    if queries is not None:
        return queries == open_queries(index.splits)
    shipped = shipped_splits(corpus)
    if shipped is None:
        return index.manifest.settings["splits"] != "shipped"
    return shipped == {name: read_ids(index.splits / f"{name}.ids") for name in SPLITS}


def _settings(
    experiment: Experiment, index: IndexFolder, setting: Setting, systems: Systems
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
        "corpus_sha256": index.manifest.corpus["sha256"],
    }


def _told_ranker(experiment: Experiment, setting: Setting) -> dict[str, Any] | None:
    """Return which ranker ranked, and its sha256; None if none did."""
    if experiment.system not in RANKED:
        return None
    ranker = open_ranker(Path(setting.ranker), RANKED[experiment.system])
    learned = [Path(corpus).name for corpus in experiment.ranker_corpora]
    lacking = [*experiment.lacking] or None
    return {
        "model": ranker.shown,
        "weights": ranker.fingerprint,
        "learned_from": learned or None,
        "lacking": lacking,
    }


def _result(
    experiment: Experiment,
    measured: SystemResult,
    verdict: Verdict,
    task: Task,
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
