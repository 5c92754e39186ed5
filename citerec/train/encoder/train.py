"""Trains an encoder on the citations of an index: what is learned from, the loop, the model folder."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.atomic import building
from citerec.encode.encoder import fingerprint_of
from citerec.encode.model import Parts, load_parts
from citerec.encode.source import INSIDE, Source, find_model
from citerec.encode.spec import NAME as SPEC
from citerec.encode.spec import EncoderSpec, Fingerprint, Pooling, Similarity, read_spec
from citerec.errors import ConfigError, extra, writing
from citerec.folder import IndexFolder
from citerec.provenance import provenance
from citerec.train.encoder.config import EncoderTraining, Keep, Loss, Negatives
from citerec.train.encoder.data import TrainingData, load_training_data, splits_sha256
from citerec.train.encoder.dev import frozen_encoder, load_dev
from citerec.train.encoder.examples import Examples
from citerec.train.encoder.lists import Lists
from citerec.train.encoder.loop import Course, Epoch, plan_steps, run_loop, trainer_arguments
from citerec.train.encoder.mine import mined
from citerec.train.encoder.modelfolder import TRAINING, Story, check_target, write_model
from citerec.train.encoder.pick import cited_by_cited, distant_neighbours, positives_of
from citerec.train.encoder.workspace import Workspace
from citerec.types import Note, Progress, untold


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
    tell: Progress = untold,
    say: Note = lambda message: None,
) -> TrainingReport:
    """Train an encoder on the citations of an index; the model folder appears whole, at the end.

    Until then there is a training folder beside it, from which a training that was cut short can go on.

    Args:
        index: Whose train queries it learns from.
        output: The model folder to be.
        config: How.
        resume: Go on with a training that was cut short, to the same weights as if it had not been.
        force: Replace a model that is there.
        tell: Is told how far each kind of work is.
        say: Is told what is worth a line: each epoch, and what to know before.

    Raises:
        ConfigError: If there is nothing to learn from, or a setting cannot be.
        ModelError: If the base model cannot be had or opened.
        ModelExistsError: If there is a model at `output`, without `force`.
        MissingExtraError: If what trains is not installed.
        OutputError: If the folders cannot be written.
    """
    check_target(output, force=force)
    _check_installed(config)
    workspace = Workspace.beside(output)
    with writing(workspace.folder):
        source, parts, fingerprint = _base(index, config)
        data, dev = load_training_data(index), load_dev(index, config)
        arguments = trainer_arguments(config, workspace, has_dev=dev is not None)
        if arguments.process_index:  # of several the first one speaks
            say, tell = _to_nobody, _to_nobody
        with arguments.main_process_first():
            plan = _plan(index, config, fingerprint)
            going_on = _open(workspace, plan, resume, arguments.process_index == 0, say)
            hard = _hard(data, config, parts, fingerprint, workspace, tell)
        course = Course(
            parts=parts,
            fingerprint=fingerprint,
            examples=Examples.of(data, config, positives_of(data, config), hard),
            dev=dev,
            workspace=workspace,
            tell=tell,
            say=say,
        )
        plan_steps(arguments, config, len(course.examples))
        history = (*_before(course), *run_loop(course, arguments, going_on))
    if arguments.process_index == 0:
        with building(output) as folder:
            write_model(folder, parts, _story(source, course, history))
        workspace.remove()
    return _report(output, course, history)


def _report(output: Path, course: Course, history: tuple[Epoch, ...]) -> TrainingReport:
    """Return what came of it; say so if the model was better before."""
    keep = course.config.keep
    best = _best(history, keep)
    merits = {epoch.epoch: _merit(epoch, keep) for epoch in history}
    before, after = merits.get(0), merits[best]
    if before is not None and after is not None and after <= before:
        told = f"{abs(before):.4f} before, {abs(after):.4f} after"
        course.say(f"the training did not help: dev {keep} {told}")
    return TrainingReport(
        output=output,
        history=history,
        best=best,
        queries=len(course.examples.data.queries),
        examples=len(course.examples),
    )


def was_trained_so(model: Path, index: IndexFolder, config: EncoderTraining) -> bool:
    """Return whether there is a model that was trained on these papers and splits, with these settings."""
    try:
        told: Any = orjson.loads((model / TRAINING).read_bytes())
        settings = told["provenance"]["settings"]
        trained_on = told["corpus_sha256"], told["splits_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    wanted = orjson.loads(orjson.dumps(config.to_json()))
    if settings["model"] == Path(config.model).name:  # all that is told of a local one
        wanted["model"] = settings["model"]
    here = index.manifest.corpus["sha256"], splits_sha256(index)
    return trained_on == here and settings == wanted


def _to_nobody(*_: object) -> None:
    pass


def _check_installed(config: EncoderTraining) -> None:
    # Threads of OpenMP that wait for each other in a loop slow training down tenfold where others work, too.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.set_seed(config.seed)  # a head that the base model lacks is made up
    if config.threads:
        torch.set_num_threads(config.threads)


def _base(index: IndexFolder, config: EncoderTraining) -> tuple[Source, Parts, Fingerprint]:
    source = find_model(config.model, base=index.path)
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
    return replace(spec, **{name: value for name, value in wanted.items() if value is not None})


def _plan(index: IndexFolder, config: EncoderTraining, fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what must be the same for a training to go on."""
    return {
        **config.to_json(),
        "corpus": index.manifest.corpus["sha256"],
        "splits": splits_sha256(index),
        "weights": fingerprint.weights,
        "tokenizer": fingerprint.tokenizer,
    }


