"""Trains the models of an index in order, encoder, reranker and ranker, and uses those that are better on dev."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from citerec.config import DenseIndexConfig
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.config import EncodeConfig
from citerec.encode.files import weights_files
from citerec.encode.opening import open_encoder, reopen
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError
from citerec.folder import IndexFolder, open_index
from citerec.io import read_toml, replace_folder, sha256_of_files
from citerec.rank.ltr import DEFAULT, SPEC, Variant, open_ranker
from citerec.rules.held_out import RANKER, RERANKER, own_model, trained_on_other_data
from citerec.train import encoder, ranker, reranker
from citerec.train.data import load_training_data
from citerec.train.record import encoder_folder, encoder_of, read_training
from citerec.train.settings import Budget, EncoderTraining, RankerTraining, RerankerTraining
from citerec.types import Log, Progress, no_progress

ENCODER, NEW = "encoder", "-new"  # the folder of an encoder; suffix of a model that is not in use


SETTINGS: Mapping[Budget, Mapping[str, Mapping[str, Any]]] = {
    Budget.MINUTES: {RANKER: {"dev_queries": 300, "rerank_queries": 300, "rerank_depth": 20}},
    Budget.HOUR: {
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
    },
    Budget.NIGHT: {
        ENCODER: {"recipe": "specter"},
        # A third of the updates of the paper, whose corpus has millions of papers.
        RERANKER: {"recipe": "paper", "steps": 100_000},
        RANKER: {"queries": 20_000, "rerank_depth": 100},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPlan:
    """The settings of each step; None for a step that is left out."""

    encoder: EncoderTraining | None
    reranker: RerankerTraining | None
    ranker: RankerTraining

    @classmethod
    def read(
        cls, budget: Budget, file: Path | None = None, options: Mapping[str, Any] | None = None
    ) -> "TrainPlan":
        """Return the plan of a budget.

        Args:
            budget: Which steps there are, and their default settings.
            file: TOML with a table per step: its settings, as of the single commands.
            options: Settings of all steps, such as threads; None means not given.

        Raises:
            BadInputError: If the file cannot be read.
            ConfigError: If a table, a name or a value is invalid.
        """
        tables: Mapping[str, Any] = read_toml(file) if file else {}
        defaults = SETTINGS[budget]
        for name, table in tables.items():
            if name not in defaults or not isinstance(table, Mapping):
                steps = ", ".join(f"[{step}]" for step in defaults)
                raise ConfigError(f"{file}: budget {budget} has the tables {steps}, found {name!r}")
        given = {name: value for name, value in (options or {}).items() if value is not None}

        def of(step: str) -> dict[str, Any]:
            table: Mapping[str, Any] = tables.get(step, {})
            return {**defaults[step], **table, **given}

        where = f"{file}: " if file else ""
        return cls(
            encoder=EncoderTraining.of(of(ENCODER), where) if ENCODER in defaults else None,
            reranker=RerankerTraining.of(of(RERANKER), where) if RERANKER in defaults else None,
            ranker=RankerTraining.of(of(RANKER), where),
        )

    def lines(self) -> list[str]:
        """Describe the steps, one per line."""
        models = {"train-encoder": self.encoder, "train-reranker": self.reranker}
        lines = [
            f"{command}: recipe {one.recipe}, base {one.model}, "
            + (f"{one.steps:,} updates" if one.steps else f"{one.epochs} epochs")
            + f", {_queries(one.queries)}"
            for command, one in models.items()
            if one
        ]
        return [*lines, f"train-ranker: {_queries(self.ranker.queries)}"]


def _queries(limit: int) -> str:
    return f"at most {limit:,} train queries" if limit else "all train queries"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What a step gives on the dev queries."""

    model: str
    metric: str
    before: float | None  # with the models in use before the step
    after: float | None
    is_used: bool


