"""Trains a cross-encoder on the citations of an index: candidates, training loop, calibration, model folder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from citerec.atomic import building
from citerec.cache import sha256_of_files
from citerec.encode.model import tokenizer_files, weights_files
from citerec.encode.source import Source, find_model
from citerec.errors import ConfigError, writing
from citerec.folder import IndexFolder
from citerec.provenance import provenance
from citerec.rerank.model import RerankerParts
from citerec.rerank.spec import NAME as SPEC
from citerec.train import modelfolder
from citerec.train.data import TrainingData, load_training_data, splits_sha256
from citerec.train.loop import run_loop
from citerec.train.modelfolder import TrainingRecord, check_target
from citerec.train.reranker.calibrate import platt
from citerec.train.reranker.candidates import (
    CandidateFinder,
    CandidateLists,
    LabelledCandidates,
    labelled,
    with_teacher,
)
from citerec.train.reranker.config import (
    BY_ENCODER,
    BY_FUSION,
    CandidateSource,
    RerankerTraining,
)
from citerec.train.reranker.dev import RerankerDev, dev_task, load_dev
from citerec.train.reranker.modelfolder import write_model
from citerec.train.reranker.net import load_base
from citerec.train.reranker.setup import Point, RerankerSetup, curve, dev_scores, planned_updates
from citerec.train.reranker.teach import taught, weights_of_teacher
from citerec.train.schedule import plan_steps, trainer_arguments
from citerec.train.start import base_name, check_installed, discard, open_workspace
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

FOUND, TEACHER = "candidates", "teacher"  # names in the training folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerReport:
    """The result of the training of a cross-encoder."""

    output: Path
    history: tuple[Point, ...]  # the first is the first-stage ranking
    best: int  # the update of the saved weights
    queries: int
    examples: int  # per epoch


def train_reranker(
    index: IndexFolder,
    output: Path,
    config: RerankerTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> RerankerReport:
    """Train a cross-encoder on the citations of an index; the model folder is created complete at the end.

    During the training its state is in a training folder next to the model folder; an interrupted training can be
    resumed from it.

    Args:
        index: Its train queries are the training data.
        output: The model folder to create.
        config: The settings.
        resume: Continue an interrupted training; the weights are the same as without the interruption.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives a line for each loss and evaluation, and warnings.

    Raises:
        ConfigError: If there is nothing to train on, or a setting is invalid.
        ModelError: If the base model or the teacher cannot be opened.
        ModelExistsError: If there is a model at `output` and `force` is false.
        MissingExtraError: If a package of the extra `train` is not installed.
        OutputError: If the folders cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_installed(seed=config.seed, threads=config.threads)
    workspace = Workspace.for_model(output)
    with writing(workspace.folder):
        data, task = _sampled_queries(load_training_data(index), config), dev_task(index, config)
        arguments = trainer_arguments(config.schedule, workspace, has_dev=task is not None)
        first = arguments.process_index == 0
        if not first:  # only the first process logs
            log, progress = discard, discard
        with arguments.main_process_first():
            source, parts = _base(index, config, log)
            plan = _plan(index, config, source, log)
            resumed = open_workspace(workspace, plan, resume=resume, first=first, log=log)
            finder = CandidateFinder(data, config, log)
            labels = _labelled(data, config, finder, workspace, progress, log)
            dev = load_dev(index, task, config, finder) if task else None
        setup = RerankerSetup(
            parts, labels, config, dev, workspace, progress, log, tokenizer=plan["tokenizer"]
        )
        history = _run(setup, arguments, resumed)
        best = _best(history, config, last=setup.updates)
    if first:
        with building(output) as folder:
            calibrated = _calibrated(parts, workspace, dev, best)
            write_model(
                folder, calibrated, _record(plan, source, setup, history, best), _more(plan, setup)
            )
        workspace.remove()
    return _report(output, setup, history, best)


