"""Trains an encoder on the citations of an index: what is learned from, the loop, the model folder."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from citerec.atomic import building
from citerec.encode.encoder import fingerprint_of
from citerec.encode.model import Parts, load_parts
from citerec.encode.source import Source, find_model
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import EncoderSpec, Fingerprint, Pooling, Reads, Similarity, read_spec
from citerec.errors import ConfigError, writing
from citerec.folder import IndexFolder
from citerec.provenance import provenance
from citerec.train import modelfolder
from citerec.train.data import TrainingData, load_training_data, splits_sha256
from citerec.train.encoder.config import EncoderTraining, Loss, SelectionMetric
from citerec.train.encoder.dev import frozen_encoder, load_dev
from citerec.train.encoder.loop import EncoderCourse, Epoch
from citerec.train.encoder.mine import mined
from citerec.train.encoder.modelfolder import write_model
from citerec.train.encoder.signals import Signals, examples_of, told_settings
from citerec.train.lists import Lists
from citerec.train.loop import RATE, run_loop
from citerec.train.modelfolder import TrainingRecord, check_target
from citerec.train.processes import from_first
from citerec.train.schedule import plan_steps, trainer_arguments
from citerec.train.start import check_installed, discard, open_workspace, told_base
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

HARD = "hard"  # the negatives that the training folder keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What a training made."""

    output: Path
    history: tuple[Epoch, ...]  # the first is before training
    best: int  # the epoch whose weights were kept
    queries: int
    examples: int  # in an epoch


