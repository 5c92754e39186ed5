"""Trains the models of an index in order, encoder, reranker and ranker, and uses those that are better on dev."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import model_validator

from citerec.config import DenseIndexConfig, Settings, read_settings
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.encoder import open_encoder, reopen
from citerec.encode.models import weights_files
from citerec.encode.spec import EncodeConfig, Fingerprint
from citerec.folder import IndexFolder, open_index
from citerec.io import read_toml, replace_folder, sha256_of_files
from citerec.rank.ltr import DEFAULT, SPEC, Variant, open_ranker
from citerec.rules.held_out import RANKER, RERANKER, own_model, trained_on_other_data
from citerec.train import encoder, ranker, reranker
from citerec.train.data import load_training_data
from citerec.train.settings import EncoderTraining, RankerTraining, RerankerTraining
from citerec.train.trainer import encoder_folder, encoder_of, read_training
from citerec.types import Log, Progress, no_log, no_progress

ENCODER, NEW = "encoder", "-new"  # the folder of an encoder; suffix of a model that is not in use

# (model, measure, before, after, folder) -> whether the new model is used
Decision = Callable[[str, str, float | None, float | None, Path], bool]


class TrainPlan(Settings):
    """The settings of each step. By default small models, which a few cores train in an hour.

    A table with another recipe has the defaults of that recipe.
    """

    DEFAULTS: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        ENCODER: {"recipe": "strong", "queries": 3_000, "train_tokens": 128, "dev_pool": 1_500},
        RERANKER: {
            "recipe": "strong",
            "queries": 3_000,
            "query_tokens": 96,
            "candidate_tokens": 64,
            "steps": 400,
            "batch": 8,
            "eval_steps": 100,
            "dev_queries": 100,
        },
        RANKER: {"dev_queries": 300, "rerank_depth": 20},
    }

    encoder: EncoderTraining
    reranker: RerankerTraining
    ranker: RankerTraining

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, given: Mapping[str, Any]) -> Any:
        def table(name: str, defaults: Mapping[str, Any]) -> Any:
            values = given.get(name, {})
            if not isinstance(values, Mapping):
                return values
            is_default = values.get("recipe", defaults.get("recipe")) == defaults.get("recipe")
            return {**(defaults if is_default else {}), **values}

        return {**given, **{name: table(name, of) for name, of in cls.DEFAULTS.items()}}

    @classmethod
    def read(cls, file: Path | None, options: Mapping[str, Any]) -> Self:
        """Read a plan: options, which hold for each step, override a TOML file with a table per step.

        Raises:
            BadInputError: If the file cannot be read.
            ConfigError: If a table, a name or a value is invalid.
        """
        tables = read_toml(file) if file else {}
        plan = read_settings(cls, tables, f"{file}: ")
        return plan.replace(
            **{name: getattr(plan, name).replace(**options) for name in cls.model_fields}
        )


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
    """Train each model of an index next to the one in use, which it replaces if it is better on dev.

    Steps that are done with the same settings are not repeated.

    Args:
        path: The index.
        plan: The settings of the steps.
        resume: Continue an interrupted training.
        force: Use models that are not better on dev.
        progress: Receives task, done and total of each kind of work.
        log: Receives what is done, and why a model is not used.

    Raises:
        ConfigError: If there is nothing to train on, or an interrupted training had other settings.
        MissingExtraError: If a package of the extra `train` is not installed.
        CiterecError: As the single trainings raise.
    """
    index = open_index(path)
    load_training_data(index)  # refuses an index without train queries
    options: dict[str, Any] = {"resume": resume, "force": True, "progress": progress, "log": log}
    reports: list[StepReport] = []

    def is_used(
        name: str, metric: str, before: float | None, after: float | None, model: Path
    ) -> bool:
        used = force or before is None or after is None or after > before
        reports.append(
            StepReport(model=name, metric=metric, before=before, after=after, is_used=used)
        )
        if not used:
            log(f"the {name} is not better, and not used: {model} (to use it: --force)")
        return used

    index = _train_encoder(index, plan.encoder, is_used, options)
    _train_reranker(index, plan.reranker, is_used, options)
    _train_ranker(index, plan.ranker, is_used, options)
    return reports


def _train_encoder(
    index: IndexFolder, config: EncoderTraining, is_used: Decision, options: Mapping[str, Any]
) -> IndexFolder:
    """Train the encoder, and encode the papers if it is better over a sample of papers than that of the index."""
    places = [index.models / ENCODER, index.models / f"{ENCODER}{NEW}"]
    done = [place for place in places if encoder.was_trained_so(place, index, config)]
    # Never the folder of the encoder in use, whose vectors would become useless.
    in_use = encoder_folder(index)
    free = [place for place in places if not in_use or place.resolve() != in_use.resolve()]
    model = (done or free)[0]
    if done:
        options["log"](f"{model} was trained with these settings already")
    else:
        options["log"](f"training the encoder: {model}")
        encoder.train_encoder(index, model, config, **options)
    if encoder_of(index) == sha256_of_files(weights_files(model)):
        return index
    metric, new = config.metric, str(model.resolve())
    before = after = None
    dev, recorded = encoder.EncoderDev.load(index, config), index.manifest.settings.get("encoder")
    if dev and recorded:
        present = reopen(Fingerprint.from_json(recorded), index.path, config.running)
        before = dev.measures(present)[metric]
        after = dev.measures(open_encoder(new, config.running, base=index.path))[metric]
    if not is_used(ENCODER, metric, before, after, model):
        return index
    options["log"]("encoding the papers")
    threads = config.threads
    opened = open_encoder(new, EncodeConfig(threads=threads), base=index.path)
    dense = DenseIndexConfig(threads=threads)
    embed_anew(index.path, opened, EmbedConfig(dense=dense, resume=True), options["progress"])
    return open_index(index.path)


def _train_reranker(
    index: IndexFolder, config: RerankerTraining, is_used: Decision, options: Mapping[str, Any]
) -> None:
    """Train the reranker, and use it if it improves the first stage."""
    own = index.models / RERANKER
    if reranker.was_trained_so(own, index, config):
        options["log"](f"{own} was trained with these settings already")
        return
    model = own.with_name(f"{RERANKER}{NEW}")
    options["log"](f"training the reranker: {model}")
    report = reranker.train_reranker(index, model, config, **options)
    metric = config.metric
    if is_used(RERANKER, metric, report.before.get(metric), report.after.get(metric), model):
        replace_folder(model, own)


def _train_ranker(
    index: IndexFolder, config: RankerTraining, is_used: Decision, options: Mapping[str, Any]
) -> None:
    """Train the ranker, and use it if it ranks the dev queries better than the one in use."""
    own = index.models / RANKER
    if ranker.was_trained_so(own, [index], config):
        options["log"](f"{own} was trained with these settings already")
        return
    model = own.with_name(f"{RANKER}{NEW}")
    options["log"](f"training the ranker: {model}")
    report = ranker.train_ranker([index], model, config, **options)
    before = after = None
    if len(report.dev):
        before, after = _present(index, report), report.after[Variant.FULL]["f1@20"]
    if is_used(RANKER, "f1@20", before, after, model):
        replace_folder(model, own)


def _present(index: IndexFolder, report: ranker.RankerReport) -> float:
    """Return the F1@20 of the ranker in use; of one that learned from these dev queries the cross-validated one."""
    own = own_model(index, RANKER, SPEC)
    if own and not trained_on_other_data(own, index):
        record = read_training(own)
        if any(one.get("dev_queries_teach") for one in record.get("indexes", [])):
            return float(record["after"]["full"]["f1@20"])
    else:
        own = DEFAULT
    return report.dev.measures(open_ranker(own).score(report.dev.matrix))["f1@20"]
