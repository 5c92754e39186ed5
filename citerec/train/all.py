"""Trains the models of an index in order, encoder, reranker and ranker, and uses those that are better on dev."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.config import DenseIndexConfig
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.encoder import open_encoder, reopen
from citerec.encode.models import weights_files
from citerec.encode.spec import EncodeConfig
from citerec.folder import IndexFolder, open_index
from citerec.io import replace_folder, sha256_of_files
from citerec.rank.ltr import Variant
from citerec.rules.held_out import RANKER, RERANKER
from citerec.train import encoder, ranker, reranker
from citerec.train.data import load_training_data
from citerec.train.settings import EncoderTraining, TrainPlan
from citerec.train.trainer import NEW, TrainingState, encoder_folder, was_trained_so
from citerec.types import Log, Progress, no_log, no_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What a step gives on the dev queries."""

    model: str
    metric: str
    before: float | None  # with the models in use before the step
    after: float | None
    is_used: bool


def train_all(
    path: Path,
    plan: TrainPlan,
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> list[StepReport]:
    """Train each model of an index next to the one in use, which it replaces if it is better on dev, or by `force`.

    Steps that are done with the same settings are not repeated. Other arguments and errors are those of the trainings.
    """
    index = open_index(path)
    load_training_data(index)  # refuses an index without train queries
    options: dict[str, Any] = {"resume": resume, "force": True, "progress": progress, "log": log}
    reports: list[StepReport] = []

    def places(name: str) -> tuple[Path, Path]:  # of a model that is used, and of one that is not
        return index.models / name, index.models / f"{name}{NEW}"

    def use(
        model: Path, metric: str, before: float | None, after: float | None, *, is_better: bool
    ) -> bool:
        """Report a model; return whether it is to be used."""
        name = model.name.removesuffix(NEW)
        step = StepReport(
            model=name, metric=metric, before=before, after=after, is_used=is_better or force
        )
        reports.append(step)
        if not step.is_used:
            log(f"the {name} is not better, and not used: {model} (to use it: --force)")
        return step.is_used

    def is_done(done: bool, model: Path) -> bool:
        for one in places(model.name.removesuffix(NEW)) if done else ():
            TrainingState(one).remove()  # a run may have failed, or been killed, as it did this
        log(f"{model} was trained with these settings already" if done else f"training {model}")
        return done

    own, new = places(encoder.NAME)
    # Never in the folder of the encoder in use, whose vectors would become useless.
    in_use = encoder_folder(index)
    free = new if in_use and in_use.resolve() == own.resolve() else own
    done = [one for one in (own, new) if was_trained_so(one, index, plan.encoder)]
    model = (done or [free])[0]
    if not is_done(bool(done), model):
        encoder.train_encoder(index, model, plan.encoder, **options)
    if index.encoder_weights != sha256_of_files(weights_files(model)):
        before, after = _encoder_measures(index, model, plan.encoder)
        is_better = before is None or after is None or after > before
        if use(model, plan.encoder.metric, before, after, is_better=is_better):
            log("encoding the papers")
            _encode(index, model, plan.encoder.threads, progress)
            index = open_index(path)

    own, new = places(RERANKER)
    done = [model for model in (own, new) if was_trained_so(model, index, plan.reranker)]
    if not is_done(bool(done), (done or [own])[0]):
        report = reranker.train_reranker(index, None, plan.reranker, **options)
        metric = plan.reranker.metric
        before, after = report.history[0].dev.get(metric), report.best.dev.get(metric)
        use(report.output, metric, before, after, is_better=report.is_better)
        done = [report.output]
    if force and own not in done:
        replace_folder(new, own)

    own, new = places(RANKER)
    done = [model for model in (own, new) if ranker.was_trained_so(model, [index], plan.ranker)]
    if not is_done(bool(done), (done or [own])[0]):
        ranked = ranker.train_ranker([index], None, plan.ranker, **options)
        after = ranked.after[Variant.FULL]["f1@20"]
        use(ranked.output, "f1@20", ranked.in_use, after, is_better=ranked.is_better)
        done = [ranked.output]
    if force and own not in done:
        replace_folder(new, own)
    return reports


def _encode(index: IndexFolder, model: Path, threads: int, progress: Progress) -> None:
    dense = DenseIndexConfig(threads=threads)
    opened = open_encoder(str(model.resolve()), EncodeConfig(threads=threads), base=index.path)
    embed_anew(index.path, opened, EmbedConfig(dense=dense, resume=True), progress)


def _encoder_measures(
    index: IndexFolder, model: Path, config: EncoderTraining
) -> tuple[float | None, float | None]:
    """Return the measures of the encoder in use and of a new one; None without vectors or dev queries."""
    dev = encoder.EncoderDev.load(index, config)
    if not dev or not index.is_embedded:
        return None, None
    present = reopen(index.encoder, index.path, config.running)
    new = open_encoder(str(model.resolve()), config.running, base=index.path)
    before, after = (dev.measures(one)[config.metric] for one in (present, new))
    return before, after
