"""Trains a cross-encoder on the citations of an index: candidates, training loop, calibration, model folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from citerec.cache import sha256_of_files
from citerec.encode.model import tokenizer_files, weights_files
from citerec.encode.source import ModelSource
from citerec.errors import writing
from citerec.index.tokens import open_tokens
from citerec.rerank.model import RerankerParts
from citerec.rerank.spec import NAME as SPEC
from citerec.train.data import TrainingData, load_training_data
from citerec.train.job import TrainingJob, TrainingReport, TrainingResult, base_facts, find_base
from citerec.train.joined import JoinedIndexes, TrainingIndex
from citerec.train.loop import TrainerSpec
from citerec.train.measures import Unit
from citerec.train.record import (
    corpus_facts,
    encoder_of,
    has_weights,
    read_training,
    selection_facts,
)
from citerec.train.record import was_trained_so as has_record
from citerec.train.reranker.batch import PairReader, Steps, Texts
from citerec.train.reranker.candidates import (
    CandidateLists,
    LabelledCandidates,
    labelled,
    train_candidates,
    with_teacher,
)
from citerec.train.reranker.config import (
    BY_ENCODER,
    CandidateSource,
    RerankerTraining,
)
from citerec.train.reranker.dev import RerankerDev, draw_dev, first_stage_measures, load_dev
from citerec.train.reranker.estimate import planned_updates, remaining_time
from citerec.train.reranker.examples import RerankerExamples
from citerec.train.reranker.modelfolder import write_model
from citerec.train.reranker.net import load_base, make_net
from citerec.train.reranker.teach import taught, teacher_folders, weights_of_teacher
from citerec.train.reranker.update import Update, collated
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

FOUND, TEACHER = "candidates", "teacher"  # names in the training folder
SCORES = "dev-scores"  # name of the dev scores of an evaluation in the training folder
UNIT = Unit("step", "first stage", "pairs")


@dataclass(frozen=True)
class RerankerSetup:
    """The model and the data of a training."""

    parts: RerankerParts
    labelled: LabelledCandidates
    config: RerankerTraining
    dev: RerankerDev | None
    dev_index: TrainingIndex | None  # of the dev queries; None for that of the training data
    job: TrainingJob
    tokenizer: str = ""  # sha256 of its files; key of the token store of the index

    @cached_property
    def texts(self) -> Texts:
        """The tokens of the papers, from the token store of the index if it has them."""
        return self._texts_of(self.labelled.data.index)

    @cached_property
    def dev_texts(self) -> Texts:
        """The tokens of the papers of the dev queries."""
        return self._texts_of(self.dev_index) if self.dev_index else self.texts

    def _texts_of(self, index: TrainingIndex) -> Texts:
        stored = None
        if not isinstance(index, JoinedIndexes):
            stored = open_tokens(index, self.tokenizer, vocabulary=len(self.parts.tokenizer))
        return Texts(self.parts, index.papers, stored)

    @cached_property
    def examples(self) -> RerankerExamples:
        """The examples of the training."""
        steps = Steps(PairReader(self.parts, self.texts, on_cpu=True), self.labelled, 1)
        return RerankerExamples(self.labelled, self.config, steps.lengths, self.job.progress)

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the training record."""
        labels = self.labelled
        return {
            "papers": labels.data.papers,
            "train_queries": len(labels.data.queries),
            "candidates": len(labels.cited),
            "cited_candidates": int(labels.cited.sum()),
            "examples_an_epoch": len(self.examples),
        }

    def trainer_spec(self) -> TrainerSpec:
        """Return the specification of the training loop."""
        on_cpu, config, job = self.job.on_cpu, self.config, self.job
        steps = Steps(
            PairReader(self.parts, self.texts, on_cpu=on_cpu),
            self.labelled,
            config.micro,
            config.short_share,
        )
        # For models other than BERT: on a CPU the backward pass of eager attention is faster.
        if on_cpu:
            self.parts.model.set_attn_implementation("eager")
        return TrainerSpec(
            schedule=config.schedule,
            examples=self.examples,
            collator=collated,
            net=make_net(self.parts, config),
            update=Update(steps, warm_steps=config.warm_steps, log=job.log),
            measure=self._measured,
            unit=UNIT,
            format_plan=lambda updates: planned_updates(updates, config),
            format_remaining=lambda seconds: remaining_time(seconds, config, on_cpu=on_cpu),
            items_per_example=config.in_list,
            workspace=job.workspace,
            progress=job.progress,
            log=job.log,
            log_loss=True,
        )

    def _measured(self, step: int) -> Mapping[str, float] | None:
        """Measure the current weights on the dev queries, and save their scores."""
        if self.dev is None:
            return None
        scores = self.dev.scores(self.parts, self.dev_texts, self.config.running)
        self.job.workspace.save(f"{SCORES}-{step}", {"logits": scores})
        return self.dev.measures(scores)