@dataclass(slots=True, kw_only=True)
class IndexTraining:
    """The training of all models of one index; steps that are done with the same settings are not repeated."""

    path: Path
    plan: TrainPlan
    resume: bool = False  # continue an interrupted training
    force: bool = False  # use models that are not better on dev
    progress: Progress = no_progress
    log: Log = lambda message: None
    reports: list[StepReport] = field(default_factory=list[StepReport])

    def run(self) -> list[StepReport]:
        """Train each model next to the one in use, which it replaces if it is better on dev.

        Raises:
            ConfigError: If there is nothing to train on, or an interrupted training had other settings.
            MissingExtraError: If a package of the extra `train` is not installed.
            CiterecError: As the single trainings raise.
        """
        index = open_index(self.path)
        load_training_data(index)  # refuses an index without train queries
        if self.plan.encoder:
            index = self._encoder(index, self.plan.encoder)
        if self.plan.reranker:
            self._reranker(index, self.plan.reranker)
        self._ranker(index, self.plan.ranker)
        return self.reports

    @property
    def _options(self) -> dict[str, Any]:
        callbacks = {"progress": self.progress, "log": self.log}
        return {"resume": self.resume, "force": True, **callbacks}

    def _encoder(self, index: IndexFolder, config: EncoderTraining) -> IndexFolder:
        """Train the encoder, and encode the papers if it is better over a sample of papers than that of the index."""
        places = [index.models / ENCODER, index.models / f"{ENCODER}{NEW}"]
        done = [place for place in places if encoder.was_trained_so(place, index, config)]
        # Never the folder of the encoder in use, whose vectors would become useless.
        in_use = encoder_folder(index)
        free = [p for p in places if not in_use or p.resolve() != in_use.resolve()]
        model = (done or free)[0]
        if not done:
            self.log(f"training the encoder: {model}")
            encoder.train_encoder(index, model, config, **self._options)
        if encoder_of(index) == sha256_of_files(weights_files(model)):
            self.log("the papers are encoded by this encoder already")
            return index
        opened = open_encoder(str(model.resolve()), config.running, base=index.path)
        before = after = None
        dev, recorded = encoder.load_dev(index, config), index.manifest.settings.get("encoder")
        if dev and recorded:
            present = reopen(Fingerprint.from_json(recorded), index.path, config.running)
            metric = str(config.selection_metric)
            before, after = (encoder.measure(dev, one)[metric] for one in (present, opened))
        if not self._decided(ENCODER, str(config.selection_metric), before, after, model):
            return index
        self.log("encoding the papers")
        threads = config.threads
        opened = open_encoder(str(model.resolve()), EncodeConfig(threads=threads), base=index.path)
        dense = DenseIndexConfig(threads=threads)
        embed_anew(index.path, opened, EmbedConfig(dense=dense, resume=True), self.progress)
        return open_index(index.path)

    def _reranker(self, index: IndexFolder, config: RerankerTraining) -> None:
        """Train the reranker, and use it if it improves the first stage."""
        own = index.models / RERANKER
        if reranker.was_trained_so(own, index, config):
            self.log("the reranker was trained with these settings already")
            return
        model = own.with_name(f"{RERANKER}{NEW}")
        self.log(f"training the reranker: {model}")
        report = reranker.train_reranker(index, model, config, **self._options)
        metric = str(config.selection_metric)
        before, after = report.before.get(metric), report.after.get(metric)
        if self._decided(RERANKER, metric, before, after, model):
            replace_folder(model, own)

    def _ranker(self, index: IndexFolder, config: RankerTraining) -> None:
        """Train the ranker, and use it if it ranks the dev queries better than the one in use."""
        own = index.models / RANKER
        if ranker.was_trained_so(own, [index], config):
            self.log("the ranker was trained with these settings already")
            return
        model = own.with_name(f"{RANKER}{NEW}")
        self.log(f"training the ranker: {model}")
        report = ranker.train_ranker([index], model, config, **self._options)
        before = after = None
        if len(report.dev):
            before, after = _present(index, report), report.after[Variant.FULL]["f1@20"]
        if self._decided(RANKER, "f1@20", before, after, model):
            replace_folder(model, own)

    def _decided(
        self, name: str, metric: str, before: float | None, after: float | None, model: Path
    ) -> bool:
        """Return whether a new model is used; log why."""
        is_better = before is None or after is None or after > before
        used = is_better or self.force
        self.reports.append(
            StepReport(model=name, metric=metric, before=before, after=after, is_used=used)
        )
        if not used:
            self.log(f"the {name} is not better, and not used: {model} (to use it: --force)")
        return used


def _present(index: IndexFolder, report: "ranker.RankerReport") -> float:
    """Return the F1@20 of the ranker in use; of one that learned from these dev queries the cross-validated one."""
    own = own_model(index, RANKER, SPEC)
    if own and not trained_on_other_data(own, index):
        record = read_training(own)
        if any(one.get("dev_queries_teach") for one in record.get("indexes", [])):
            return float(record["after"]["full"]["f1@20"])
    else:
        own = DEFAULT
    return report.dev.measures(open_ranker(own).score(report.dev.matrix))["f1@20"]
