"""Trains the models of an index in order, encoder, reranker and ranker, and uses those that are better on dev."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citerec.build.vectors import EmbedConfig, embed_anew
from citerec.config import DenseIndexConfig
from citerec.encode.encoder import open_encoder, reopen
from citerec.encode.models import weights_files
from citerec.encode.spec import EncodeConfig
from citerec.files.atomic import replace_folder
from citerec.files.cache import sha256_of_files
from citerec.index.folder import RANKER, RERANKER, IndexFolder, open_index
from citerec.rank.ltr import Variant
from citerec.train import encoder, ranker, reranker
from citerec.train.data import load_training_data
from citerec.train.settings import EncoderTraining, TrainPlan
from citerec.train.trainer import (
    NEW,
    TrainingState,
    encoder_folder,
    own_folder,
    plan_of,
    was_trained_so,
)
from citerec.types import Json, Log, Progress, no_log, no_progress


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
    options: dict[str, Any] = {
        "resume": resume,
        "force": True,
        "progress": progress,
        "log": log,
    }
    reports: list[StepReport] = []

    def trained_before(name: str, plan: Json) -> Path | None:
        """Return the model of a name, in use or not, that was trained so already; None without one."""
        places = index.models / name, index.models / f"{name}{NEW}"
        model = next((place for place in places if was_trained_so(place, plan)), None)
        for place in places if model else ():
            # a run may have failed, or been killed, as it did this
            TrainingState(place).remove()
        log(
            f"{model} was trained with these settings already"
            if model
            else f"training the {name}"
        )
        return model

    def use(
        name: str,
        model: Path,
        metric: str,
        before: float | None,
        after: float | None,
        is_better: bool,
    ) -> bool:
        """Report a new model; return whether it is to be used."""
        is_used = is_better or force
        step = StepReport(
            model=name, metric=metric, before=before, after=after, is_used=is_used
        )
        reports.append(step)
        if not is_used:
            log(f"the {name} is not better, and not used: {model} (to use it: --force)")
        return is_used

    model = trained_before(encoder.NAME, plan_of(plan.encoder, index))
    if model is None:
        own = index.models / encoder.NAME
        in_use = encoder_folder(index)
        # Never in the folder of the encoder in use, whose vectors would become useless.
        model = own_folder(
            own, is_better=not in_use or in_use.resolve() != own.resolve()
        )
        encoder.train_encoder(index, model, plan.encoder, **options)
    if index.encoder_weights != sha256_of_files(weights_files(model)):
        before, after = _encoder_measures(index, model, plan.encoder)
        is_better = before is None or after is None or after > before
        if use(encoder.NAME, model, plan.encoder.metric, before, after, is_better):
            log("encoding the papers")
            threads = plan.encoder.threads
            how = EncodeConfig(threads=threads)
            dense = DenseIndexConfig(threads=threads)
            opened = open_encoder(str(model.resolve()), how, base=index.path)
            embed_anew(
                index.path, opened, EmbedConfig(dense=dense, resume=True), progress
            )
            index = open_index(path)

    def train_one(name: str) -> Path:
        """Train the reranker or the ranker, and report it; return its folder."""
        if name == RANKER:
            ranked = ranker.train_ranker([index], None, plan.ranker, **options)
            after = ranked.after[Variant.FULL]["f1@20"]
            use(name, ranked.output, "f1@20", ranked.in_use, after, ranked.is_better)
            return ranked.output
        report = reranker.train_reranker(index, None, plan.reranker, **options)
        metric = plan.reranker.metric
        before = report.history[0].dev.get(metric)
        after = report.best.dev.get(metric)
        use(name, report.output, metric, before, after, report.is_better)
        return report.output

    for name in (RERANKER, RANKER):
        wanted = (
            ranker.plan_of(plan.ranker, [index])
            if name == RANKER
            else plan_of(plan.reranker, index)
        )
        model = trained_before(name, wanted) or train_one(name)
        own = index.models / name
        if force and model != own:
            replace_folder(model, own)
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
    before, after = (dev.measures(model)[config.metric] for model in (present, new))
    return before, after