def _open(workspace: Workspace, plan: dict[str, Any], resume: bool, first: bool, say: Note) -> bool:
    """Make the training folder, or go on with the one that is there; return which."""
    if resume and workspace.is_there():
        workspace.check(plan)
        last = workspace.checkpoint()
        say(f"going on from {last.name}" if last else "no checkpoint yet: beginning anew")
        return last is not None
    if not first:  # the first process has made it
        return False
    if resume:
        say(f"nothing to go on with at {workspace.folder}: beginning anew")
    elif workspace.is_there():
        say("a training that was cut short is given up; --resume would have gone on with it")
    workspace.begin(plan)
    return False


def _hard(
    data: TrainingData,
    config: EncoderTraining,
    parts: Parts,
    fingerprint: Fingerprint,
    workspace: Workspace,
    tell: Progress,
) -> Lists:
    """Return the hard negatives of each query; what was found before is not searched again."""
    if not config.hard or config.loss is Loss.MEMORY:
        return Lists.of(np.zeros(0, np.int64), np.zeros(0, np.int32), len(data.queries))
    if found := workspace.hard():
        return found
    if config.negatives is Negatives.CITATIONS:
        hard = cited_by_cited(data, seed=config.seed)
    elif config.negatives is Negatives.NEIGHBOURS:
        hard = distant_neighbours(data, config)
    else:
        encoder = frozen_encoder(parts, fingerprint, config)
        first, last = config.mine_from, config.mine_to
        hard = mined(data, encoder, first, last, threads=config.threads, tell=tell)
    workspace.keep_hard(hard)
    return hard


def _before(course: Course) -> list[Epoch]:
    """Measure the base model, once."""
    if course.dev is None:
        course.say("no dev queries: the last epoch is kept, whether or not it is the best")
        return []
    measures = course.workspace.before()
    if measures is None:
        found = course.measured()
        measures = asdict(found) if found else {}
        course.workspace.keep_before(measures)
    epoch = Epoch(
        epoch=0,
        loss=None,
        dev_loss=measures["loss"],
        dev_mrr=measures["mrr"],
        dev_f1=measures["f1"],
        examples_per_second=None,
    )
    course.say(str(epoch))
    return [epoch]


def _best(history: Sequence[Epoch], keep: Keep) -> int:
    """Return the epoch that is best on dev, of equal ones the first, or the last if nothing was measured."""
    trained = [epoch for epoch in history if epoch.epoch]
    measured = {epoch.epoch: _merit(epoch, keep) for epoch in trained}
    known = {number: merit for number, merit in measured.items() if merit is not None}
    return max(known, key=lambda number: known[number]) if known else trained[-1].epoch


def _merit(epoch: Epoch, keep: Keep) -> float | None:
    """Return how good an epoch is: higher is better."""
    if keep is Keep.LOSS:
        return None if epoch.dev_loss is None else -epoch.dev_loss
    return epoch.dev_f1 if keep is Keep.F1 else epoch.dev_mrr


def _story(source: Source, course: Course, history: Sequence[Epoch]) -> Story:
    index, examples = course.examples.data.index, course.examples
    local = source.place.startswith(INSIDE) or Path(source.place).is_absolute()
    base = (
        source.folder.name if local else source.name
    )  # where it lies here is nobody else's matter
    settings = course.config.to_json() | {"model": base}
    return Story(
        base=base,
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
        history=history,
        best=_best(history, course.config.keep),
        provenance=provenance(settings),
    )
