"""Trains an encoder on the citations of an index: examples, training loop, model folder."""

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
from citerec.train.encoder.config import EncoderLoss, EncoderSelectionMetric, EncoderTraining
from citerec.train.encoder.dev import frozen_encoder, load_dev
from citerec.train.encoder.loop import EncoderSetup, Epoch
from citerec.train.encoder.mine import mined
from citerec.train.encoder.modelfolder import write_model
from citerec.train.encoder.signals import Signals, examples_of, recorded_settings
from citerec.train.lists import Lists
from citerec.train.loop import RATE, run_loop
from citerec.train.modelfolder import TrainingRecord, check_target
from citerec.train.processes import from_first
from citerec.train.schedule import plan_steps, trainer_arguments
from citerec.train.start import base_name, check_installed, discard, open_workspace
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

HARD = "hard"  # name of the mined negatives in the training folder


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderReport:
    """The result of the training of an encoder."""

    output: Path
    history: tuple[Epoch, ...]  # the first is before training
    best: int  # the epoch of the saved weights
    queries: int
    examples: int  # per epoch


def train_encoder(
    index: IndexFolder,
    output: Path,
    config: EncoderTraining,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> EncoderReport:
    """Train an encoder on the citations of an index; the model folder is created complete at the end.

    During the training its state is in a training folder next to the model folder; an interrupted training can be
    resumed from it.

    Args:
        index: Its train queries are the training data.
        output: The model folder to create.
        config: The settings.
        resume: Continue an interrupted training; the weights are the same as without the interruption.
        force: Replace an existing model.
        progress: Receives task, done and total of each kind of work.
        log: Receives a line for each epoch, and warnings.

    Raises:
        ConfigError: If there is nothing to train on, or a setting is invalid.
        ModelError: If the base model cannot be opened.
        ModelExistsError: If there is a model at `output` and `force` is false.
        MissingExtraError: If a package of the extra `train` is not installed.
        OutputError: If the folders cannot be written.
    """
    check_target(output, SPEC, force=force)
    check_installed(seed=config.seed, threads=config.threads)
    workspace = Workspace.for_model(output)
    with writing(workspace.folder):
        data, dev = load_training_data(index), load_dev(index, config)
        arguments = trainer_arguments(config.schedule, workspace, has_dev=dev is not None)
        if arguments.process_index:  # only the first process logs
            log, progress = discard, discard
        with arguments.main_process_first():
            source, parts, fingerprint = _base(index, config, log)
            plan = _plan(index, config, fingerprint)
            first = arguments.process_index == 0
            resumed = open_workspace(workspace, plan, resume=resume, first=first, log=log)
            signals = Signals(
                data=data,
                config=config,
                mine=lambda: _mined(data, config, parts, fingerprint, workspace, progress),
                log=log,
            )
            examples = examples_of(signals)
        setup = EncoderSetup(
            parts=parts,
            fingerprint=fingerprint,
            examples=examples,
            dev=dev,
            workspace=workspace,
            progress=progress,
            log=log,
        )
        history = _run(setup, arguments, resumed)
    if arguments.process_index == 0:
        with building(output) as folder:
            write_model(folder, parts, _record(source, setup, history))
        workspace.remove()
    return _report(output, setup, history)


def _run(setup: EncoderSetup, arguments: Any, resumed: bool) -> tuple[Epoch, ...]:
    """Measure the base model and train it; return the measures of each epoch."""
    config = setup.config
    if config.loss is EncoderLoss.MEMORY and arguments.world_size > 1:
        raise ConfigError("the memory loss runs in one process only; train on one device")
    plan_steps(arguments, config.schedule, len(setup.examples))
    baseline = _baseline(setup)
    spec = setup.trainer_spec(on_cpu=arguments.device.type == "cpu", resumed=resumed)
    log = run_loop(spec, arguments, resumed)
    return (*baseline, *(Epoch.of(entry) for entry in log if RATE in entry))


def _report(output: Path, setup: EncoderSetup, history: tuple[Epoch, ...]) -> EncoderReport:
    """Return the report; log a warning if the base model was better."""
    selection_metric = setup.config.selection_metric
    best = _best(history, selection_metric)
    quality = {epoch.epoch: _quality(epoch, selection_metric) for epoch in history}
    before, after = quality.get(0), quality[best]
    if before is not None and after is not None and after <= before:
        change = f"{abs(before):.4f} before, {abs(after):.4f} after"
        setup.log(f"the training did not improve the model: dev {selection_metric} {change}")
    return EncoderReport(
        output=output,
        history=history,
        best=best,
        queries=len(setup.examples.data.queries),
        examples=len(setup.examples),
    )


def was_trained_so(model: Path, index: IndexFolder, config: EncoderTraining) -> bool:
    """Return whether a model was trained on these papers and splits with these settings."""
    return modelfolder.was_trained_so(model, index, recorded_settings(config))


def _base(
    index: IndexFolder, config: EncoderTraining, log: Log
) -> tuple[Source, Parts, Fingerprint]:
    source = find_model(config.model, base=index.path, log=log)
    if getattr(source, "adapter", None):
        raise ConfigError(
            f"{config.model} has an adapter, which cannot be trained further; choose its base model with --model"
        )
    parts = load_parts(source.folder, trained_spec(source.folder, config))
    return source, parts, fingerprint_of(source, parts)


def trained_spec(folder: Path, config: EncoderTraining) -> EncoderSpec:
    """Return how the trained model reads and pools: as the base model, unless the settings differ.

    A base model without a specification (plain BERT) gets mean pooling and cosine similarity.
    """
    has_spec = any((folder / name).is_file() for name in (SPEC, "modules.json"))
    spec = (
        read_spec(folder)
        if has_spec
        else EncoderSpec(pooling=Pooling.MEAN, similarity=Similarity.COSINE)
    )
    settings = {
        "pooling": config.pooling,
        "similarity": config.similarity,
        "separator": config.separator,
        "form": config.form,
        "max_tokens": config.max_tokens or None,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    return replace(spec, reads=Reads.WHOLE, **given)


def _plan(index: IndexFolder, config: EncoderTraining, fingerprint: Fingerprint) -> dict[str, Any]:
    """Return the facts that must be equal for a training to be resumed."""
    return {
        **recorded_settings(config),
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
    """Return mined hard negatives, from the training folder if they are there."""
    if saved := workspace.saved(HARD, "indptr", "indices"):
        return Lists(**saved)
    encoder = frozen_encoder(parts, fingerprint, config)
    first, last = config.mine_from, config.mine_to
    hard = mined(data, encoder, first, last, threads=config.threads, progress=progress)
    workspace.save(HARD, {"indptr": hard.indptr, "indices": hard.indices})
    return hard


def _baseline(setup: EncoderSetup) -> list[Epoch]:
    """Measure the base model, once per training."""
    if setup.dev is None:
        setup.log("no dev queries: the weights of the last epoch are saved")
        return []
    measures = from_first(lambda: _baseline_measures(setup))
    epoch = Epoch(
        epoch=0,
        loss=None,
        dev_loss=measures["loss"],
        dev_mrr=measures["mrr"],
        dev_f1=measures["f1"],
        examples_per_second=None,
    )
    setup.log(str(epoch))
    return [epoch]


def _baseline_measures(setup: EncoderSetup) -> dict[str, Any]:
    """Return the measures of the base model, from the training folder if they are there."""
    if saved := setup.workspace.baseline():
        return saved
    dev = setup.measure_dev()
    measures = asdict(dev) if dev else {}
    setup.workspace.save_baseline(measures)
    return measures


def _best(history: Sequence[Epoch], selection_metric: EncoderSelectionMetric) -> int:
    """Return the epoch with the best dev measure, the first of equal ones; the last epoch if nothing was measured."""
    trained = [epoch for epoch in history if epoch.epoch]
    quality = {epoch.epoch: _quality(epoch, selection_metric) for epoch in trained}
    available = {number: value for number, value in quality.items() if value is not None}
    return max(available, key=lambda number: available[number]) if available else trained[-1].epoch


def _quality(epoch: Epoch, selection_metric: EncoderSelectionMetric) -> float | None:
    """Return the selection metric of an epoch, with a sign so that higher is better; None if it was not measured."""
    if selection_metric is EncoderSelectionMetric.LOSS:
        return None if epoch.dev_loss is None else -epoch.dev_loss
    return epoch.dev_f1 if selection_metric is EncoderSelectionMetric.F1 else epoch.dev_mrr


def _record(source: Source, setup: EncoderSetup, history: Sequence[Epoch]) -> TrainingRecord:
    index, examples = setup.examples.data.index, setup.examples
    base = base_name(source)
    settings = recorded_settings(setup.config) | {"model": base}
    return TrainingRecord(
        base=base,
        weights=setup.fingerprint.weights,
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
        best=_best(history, setup.config.selection_metric),
        provenance=provenance(settings),
    )