def was_trained_so(model: Path, index: IndexFolder, config: RerankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors with these settings.

    Its base model and its teacher must have the recorded weights if they are in existing folders.
    """
    record = modelfolder.read_training(model)
    if not modelfolder.was_trained_so(model, index, _recorded_settings(config)):
        return False
    same_teacher = modelfolder.has_weights(config.teacher, index, record.get("taught_by"))
    return same_teacher and record.get("encoder") == _encoder_weights(index, config)


def _recorded_settings(config: RerankerTraining) -> dict[str, Any]:
    """Return the settings as they are recorded: only the name of a teacher in a folder."""
    teacher = Path(config.teacher)
    return config.to_json() | ({"teacher": teacher.name} if teacher.is_dir() else {})


def _base(index: IndexFolder, config: RerankerTraining, log: Log) -> tuple[Source, RerankerParts]:
    source = find_model(config.model, base=index.path, log=log)
    if source.adapter:
        raise ConfigError(
            f"{config.model} has an adapter, which cannot be trained further; choose its base model with --model"
        )
    return source, load_base(source.folder, config)


def _sampled_queries(data: TrainingData, config: RerankerTraining) -> TrainingData:
    """Return a random sample of the train queries, or all of them."""
    if not config.queries or config.queries >= len(data.queries):
        return data
    rng = np.random.default_rng([config.seed, 5])
    return data.only(np.sort(rng.choice(len(data.queries), config.queries, replace=False)))


def _labelled(
    data: TrainingData,
    config: RerankerTraining,
    finder: CandidateFinder,
    workspace: Workspace,
    progress: Progress,
    log: Log,
) -> LabelledCandidates:
    """Return the labelled candidates; candidates and teacher scores in the training folder are reused."""
    names = ("indptr", "indices", "scores", "similarity", "ranks")
    if saved := workspace.saved(FOUND, *names):
        candidates = CandidateLists.from_arrays(saved)
    else:
        candidates = finder.train(progress)
        workspace.save(FOUND, candidates.arrays)
    result = labelled(data, candidates, config)
    if not config.has_teacher or config.teacher in (BY_ENCODER, BY_FUSION):
        return result
    if saved := workspace.saved(TEACHER, "scores"):
        return with_teacher(result, saved["scores"])
    scores = taught(result, config, progress, log)
    workspace.save(TEACHER, {"scores": scores})
    return with_teacher(result, scores)


def _plan(index: IndexFolder, config: RerankerTraining, source: Source, log: Log) -> dict[str, Any]:
    """Return the facts that must be equal for a training to be resumed."""
    return {
        **config.to_json(),
        "corpus": index.manifest.corpus["sha256"],
        "splits": splits_sha256(index),
        "weights": sha256_of_files(weights_files(source.folder)),
        "tokenizer": sha256_of_files(tokenizer_files(source.folder)),
        "encoder": _encoder_weights(index, config),
        "taught_by": weights_of_teacher(index, config, log),
    }


def _encoder_weights(index: IndexFolder, config: RerankerTraining) -> str | None:
    """Return the sha256 of the encoder whose vectors the training uses; None if it uses none."""
    recorded = index.manifest.settings.get("encoder")
    uses_vectors = config.candidates is CandidateSource.FUSED or config.teacher == BY_ENCODER
    return recorded["weights"] if recorded and uses_vectors else None


def _run(setup: RerankerSetup, arguments: Any, resumed: bool) -> tuple[Point, ...]:
    """Train; return the measures, the first-stage ranking first."""
    spec = setup.trainer_spec(on_cpu=arguments.device.type == "cpu")
    updates = plan_steps(arguments, setup.config.schedule, len(spec.examples))
    setup.log(planned_updates(updates, setup.config))
    baseline = setup.baseline()
    setup.entries.extend(run_loop(spec, arguments, resumed))
    return (*baseline, *Point.all(setup.entries))


def _best(history: Sequence[Point], config: RerankerTraining, *, last: int) -> int:
    """Return the update with the best dev measure, the first of equal ones; the last update if nothing was measured."""
    measured = {p.step: p.quality(config.selection_metric) for p in history if p.step}
    available = {step: value for step, value in measured.items() if value is not None}
    return max(available, key=lambda step: available[step]) if available else last


def _calibrated(
    parts: RerankerParts, workspace: Workspace, dev: RerankerDev | None, best: int
) -> RerankerParts:
    """Return the model with the calibration of its scores of the dev candidates."""
    scores = dev_scores(workspace, best)
    if dev is None or scores is None:
        return parts
    scale, offset = platt(scores, dev.cited)
    return replace(parts, spec=replace(parts.spec, scale=scale, offset=offset))


def _record(
    plan: Mapping[str, Any],
    source: Source,
    setup: RerankerSetup,
    history: Sequence[Point],
    best: int,
) -> TrainingRecord:
    labels, index = setup.labelled, setup.labelled.data.index
    base = base_name(source)
    settings = _recorded_settings(setup.config) | {"model": base}
    return TrainingRecord(
        base=base,
        weights=plan["weights"],
        index=index.manifest.name,
        corpus=index.manifest.corpus["sha256"],
        splits=splits_sha256(index),
        counts={
            "papers": len(index.papers),
            "train_queries": len(labels.data.queries),
            "candidates": len(labels.cited),
            "cited_candidates": int(labels.cited.sum()),
            "examples_an_epoch": len(setup.examples),
        },
        settings=settings,
        history=[asdict(point) for point in history],
        best=best,
        provenance=provenance(settings),
    )


def _more(plan: Mapping[str, Any], setup: RerankerSetup) -> Mapping[str, Any]:
    facts = {name: plan[name] for name in ("encoder", "taught_by")}
    return {**facts, "loss_curve": curve(setup.entries)}


def _report(
    output: Path, setup: RerankerSetup, history: tuple[Point, ...], best: int
) -> RerankerReport:
    """Return the report; log a warning if the first-stage ranking was better."""
    selection_metric = setup.config.selection_metric
    quality = {point.step: point.quality(selection_metric) for point in history}
    before, after = quality.get(0), quality.get(best)
    if before is not None and after is not None and after <= before:
        setup.log(
            f"the training did not improve the ranking: dev {selection_metric} {abs(before):.4f} of the first stage, "
            f"{abs(after):.4f} of the model"
        )
    return RerankerReport(
        output=output,
        history=history,
        best=best,
        queries=len(setup.labelled.data.queries),
        examples=len(setup.examples),
    )
