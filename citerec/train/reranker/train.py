"""Trains a cross-encoder on the citations of an index: candidates, the loop, calibration, the model folder."""

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
from citerec.train.reranker.config import (
    BY_ENCODER,
    BY_FUSION,
    Candidates,
    RerankerTraining,
)
from citerec.train.reranker.dev import Dev, dev_task, load_dev
from citerec.train.reranker.found import CandidateLists, Finder, Labelled, labelled, with_teacher
from citerec.train.reranker.modelfolder import write_model
from citerec.train.reranker.net import load_base
from citerec.train.reranker.setup import Point, RerankerSetup, curve, dev_scores, extent
from citerec.train.reranker.teach import taught, weights_of_teacher
from citerec.train.schedule import plan_steps, trainer_arguments
from citerec.train.start import check_installed, discard, open_workspace, told_base
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

FOUND, TEACHER = "candidates", "teacher"  # that the training folder keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerReport:
    """What a training made."""

    output: Path
    history: tuple[Point, ...]  # the first is the order of the candidates
    best: int  # the update whose weights were kept
    queries: int
    examples: int  # in an epoch


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
    """Train a cross-encoder on the citations of an index; the model folder appears whole, at the end.

    Until then there is a training folder beside it, from which a training that was cut short can go on.

    Args:
        index: Whose train queries it learns from.
        output: The model folder to be.
        config: How.
        resume: Go on with a training that was cut short, to the same weights as if it had not been.
        force: Replace a model that is there.
        progress: Receives how far each kind of work is.
        log: Receives what is worth a line: the loss, each evaluation, and what to know before.

    Raises:
        ConfigError: If there is nothing to learn from, or a setting cannot be.
        ModelError: If the base model or the teacher cannot be had or opened.
        ModelExistsError: If there is a model at `output`, without `force`.
        MissingExtraError: If what trains is not installed.
        OutputError: If the folders cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_installed(seed=config.seed, threads=config.threads)
    workspace = Workspace.beside(output)
    with writing(workspace.folder):
        data, task = _some(load_training_data(index), config), dev_task(index, config)
        arguments = trainer_arguments(config.schedule, workspace, has_dev=task is not None)
        first = arguments.process_index == 0
        if not first:  # of several the first one speaks
            log, progress = discard, discard
        with arguments.main_process_first():
            source, parts = _base(index, config, log)
            plan = _plan(index, config, source, log)
            going_on = open_workspace(workspace, plan, resume=resume, first=first, log=log)
            finder = Finder(data, config, log)
            known = _labelled(data, config, finder, workspace, progress, log)
            dev = load_dev(index, task, config, finder) if task else None
        course = RerankerSetup(
            parts, known, config, dev, workspace, progress, log, tokenizer=plan["tokenizer"]
        )
        history = _run(course, arguments, going_on)
        best = _best(history, config, last=course.updated)
    if first:
        with building(output) as folder:
            calibrated = _calibrated(parts, workspace, dev, best)
            write_model(
                folder, calibrated, _story(plan, source, course, history, best), _more(plan, course)
            )
        workspace.remove()
    return _report(output, course, history, best)


def was_trained_so(model: Path, index: IndexFolder, config: RerankerTraining) -> bool:
    """Return whether there is a model that was trained on these papers, splits and vectors, with these settings.

    Neither its base model nor its teacher, where they lie in folders that are there, may have changed since.
    """
    told = modelfolder.read_training(model)
    if not modelfolder.was_trained_so(model, index, _told(config)):
        return False
    same_teacher = modelfolder.has_weights(config.teacher, index, told.get("taught_by"))
    return same_teacher and told.get("encoder") == _encoder(index, config)


def _told(config: RerankerTraining) -> dict[str, Any]:
    """Return the settings as the model folder tells them: of a teacher in a folder its name alone."""
    teacher = Path(config.teacher)
    return config.to_json() | ({"teacher": teacher.name} if teacher.is_dir() else {})


def _base(index: IndexFolder, config: RerankerTraining, log: Log) -> tuple[Source, RerankerParts]:
    source = find_model(config.model, base=index.path, log=log)
    if source.adapter:
        raise ConfigError(
            f"{config.model} is a model with an adapter, which cannot be trained further; name its base with --model"
        )
    return source, load_base(source.folder, config)


def _some(data: TrainingData, config: RerankerTraining) -> TrainingData:
    """Return the train queries that are learned from."""
    if not config.queries or config.queries >= len(data.queries):
        return data
    rng = np.random.default_rng([config.seed, 5])
    return data.only(np.sort(rng.choice(len(data.queries), config.queries, replace=False)))


def _labelled(
    data: TrainingData,
    config: RerankerTraining,
    finder: Finder,
    workspace: Workspace,
    progress: Progress,
    log: Log,
) -> Labelled:
    """Return the candidates and what is known of them; what was found before is not searched again."""
    names = ("indptr", "indices", "scores", "similarity", "ranks")
    if kept := workspace.saved(FOUND, *names):
        found = CandidateLists.from_parts(kept)
    else:
        found = finder.train(progress)
        workspace.save(FOUND, found.parts)
    known = labelled(data, found, config)
    if not config.has_teacher or config.teacher in (BY_ENCODER, BY_FUSION):
        return known
    if kept := workspace.saved(TEACHER, "scores"):
        return with_teacher(known, kept["scores"])
    scores = taught(known, config, progress, log)
    workspace.save(TEACHER, {"scores": scores})
    return with_teacher(known, scores)


def _plan(index: IndexFolder, config: RerankerTraining, source: Source, log: Log) -> dict[str, Any]:
    """Return what must be the same for a training to go on."""
    return {
        **config.to_json(),
        "corpus": index.manifest.corpus["sha256"],
        "splits": splits_sha256(index),
        "weights": sha256_of_files(weights_files(source.folder)),
        "tokenizer": sha256_of_files(tokenizer_files(source.folder)),
        "encoder": _encoder(index, config),
        "taught_by": weights_of_teacher(index, config, log),
    }


def _encoder(index: IndexFolder, config: RerankerTraining) -> str | None:
    """Return the sha256 of the encoder whose vectors have a say in what is learned; None if none has."""
    recorded = index.manifest.settings.get("encoder")
    asked = config.candidates is Candidates.FUSED or config.teacher == BY_ENCODER
    return recorded["weights"] if recorded and asked else None


def _run(course: RerankerSetup, arguments: Any, going_on: bool) -> tuple[Point, ...]:
    """Train; return what was measured, first the order of the candidates."""
    loop = course.loop(on_cpu=arguments.device.type == "cpu")
    updates = plan_steps(arguments, course.config.schedule, len(loop.examples))
    course.log(extent(updates, course.config))
    before = course.before()
    course.entries.extend(run_loop(loop, arguments, going_on))
    return (*before, *Point.all(course.entries))


def _best(history: Sequence[Point], config: RerankerTraining, *, last: int) -> int:
    """Return the update that is best on dev, of equal ones the first; the last one if nothing was measured."""
    interpolate_scores = {p.step: p.merit(config.selection_metric) for p in history if p.step}
    known = {step: merit for step, merit in interpolate_scores.items() if merit is not None}
    return max(known, key=lambda step: known[step]) if known else last


def _calibrated(
    parts: RerankerParts, workspace: Workspace, dev: Dev | None, best: int
) -> RerankerParts:
    """Return the model with its calibration: that of the scores it gave the dev candidates."""
    scores = dev_scores(workspace, best)
    if dev is None or scores is None:
        return parts
    scale, offset = platt(scores, dev.cited)
    return replace(parts, spec=replace(parts.spec, scale=scale, offset=offset))


def _story(
    plan: Mapping[str, Any],
    source: Source,
    course: RerankerSetup,
    history: Sequence[Point],
    best: int,
) -> TrainingRecord:
    known, index = course.known, course.known.data.index
    base = told_base(source)
    settings = _told(course.config) | {"model": base}
    return TrainingRecord(
        base=base,
        weights=plan["weights"],
        index=index.manifest.name,
        corpus=index.manifest.corpus["sha256"],
        splits=splits_sha256(index),
        counts={
            "papers": len(index.papers),
            "train_queries": len(known.data.queries),
            "candidates": len(known.cited),
            "cited_candidates": int(known.cited.sum()),
            "examples_an_epoch": len(course.examples),
        },
        settings=settings,
        history=[asdict(point) for point in history],
        best=best,
        provenance=provenance(settings),
    )


def _more(plan: Mapping[str, Any], course: RerankerSetup) -> Mapping[str, Any]:
    told = {name: plan[name] for name in ("encoder", "taught_by")}
    return {**told, "loss_curve": curve(course.entries)}


def _report(
    output: Path, course: RerankerSetup, history: tuple[Point, ...], best: int
) -> RerankerReport:
    """Return what came of it; say so if the order of the candidates was better."""
    selection_metric = course.config.selection_metric
    interpolate_scores = {point.step: point.merit(selection_metric) for point in history}
    before, after = interpolate_scores.get(0), interpolate_scores.get(best)
    if before is not None and after is not None and after <= before:
        course.log(
            f"the training did not help: dev {selection_metric} {abs(before):.4f} as the candidates were found, "
            f"{abs(after):.4f} as the model orders them"
        )
    return RerankerReport(
        output=output,
        history=history,
        best=best,
        queries=len(course.known.data.queries),
        examples=len(course.examples),
    )