def train_reranker(
    index: TrainingIndex,
    output: Path,
    config: RerankerTraining,
    *,
    dev_index: TrainingIndex | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = lambda message: None,
) -> TrainingReport:
    """Train a cross-encoder on the citations of indexes; the model folder is created complete at the end.

    During the training its state is in a training folder next to the model folder; an interrupted training can be
    resumed from it.

    Args:
        index: Its train queries are the training data.
        output: The model folder to create.
        config: The settings.
        dev_index: Its dev queries select the weights and calibrate them; by default those of `index`.
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
        data = _sampled_queries(load_training_data(index), config)
        drawn = draw_dev(dev_index or index, config)
        with job.start(has_dev=bool(drawn)):
            source = find_base(config.model, index, job.log)
            parts = load_base(source.folder, config)
            plan = _plan(index, config, source, job.log) | selection_facts(dev_index)
            teachers = teacher_folders(index, config, job.log)
            job.begin(plan)
            labels = _labelled(data, config, job)
            dev = load_dev(drawn, config, job.log)
        tokenizer = plan["tokenizer"]
        setup = RerankerSetup(parts, labels, config, dev, dev_index, job, tokenizer=tokenizer)
        result = job.run(setup.trainer_spec(), partial(first_stage_measures, dev) if dev else None)
        calibrated = _calibrated(parts, job.workspace, dev, result, config)
    facts = base_facts(source, plan["weights"], index, teachers) | selection_facts(dev_index)
    facts |= _facts(plan, setup, result)
    settings = _recorded_settings(config) | {"model": facts["base"]}
    return job.finish(result, facts, settings, partial(write_model, calibrated, result))


def was_trained_so(model: Path, index: TrainingIndex, config: RerankerTraining) -> bool:
    """Return whether a model was trained on these papers, splits and vectors with these settings.

    Its base model and its teacher must have the recorded weights if they are in existing folders.
    """
    facts = corpus_facts(index) | {"encoder": _encoder_weights(index, config)}
    if not has_record(model, config, config.to_json(), facts):
        return False
    record = read_training(model)
    return has_weights(config.model, index, record.get("weights")) and has_weights(
        config.teacher, index, record.get("taught_by")
    )


def _recorded_settings(config: RerankerTraining) -> dict[str, Any]:
    """Return the settings as they are recorded: only the name of a teacher in a folder."""
    teacher = Path(config.teacher)
    return config.to_json() | ({"teacher": teacher.name} if teacher.is_dir() else {})


def _sampled_queries(data: TrainingData, config: RerankerTraining) -> TrainingData:
    """Return a random sample of the train queries, or all of them."""
    if not config.queries or config.queries >= len(data.queries):
        return data
    rng = np.random.default_rng([config.seed, 5])
    return data.only(np.sort(rng.choice(len(data.queries), config.queries, replace=False)))


def _labelled(data: TrainingData, config: RerankerTraining, job: TrainingJob) -> LabelledCandidates:
    """Return the labelled candidates; candidates and teacher scores in the training folder are reused."""
    workspace = job.workspace
    if saved := workspace.load(FOUND):
        candidates = CandidateLists.from_arrays(saved[0])
    else:
        candidates = train_candidates(data, config, job.progress, job.log)
        workspace.save(FOUND, candidates.arrays)
    result = labelled(data, candidates, config)
    if config.teacher_model is None:
        return result
    if saved := workspace.load(TEACHER):
        return with_teacher(result, saved[0]["scores"])
    scores = taught(result, config, job.progress, job.log)
    workspace.save(TEACHER, {"scores": scores})
    return with_teacher(result, scores)


def _plan(
    index: TrainingIndex, config: RerankerTraining, source: ModelSource, log: Log
) -> dict[str, Any]:
    """Return the facts that must be equal for a training to be resumed."""
    return {
        **config.to_json(),
        **corpus_facts(index),
        "weights": sha256_of_files(weights_files(source.folder)),
        "tokenizer": sha256_of_files(tokenizer_files(source.folder)),
        "encoder": _encoder_weights(index, config),
        "taught_by": weights_of_teacher(index, config, log),
    }


def _encoder_weights(index: TrainingIndex, config: RerankerTraining) -> str | None:
    """Return the sha256 of the encoder whose vectors the training uses; None if it uses none."""
    uses_vectors = config.candidates is CandidateSource.FUSED or config.teacher == BY_ENCODER
    return encoder_of(index) if uses_vectors else None


def _facts(plan: Mapping[str, Any], setup: RerankerSetup, result: TrainingResult) -> dict[str, Any]:
    """Return the entries of the training record that only a cross-encoder has, and the counts."""
    return {
        "encoder": plan["encoder"],
        "taught_by": plan["taught_by"],
        "counts": setup.counts,
        "loss_curve": [(entry["step"], entry["loss"]) for entry in result.log if "loss" in entry],
    }


def _calibrated(
    parts: RerankerParts,
    workspace: Workspace,
    dev: RerankerDev | None,
    result: TrainingResult,
    config: RerankerTraining,
) -> RerankerParts:
    """Return the model with the calibration of its scores of the dev candidates."""
    saved = workspace.load(f"{SCORES}-{result.best.step}")
    if dev is None or saved is None:
        return parts
    adds = config.first_stage_weight > 0
    return replace(parts, spec=dev.calibrated(parts.spec, saved[0]["logits"], adds=adds))
