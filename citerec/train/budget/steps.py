"""Trains the models of an index in order: encoder, vectors, reranker, ranker; each is used only if it is better on dev.

A new model is trained next to the one in use, and takes its place in one step. One that is not better stays next to it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from citerec.atomic import replace_folder
from citerec.cache import sha256_of_files
from citerec.config import DenseIndexConfig
from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.config import EncodeConfig
from citerec.encode.files import weights_files
from citerec.encode.minilm import MINILM
from citerec.encode.opening import open_encoder, reopen
from citerec.encode.source import SHIPPED
from citerec.encode.spec import Fingerprint
from citerec.folder import IndexFolder, open_index
from citerec.manifest import MODELS
from citerec.rerank.choose import auto_reranker
from citerec.rules.held_out import RANKER, RERANKER, trained_on_other_splits
from citerec.train.budget.dev import DevSample, Measures, best_reranked, final, system_measures
from citerec.train.budget.device import check_device
from citerec.train.budget.plan import TrainPlan
from citerec.train.data import load_training_data
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.dev import load_dev, measure
from citerec.train.encoder.train import train_encoder
from citerec.train.encoder.train import was_trained_so as was_encoder_trained_so
from citerec.train.ranker.train import train_ranker
from citerec.train.ranker.train import was_trained_so as was_ranker_trained_so
from citerec.train.record import corpus_facts, encoder_folder, encoder_of, read_training
from citerec.train.reranker.config import RerankerTraining
from citerec.train.reranker.train import train_reranker
from citerec.train.reranker.train import was_trained_so as was_reranker_trained_so
from citerec.train.workspace import Workspace
from citerec.types import Log, Progress, no_progress

ENCODER, NEW = "encoder", "-new"  # the folder of an encoder; suffix of a model that is not in use
BEFORE = "before"  # name of the first measures in the training folder
METRICS = {"f1": "F1@20", "mrr": "MRR"}  # shown names


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReport:
    """The measures of an index before and after the training."""

    queries: int  # dev queries; 0 if there are none, and nothing is measured
    before: Mapping[str, Measures] = field(default_factory=dict[str, Measures])  # by system
    after: Mapping[str, Measures] = field(default_factory=dict[str, Measures])
    refused: tuple[str, ...] = ()  # the names of the models that are not better, and not used


@dataclass(slots=True, kw_only=True)
class IndexTraining:
    """The training of all models of one index."""

    path: Path
    plan: TrainPlan
    resume: bool = False  # continue an interrupted training
    force: bool = False  # use models that are not better on dev
    progress: Progress = no_progress
    log: Log = lambda message: None
    refused: list[str] = field(default_factory=list[str])
    _step: int = 0

    def run(self) -> BudgetReport:
        """Train what is not yet trained with these settings.

        Raises:
            ConfigError: If there is nothing to train on, a GPU is missing, or the interrupted training had other
                settings.
            MissingExtraError: If a package of the extra `train` is not installed.
            CiterecError: As the single trainings raise.
        """
        index = open_index(self.path)
        load_training_data(index)  # refuses an index without train queries
        check_device(self.plan)
        sample = DevSample.of(index, self.plan.ranker)
        if sample is None:
            self.log("there are no dev queries: nothing is measured, and every new model is used")
        workspace = training_folder(index.path)
        workspace.open(self.plan.to_json() | corpus_facts(index), resume=self.resume, log=self.log)
        with workspace.removed_if_refused((BEFORE,)):
            before = self._before(index, sample, workspace)
            index = self._encoder(index)
            self._reranker(index, sample)
            self._ranker(index, sample)
            after = system_measures(index, sample, self.log, self.progress) if sample else {}
        workspace.remove()
        return BudgetReport(
            queries=len(sample) if sample else 0,
            before=before,
            after=after,
            refused=tuple(self.refused),
        )

    def _before(
        self, index: IndexFolder, sample: DevSample | None, workspace: Workspace
    ) -> Mapping[str, Measures]:
        """Return the measures before the training; those of an interrupted training are kept."""
        if sample is None:
            return {}
        if saved := workspace.load(BEFORE):
            return saved[1]
        measures = system_measures(index, sample, self.log, self.progress)
        workspace.save(BEFORE, {}, measures)
        return measures

    def _encoder(self, index: IndexFolder) -> IndexFolder:
        """Train the encoder, and encode the papers if it is better than the encoder of the index."""
        config = self.plan.encoder
        if config is None:
            return index
        done = partial(was_encoder_trained_so, index=index, config=config)
        model = encoder_place(index, done)
        options = self._options
        self._train(ENCODER, done(model), lambda: train_encoder(index, model, config, **options))
        if encoder_of(index) == sha256_of_files(weights_files(model)):
            self._next("the papers are encoded by this encoder already")
            return index
        if not self._is_better_encoder(index, config, model):
            self._next("the vectors stay as they are")
            return index
        self._next("encoding the papers")
        threads = config.threads
        opened = open_encoder(
            str(model.resolve()), EncodeConfig(threads=threads), base=index.path, log=self.log
        )
        dense = DenseIndexConfig(threads=threads)
        embed_anew(index.path, opened, EmbedConfig(dense=dense, resume=True), self.progress)
        return open_index(index.path)

    def _is_better_encoder(self, index: IndexFolder, config: EncoderTraining, model: Path) -> bool:
        """Compare an encoder with that of the index over a sample of papers, which both encode."""
        dev, recorded = load_dev(index, config), index.manifest.settings.get("encoder")
        if dev is None or not recorded:
            return True
        fingerprint = Fingerprint.from_json(recorded)
        present = reopen(fingerprint, index.path, config.running, log=self.log)
        new = open_encoder(str(model.resolve()), config.running)
        metric = str(config.selection_metric)
        before, after = (measure(dev, one, config)[metric] for one in (present, new))
        return self._decided(ENCODER, f"dev {METRICS[metric]}", before, after, model)

    def _reranker(self, index: IndexFolder, sample: DevSample | None) -> None:
        """Train the reranker, and use it if it improves the first stage more than the present one."""
        config, own = self.plan.reranker, index.models / RERANKER
        if config is None:
            return
        config = with_clean_base(config, index, self.log)
        model = own if was_reranker_trained_so(own, index, config) else _new(own)
        is_done = was_reranker_trained_so(model, index, config)
        options = self._options
        self._train(RERANKER, is_done, lambda: train_reranker(index, model, config, **options))
        if model == own:
            return
        is_better = True
        if sample:
            places = (auto_reranker(index, default=True, same_data=True), str(model.absolute()))
            before, after = (
                best_reranked(index, sample, one, self.log, self.progress) for one in places
            )
            is_better = self._decided(RERANKER, "dev F1@20", before, after, model)
        if is_better:
            replace_folder(model, own)

    def _ranker(self, index: IndexFolder, sample: DevSample | None) -> None:
        """Train the ranker, and use it if its recommendations are better than those of the index now."""
        config, own = self.plan.ranker, index.models / RANKER
        model = own if was_ranker_trained_so(own, [index], config) else _new(own)
        is_done = was_ranker_trained_so(model, [index], config)
        options = self._options
        self._train(RANKER, is_done, lambda: train_ranker([index], model, config, **options))
        if model == own:
            return
        is_better = True
        if sample:
            present = final(system_measures(index, sample, self.log, self.progress))
            new: Measures = read_training(model)["after"]["full"]
            is_better = self._decided(RANKER, "dev F1@20", present["f1@20"], new["f1@20"], model)
        if is_better:
            replace_folder(model, own)

    @property
    def _options(self) -> dict[str, Any]:
        """The options of each training; a model next to the one in use may be replaced."""
        callbacks = {"progress": self.progress, "log": self.log}
        return {"resume": self.resume, "force": True, **callbacks}

    def _train(self, name: str, is_done: bool, run: Callable[[], object]) -> None:
        if is_done:
            self._next(f"the {name} was trained with these settings already")
            return
        self._next(f"training the {name}")
        run()

    def _next(self, message: str) -> None:
        """Log the beginning of the next step."""
        self._step += 1
        self.log(f"[{self._step}/{len(self.plan.steps)}] {message}")

    def _decided(self, name: str, metric: str, present: float, new: float, model: Path) -> bool:
        """Return whether a new model is used; log why."""
        figures = f"{metric} {new:.4f} with the new {name}, {present:.4f} without"
        if new > present:
            self.log(f"{figures}: it is used")
            return True
        if self.force:
            self.log(f"{figures}: it is used although it is not better (--force)")
            return True
        self.refused.append(name)
        self.log(f"{figures}: it is not used; it stays in {model} (to use it: --force)")
        return False


def with_clean_base(config: RerankerTraining, index: IndexFolder, log: Log) -> RerankerTraining:
    """Return settings whose base is not a model of the package that may know test queries of an index."""
    base = SHIPPED.get(config.model)
    if base is None or not trained_on_other_splits(base, index):
        return config
    log(
        f"the base of the reranker is {MINILM}: {config.model} was trained on these papers by other splits, which may "
        "include test queries"
    )
    return replace(config, model=MINILM)


def training_folder(index: Path) -> Workspace:
    """Return the folder that keeps the first measures of an interrupted training."""
    return Workspace.for_model(index / MODELS / "train")


def encoder_place(index: IndexFolder, is_done: Callable[[Path], bool]) -> Path:
    """Return the folder for a new encoder: never that of the encoder in use, whose vectors would become useless.

    Args:
        index: The index.
        is_done: Whether the encoder in a folder is the one to be trained.
    """
    places = (index.models / ENCODER, _new(index.models / ENCODER))
    for place in places:
        if is_done(place):
            return place
    in_use = encoder_folder(index)
    unused = [place for place in places if not in_use or place.resolve() != in_use.resolve()]
    return next((place for place in unused if not place.exists()), unused[-1])


def _new(model: Path) -> Path:
    return model.with_name(f"{model.name}{NEW}")
