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
from citerec.rank.ltr import DEFAULT, SPEC, Variant, open_ranker
from citerec.rules.held_out import RANKER, RERANKER, own_model, trained_on_other_data
from citerec.train import encoder, ranker, reranker
from citerec.train.data import load_training_data
from citerec.train.settings import EncoderTraining, TrainPlan
from citerec.train.trainer import TrainingState, encoder_folder, read_training, was_trained_so
from citerec.types import Log, Progress, no_log, no_progress

ENCODER, NEW = "encoder", "-new"  # the folder of an encoder; suffix of a model that is not in use


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

    def is_used(model: Path, metric: str, before: float | None, after: float | None) -> bool:
        used = force or before is None or after is None or after > before
        name = model.name.removesuffix(NEW)
        reports.append(
            StepReport(model=name, metric=metric, before=before, after=after, is_used=used)
        )
        if not used:
            log(f"the {name} is not better, and not used: {model} (to use it: --force)")
        return used

    def is_done(done: bool, model: Path) -> bool:
        for one in places(model.name.removesuffix(NEW)) if done else ():
            TrainingState(one).remove()  # a run may have failed, or been killed, as it did this
        log(f"{model} was trained with these settings already" if done else f"training {model}")
        return done

    own, new = places(ENCODER)
    # Never in the folder of the encoder in use, whose vectors would become useless.
    in_use = encoder_folder(index)
    free = new if in_use and in_use.resolve() == own.resolve() else own
    done = [one for one in (own, new) if was_trained_so(one, index, plan.encoder)]
    model = (done or [free])[0]
    if not is_done(bool(done), model):
        encoder.train_encoder(index, model, plan.encoder, **options)
    if index.encoder_weights != sha256_of_files(weights_files(model)):
        measures = _encoder_measures(index, model, plan.encoder)
        if is_used(model, plan.encoder.metric, *measures):
            log("encoding the papers")
            threads = plan.encoder.threads
            how, dense = EncodeConfig(threads=threads), DenseIndexConfig(threads=threads)
            opened = open_encoder(str(model.resolve()), how, base=index.path)
            embed_anew(index.path, opened, EmbedConfig(dense=dense, resume=True), progress)
            index = open_index(path)

    own, new = places(RERANKER)
    done = [one for one in (own, new) if was_trained_so(one, index, plan.reranker)]
    if not is_done(bool(done), (done or [new])[0]):
        report = reranker.train_reranker(index, new, plan.reranker, **options)
        metric = plan.reranker.metric
        if is_used(new, metric, report.history[0].dev.get(metric), report.best.dev.get(metric)):
            replace_folder(new, own)
    elif force and own not in done:
        replace_folder(new, own)

    own, new = places(RANKER)
    done = [one for one in (own, new) if ranker.was_trained_so(one, [index], plan.ranker)]
    if not is_done(bool(done), (done or [new])[0]):
        ranked = ranker.train_ranker([index], new, plan.ranker, **options)
        before = _f1_in_use(index, ranked) if len(ranked.dev) else None
        if is_used(new, "f1@20", before, ranked.after[Variant.FULL]["f1@20"]):
            replace_folder(new, own)
    elif force and own not in done:
        replace_folder(new, own)
    return reports


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


def _f1_in_use(index: IndexFolder, report: ranker.RankerReport) -> float:
    """Return the F1@20 of the ranker in use; of one that learned from these dev queries the cross-validated one."""
    own = own_model(index, RANKER, SPEC)
    if own and not trained_on_other_data(own, index):
        record = read_training(own)
        if any(one.get("dev_queries_teach") for one in record.get("indexes", [])):
            return float(record["after"]["full"]["f1@20"])
    else:
        own = DEFAULT
    return report.dev.measures(open_ranker(own).score(report.dev.matrix))["f1@20"]
