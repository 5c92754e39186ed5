"""Trains an encoder on the citations of an index: examples, training loop, model folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts, load_parts
from citerec.encode.opening import fingerprint_of, spec_of
from citerec.encode.projection import projection_file
from citerec.encode.source import ModelSource
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import EncoderSpec, Fingerprint, Pooling, Reads, Similarity, read_spec
from citerec.errors import ConfigError, writing
from citerec.train.data import TrainingData, load_training_data
from citerec.train.encoder.batch import Collator
from citerec.train.encoder.config import EncoderLoss, EncoderTraining
from citerec.train.encoder.dev import EncoderDev, frozen_encoder, load_dev, measure
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.linear import (
    LinearDev,
    LinearExamples,
    linear_net,
    matrix_of,
    vectors_of,
)
from citerec.train.encoder.mine import MINE_FROM, MINE_TO, mined
from citerec.train.encoder.modelfolder import write_model
from citerec.train.encoder.net import make_net
from citerec.train.encoder.signals import Signals, examples_of, recorded_settings
from citerec.train.job import TrainingJob, TrainingReport, base_facts, find_base
from citerec.train.joined import TrainingIndex
from citerec.train.lists import Lists
from citerec.train.loop import TrainerSpec
from citerec.train.measures import Unit
from citerec.train.record import corpus_facts, has_weights, read_training, selection_facts
from citerec.train.record import was_trained_so as has_record
from citerec.types import Log, Progress, no_progress

HARD = "hard"  # name of the mined negatives in the training folder
UNIT = Unit("epoch", "epoch 0", "examples")


@dataclass(frozen=True, slots=True)
class EncoderBase:
    """The base model of a training."""

    source: ModelSource
    parts: Parts
    fingerprint: Fingerprint


def train_encoder(
    index: TrainingIndex,
    output: Path,
    config: EncoderTraining,
    *,
    dev_index: TrainingIndex | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> TrainingReport:
    """Train an encoder on the citations of indexes; the model folder is created complete at the end.

    During the training its state is in a training folder next to the model folder; an interrupted training can be
    resumed from it.

    Args:
        index: Its train queries are the training data.
        output: The model folder to create.
        config: The settings.
        dev_index: Its dev queries select the best epoch; by default those of `index`.
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
    job = TrainingJob(
        output,
        SPEC,
        config.schedule,
        threads=config.threads,
        resume=resume,
        force=force,
        progress=progress,
        log=log,
    )
    with writing(job.workspace.folder), job.workspace.removed_if_refused():
        data, dev = load_training_data(index), load_dev(dev_index or index, config)
        with job.start(has_dev=dev is not None):
            base = open_base(index, config, job.log)
            job.begin(_plan(index, config, base.fingerprint) | selection_facts(dev_index))
            mine = partial(_mined, data, config, base, job)
            examples = examples_of(Signals(data=data, config=config, mine=mine, log=job.log))
        if config.loss is EncoderLoss.MEMORY and job.arguments.world_size > 1:
            raise ConfigError("the memory loss runs in one process only; train on one device")
        make_spec = _linear_spec if config.linear else _trainer_spec
        if examples.used_queries < len(examples.data.queries):
            job.log(
                f"learning from {examples.used_queries:,} of {len(examples.data.queries):,} train queries: the memory "
                f"holds {len(examples.learners):,} papers"
            )
        spec = make_spec(base, examples, dev, job)
        result = job.run(spec, partial(_before, spec) if dev else None)
    facts = base_facts(base.source, base.fingerprint.weights, index) | selection_facts(dev_index)
    facts |= {"counts": _counts(examples, spec), "tokenizer": base.fingerprint.tokenizer}
    settings = recorded_settings(config) | {"model": facts["base"]}
    projection = matrix_of(spec.net) if config.linear else None
    return job.finish(result, facts, settings, partial(write_model, base.parts, result, projection))


def was_trained_so(model: Path, index: TrainingIndex, config: EncoderTraining) -> bool:
    """Return whether a model was trained on these papers and splits with these settings.

    Its base model must have the recorded weights if it is in an existing folder.
    """
    same = has_record(model, config, recorded_settings(config), corpus_facts(index))
    return same and has_weights(config.model, index, read_training(model).get("weights"))


def open_base(index: TrainingIndex, config: EncoderTraining, log: Log) -> EncoderBase:
    """Open the base model of a training.

    Raises:
        ConfigError: If it has an adapter or a linear map.
        ModelError: If it cannot be opened.
    """
    source = find_base(config.model, index, log)
    if projection_file(source.folder):
        raise ConfigError(
            f"{config.model} was trained by the recipe linear, which cannot be trained further; name its base model: "
            "--model"
        )
    if config.linear:
        spec = replace(spec_of(source), similarity=config.similarity or Similarity.COSINE)
    else:
        spec = trained_spec(source.folder, config)
    parts = load_parts(source.folder, spec)
    return EncoderBase(source, parts, fingerprint_of(source, parts))


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