def train_encoder(
    index: IndexFolder,
    output: Path,
    config: EncoderTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> TrainingReport:
    """Train an encoder on the citations of an index; the model folder appears whole, at the end.

    Until then there is a training folder beside it, from which a training that was cut short can go on.

    Args:
        index: Whose train queries it learns from.
        output: The model folder to be.
        config: How.
        resume: Go on with a training that was cut short, to the same weights as if it had not been.
        force: Replace a model that is there.
        progress: Receives how far each kind of work is.
        log: Receives what is worth a line: each epoch, and what to know before.

    Raises:
        ConfigError: If there is nothing to learn from, or a setting cannot be.
        ModelError: If the base model cannot be had or opened.
        ModelExistsError: If there is a model at `output`, without `force`.
        MissingExtraError: If what trains is not installed.
        OutputError: If the folders cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_installed(seed=config.seed, threads=config.threads)
    workspace = Workspace.beside(output)
    with writing(workspace.folder):
        data, dev = load_training_data(index), load_dev(index, config)
        arguments = trainer_arguments(config.schedule, workspace, has_dev=dev is not None)
        if arguments.process_index:  # of several the first one speaks
            log, progress = discard, discard
        with arguments.main_process_first():
            source, parts, fingerprint = _base(index, config, log)
            plan = _plan(index, config, fingerprint)
            first = arguments.process_index == 0
            going_on = open_workspace(workspace, plan, resume=resume, first=first, log=log)
            signals = Signals(
                data=data,
                config=config,
                mine=lambda: _mined(data, config, parts, fingerprint, workspace, progress),
                log=log,
            )
            examples = examples_of(signals)
        course = EncoderCourse(
            parts=parts,
            fingerprint=fingerprint,
            examples=examples,
            dev=dev,
            workspace=workspace,
            progress=progress,
            log=log,
        )
        history = _run(course, arguments, going_on)
    if arguments.process_index == 0:
        with building(output) as folder:
            write_model(folder, parts, _story(source, course, history))
        workspace.remove()
    return _report(output, course, history)


def _run(course: EncoderCourse, arguments: Any, going_on: bool) -> tuple[Epoch, ...]:
    """Measure the base model, train it; return what became of each epoch."""
    config = course.config
    if config.loss is Loss.MEMORY and arguments.world_size > 1:
        raise ConfigError("the memory is that of one process; train over it on one device")
    plan_steps(arguments, config.schedule, len(course.examples))
    before = _before(course)
    loop = course.loop(on_cpu=arguments.device.type == "cpu", going_on=going_on)
    log = run_loop(loop, arguments, going_on)
    return (*before, *(Epoch.of(entry) for entry in log if RATE in entry))


def _report(output: Path, course: EncoderCourse, history: tuple[Epoch, ...]) -> TrainingReport:
    """Return what came of it; say so if the model was better before."""
    selection_metric = course.config.selection_metric
    best = _best(history, selection_metric)
    interpolate_scores = {epoch.epoch: _merit(epoch, selection_metric) for epoch in history}
    before, after = interpolate_scores.get(0), interpolate_scores[best]
    if before is not None and after is not None and after <= before:
        told = f"{abs(before):.4f} before, {abs(after):.4f} after"
        course.log(f"the training did not help: dev {selection_metric} {told}")
    return TrainingReport(
        output=output,
        history=history,
        best=best,
        queries=len(course.examples.data.queries),
        examples=len(course.examples),
    )


def was_trained_so(model: Path, index: IndexFolder, config: EncoderTraining) -> bool:
    """Return whether there is a model that was trained on these papers and splits, with these settings."""
    return modelfolder.was_trained_so(model, index, told_settings(config))


def _base(
    index: IndexFolder, config: EncoderTraining, log: Log
) -> tuple[Source, Parts, Fingerprint]:
    source = find_model(config.model, base=index.path, log=log)
    if getattr(source, "adapter", None):
        raise ConfigError(
            f"{config.model} is a model with an adapter, which cannot be trained further; name its base with --model"
        )
    parts = load_parts(source.folder, trained_spec(source.folder, config))
    return source, parts, fingerprint_of(source, parts)


def trained_spec(folder: Path, config: EncoderTraining) -> EncoderSpec:
    """Return how the model will read and pool: as the base model says, unless the config says otherwise.

    A base model that says nothing of it (plain BERT) gets the mean, compared by cosine.
    """
    says = any((folder / name).is_file() for name in (SPEC, "modules.json"))
    spec = (
        read_spec(folder)
        if says
        else EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE)
    )
    wanted = {
        "pooling": config.pooling,
        "similarity": config.similarity,
        "separator": config.separator,
        "form": config.form,
        "max_tokens": config.max_tokens or None,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    return replace(spec, reads=Reads.WHOLE, **given)


def _plan(index: IndexFolder, config: EncoderTraining, fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what must be the same for a training to go on."""
    return {
        **told_settings(config),
        "corpus": index.manifest.corpus["sha256"],
        "splits": splits_sha256(index),
        "weights": fingerprint.weights,
        "tokenizer": fingerprint.tokenizer,
    }


def _mined(
    data: TrainingData,
    config: EncoderTraining,
    parts: Parts,
    fingerprint: Fingerprint,
    workspace: Workspace,
    progress: Progress,
) -> Lists:
    """Return hard negatives that are mined; what was found before is not searched again."""
    if found := workspace.saved(HARD, "indptr", "indices"):
        return Lists(**found)
    encoder = frozen_encoder(parts, fingerprint, config)
    first, last = config.mine_from, config.mine_to
    hard = mined(data, encoder, first, last, threads=config.threads, progress=progress)
    workspace.save(HARD, {"indptr": hard.indptr, "indices": hard.indices})
    return hard


def _before(course: EncoderCourse) -> list[Epoch]:
    """Measure the base model, once."""
    if course.dev is None:
        course.log("no dev queries: the last epoch is kept, whether or not it is the best")
        return []
    measures = from_first(lambda: _measures(course))
    epoch = Epoch(
        epoch=0,
        loss=None,
        dev_loss=measures["loss"],
        dev_mrr=measures["mrr"],
        dev_f1=measures["f1"],
        examples_per_second=None,
    )
    course.log(str(epoch))
    return [epoch]


def _measures(course: EncoderCourse) -> dict[str, Any]:
    """Return what the base model is worth, as the training folder keeps it."""
    if kept := course.workspace.baseline():
        return kept
    found = course.measured()
    measures = asdict(found) if found else {}
    course.workspace.save_baseline(measures)
    return measures


def _best(history: Sequence[Epoch], selection_metric: SelectionMetric) -> int:
    """Return the epoch that is best on dev, of equal ones the first, or the last if nothing was measured."""
    trained = [epoch for epoch in history if epoch.epoch]
    measured = {epoch.epoch: _merit(epoch, selection_metric) for epoch in trained}
    known = {number: merit for number, merit in measured.items() if merit is not None}
    return max(known, key=lambda number: known[number]) if known else trained[-1].epoch


def _merit(epoch: Epoch, selection_metric: SelectionMetric) -> float | None:
    """Return how good an epoch is: higher is better."""
    if selection_metric is SelectionMetric.LOSS:
        return None if epoch.dev_loss is None else -epoch.dev_loss
    return epoch.dev_f1 if selection_metric is SelectionMetric.F1 else epoch.dev_mrr


def _story(source: Source, course: EncoderCourse, history: Sequence[Epoch]) -> TrainingRecord:
    index, examples = course.examples.data.index, course.examples
    base = told_base(source)
    settings = told_settings(course.config) | {"model": base}
    return TrainingRecord(
        base=base,
        weights=course.fingerprint.weights,
        index=index.manifest.name,
        corpus=index.manifest.corpus["sha256"],
        splits=splits_sha256(index),
        counts={
            "papers": len(index.papers),
            "train_queries": len(examples.data.queries),
            "positives": len(examples.positives.indices),
            "examples_an_epoch": len(examples),
        },
        settings=settings,
        history=[asdict(epoch) for epoch in history],
        best=_best(history, course.config.selection_metric),
        provenance=provenance(settings),
    )