def _plan(
    index: TrainingIndex, config: EncoderTraining, fingerprint: Fingerprint
) -> dict[str, Any]:
    """Return the facts that must be equal for a training to be resumed."""
    models = {"weights": fingerprint.weights, "tokenizer": fingerprint.tokenizer}
    return recorded_settings(config) | corpus_facts(index) | models


def _mined(
    data: TrainingData, config: EncoderTraining, base: EncoderBase, job: TrainingJob
) -> Lists:
    """Return mined hard negatives, from the training folder if they are there."""
    if saved := job.workspace.load(HARD):
        return Lists(**saved[0])
    encoder = frozen_encoder(base.parts, base.fingerprint, config)
    hard = mined(data, encoder, MINE_FROM, MINE_TO, threads=config.threads, progress=job.progress)
    job.workspace.save(HARD, {"indptr": hard.indptr, "indices": hard.indices})
    return hard


def _measured(dev: EncoderDev, base: EncoderBase, config: EncoderTraining) -> dict[str, float]:
    """Measure the current weights on the dev queries."""
    return measure(dev, frozen_encoder(base.parts, base.fingerprint, config), config)


def _trainer_spec(
    base: EncoderBase, examples: EncoderExamples, dev: EncoderDev | None, job: TrainingJob
) -> TrainerSpec:
    """Return the specification of the training loop."""
    config = examples.config

    def measured(_: int) -> Mapping[str, float] | None:
        return _measured(dev, base, config) if dev else None

    return TrainerSpec(
        schedule=config.schedule,
        examples=examples,
        collator=Collator(base.parts, examples, on_cpu=job.on_cpu),
        net=make_net(base.parts, config, _initial_memory(base, examples, job)),
        measure=measured,
        unit=UNIT,
        workspace=job.workspace,
        progress=job.progress,
        log=job.log,
    )


def _linear_spec(
    base: EncoderBase, examples: EncoderExamples, dev: EncoderDev | None, job: TrainingJob
) -> TrainerSpec:
    """Return the specification of the training loop of a linear map."""
    config, encoder = examples.config, frozen_encoder(base.parts, base.fingerprint, examples.config)
    vectors, stored = vectors_of(examples.data, examples.learners, encoder, job.progress)
    if stored:
        job.log(f"{stored:,} of {len(vectors):,} vectors are those of the index")
    batches = LinearExamples(examples)
    net = linear_net(
        vectors, config, encoder.spec.similarity, train_queries=len(batches.memory.usable)
    )
    mapped_dev = LinearDev(dev, encoder, config, job.progress) if dev else None

    def measured(_: int) -> Mapping[str, float] | None:
        return mapped_dev.measure(matrix_of(net)) if mapped_dev else None

    return TrainerSpec(
        schedule=config.schedule,
        examples=batches,
        collator=batches.collate,
        net=net,
        measure=measured,
        unit=UNIT,
        workspace=job.workspace,
        progress=job.progress,
        log=job.log,
    )


def _before(spec: TrainerSpec) -> Mapping[str, float]:
    """Measure the weights before the first update."""
    return spec.measure(0) or {}


def _initial_memory(
    base: EncoderBase, examples: EncoderExamples, job: TrainingJob
) -> Vectors | None:
    """Return the initial memory: the vectors of the base model, cut as in training; None without a memory.

    Returns:
        Shape (papers, dim); zeros for a resumed training, as the checkpoint contains the memory.
    """
    config, parts = examples.config, base.parts
    if config.loss is not EncoderLoss.MEMORY:
        return None
    if job.resumed:
        return np.zeros((len(examples.learners), parts.dim), np.float32)
    tokens = min(config.train_tokens or parts.spec.max_tokens, parts.spec.max_tokens)
    short = replace(parts, spec=replace(parts.spec, max_tokens=tokens))
    encoder = frozen_encoder(short, base.fingerprint, config)
    papers = examples.data.index.papers.at(examples.learners.tolist())
    return encoder.encode(
        [*papers.values()], lambda _, n, of: job.progress("encoding the memory", n, of)
    )


def _counts(examples: EncoderExamples, spec: TrainerSpec) -> dict[str, int]:
    return {
        "papers": examples.data.papers,
        "train_queries": examples.used_queries,
        "positives": len(examples.positives.indices),
        "examples_an_epoch": len(spec.examples),
    }
