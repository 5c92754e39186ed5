"""Settings of the training of an encoder."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.spec import Pooling, Separator, Similarity
from citerec.errors import ConfigError
from citerec.text import EncoderForm
from citerec.train.schedule import Schedule
from citerec.train.settings import (
    AboveZero,
    Batch,
    Device,
    Dtype,
    From0,
    From1,
    Seed,
    Threads,
    TrainingSettings,
)

DEVICE_BATCH = 8  # triplets per step; several steps make a batch
UPDATES = 50  # in an epoch of a linear map
COUNTS_FILE = re.compile(r"\.json(\.(gz|zst|bz2))?$")


class EncoderRecipe(StrEnum):
    """A named set of defaults."""

    SPECTER = "specter"  # the settings of the paper, https://arxiv.org/abs/2004.07180
    MODERN = "modern"  # in-batch and mined negatives
    MEMORY = "memory"  # all papers as negatives, from a memory of their last vectors
    LINEAR = "linear"  # a linear map of the vectors of the base model, which stays as it is


class EncoderLoss(StrEnum):
    """The loss function."""

    TRIPLET = "triplet"
    IN_BATCH = "in-batch"
    MEMORY = "memory"  # every positive of a query against all papers of the memory


class EncoderPositives(StrEnum):
    """The source of positives."""

    CITATIONS = "citations"
    CO_CITATIONS = "co-citations"  # papers most often cited together with the query
    NEIGHBOURS = "neighbours"  # nearest in an embedding of the citation graph
    COUNTS = "counts"  # highest counts in files: co-views, co-reads


class EncoderNegatives(StrEnum):
    """The source of hard negatives."""

    CITATIONS = "citations"  # references of the query's references
    CO_CITATIONS = "co-citations"  # papers seldom cited together with the query
    MINED = "mined"  # top ranks of the fusion of BM25 and the base model
    NEIGHBOURS = "neighbours"  # at some distance in an embedding of the citation graph
    COUNTS = "counts"  # lowest counts above 0 in files


class EncoderSelectionMetric(StrEnum):
    """The measure on the dev queries that selects the best epoch."""

    MRR = "mrr"
    F1 = "f1"  # at 20


GRAPH_KINDS = tuple(kind for kind in EncoderPositives if kind is not EncoderPositives.COUNTS)
_RECIPES: Mapping[str, Mapping[str, Any]] = {
    EncoderRecipe.SPECTER: {
        "pooling": Pooling.CLS,
        "similarity": Similarity.L2,
        "separator": Separator.TOKEN,
        "form": EncoderForm.TITLE_ABSTRACT,
        "max_tokens": 512,
    },
    EncoderRecipe.MODERN: {
        "model": "minilm",
        "loss": EncoderLoss.IN_BATCH,
        "negatives": EncoderNegatives.MINED,
        "hard": 1,
        "fresh": True,
        "epochs": 3,
        "learning_rate": 3e-5,
    },
    EncoderRecipe.MEMORY: {
        "model": "minilm",
        "loss": EncoderLoss.MEMORY,
        "hard": 0,
        "dropout": False,
        "epochs": 4,
        "batch": 64,
        "learning_rate": 5e-5,
    },
    EncoderRecipe.LINEAR: {
        "model": "minilm",
        "loss": EncoderLoss.MEMORY,
        "linear": True,
        "hard": 0,
        "epochs": 6,
        "batch": 256,
        "learning_rate": 1e-3,
        "similarity": Similarity.COSINE,
        "dev_queries": 1000,
        "dev_pool": 5000,
        "selection_metric": EncoderSelectionMetric.F1,
    },
}
# without effect on a linear map: the base model stays as it is, and every paper is a negative
_NOT_OF_LINEAR = (
    *("hard", "negatives", "margin", "examples", "fresh", "dropout"),
    *("max_tokens", "train_tokens", "pooling", "separator", "form"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderTraining(TrainingSettings):
    """The settings of the training of an encoder. The defaults are those of the recipe `specter`."""

    recipe: EncoderRecipe = EncoderRecipe.SPECTER
    model: str = "scibert"  # the base model
    seed: Seed = 0

    linear: bool = (
        False  # train only a linear map of the base model's vectors, with the memory loss
    )
    loss: EncoderLoss = EncoderLoss.TRIPLET
    margin: AboveZero = 1.0  # of the triplet loss, in units of the distance
    temperature: AboveZero = 0.05  # of the in-batch and memory losses

    positives: EncoderPositives = EncoderPositives.CITATIONS
    negatives: EncoderNegatives = EncoderNegatives.CITATIONS
    counts: tuple[str, ...] = ()  # files of counts, all of one kind such as co-views
    sources: tuple[str, ...] = ()  # training signals that are mixed, in place of the three above
    source_weights: tuple[float, ...] = ()  # share of each source among the examples; empty: equal
    queries: From0 = 0  # train queries, drawn at random; 0 for all
    examples: From1 = 5  # per query and epoch; in-batch: at most one per positive
    # Triplet: examples of a query with a hard negative; in-batch: hard negatives per example.
    hard: From0 = 2
    fresh: bool = False  # draw new examples in each epoch

    epochs: From1 = 2
    batch: Batch = 32  # examples in an update of the weights; memory: papers; linear: queries
    device_batch: From0 = 0  # examples in a step of one device; 0 for the default of the loss
    learning_rate: AboveZero = 2e-5
    dropout: bool = True  # the rates of the base model; False disables dropout

    max_tokens: From0 = 0  # of the trained model; 0 for that of the base model
    train_tokens: From0 = 0  # in training; 0 for `max_tokens`
    pooling: Pooling | None = None  # None for that of the base model, here and below
    similarity: Similarity | None = None
    separator: Separator | None = None
    form: EncoderForm | None = None

    dev_queries: From0 = 200  # evaluated after each epoch; 0 for none
    dev_pool: From1 = 2000  # candidate papers of the dev queries
    selection_metric: EncoderSelectionMetric = EncoderSelectionMetric.MRR  # selects the best epoch
    dtype: Dtype = Precision.AUTO
    device: Device = "auto"  # or cpu
    threads: Threads = 0  # 0 for one per processor

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = _RECIPES
    REMOVED: ClassVar[Mapping[str, Any]] = {
        "symmetric": False,
        "mine_from": 10,
        "mine_to": 100,
        "nearest": 5,
        "graph_dim": 64,
        "memory_papers": 16_384,
        "memory_queries": 4096,
        "warmup": 0.1,
        "weight_decay": 0.01,
        "save_steps": 0,
    }

    def check_together(self) -> None:
        """Check the settings that depend on each other.

        Raises:
            ConfigError: If they do not fit.
        """
        if self.loss is EncoderLoss.TRIPLET and self.hard > self.examples:
            raise ConfigError(f"hard must be at most examples, {self.examples}, got {self.hard}")
        if (EncoderPositives.COUNTS in (self.positives, self.negatives)) != bool(self.counts):
            raise ConfigError(
                'counts = ["FILE", ...] needs positives or negatives = "counts", and the reverse; '
                f"got {len(self.counts)} files, positives and negatives {self.positives}, {self.negatives}"
            )
        self._check_sources()
        self._check_batches()
        if self.linear and self.loss is not EncoderLoss.MEMORY:
            raise ConfigError(f"linear needs the memory loss, got {self.loss}")

    def _check_sources(self) -> None:
        """Refuse unknown and repeated sources, and settings that do not match them."""
        sources, weights = self.sources, self.source_weights
        for source in sources:
            if source not in GRAPH_KINDS and not COUNTS_FILE.search(source):
                raise ConfigError(
                    f"sources must be {', '.join(GRAPH_KINDS)} or files that end in .json; got {source!r}"
                )
        if len(set(sources)) < len(sources):
            raise ConfigError(f"sources must differ, got {', '.join(sources)}")
        if len(weights) not in (0, len(sources)):
            raise ConfigError(
                f"source_weights must have one weight per source, got {len(weights)} for {len(sources)}"
            )
        if not all(0 < weight < float("inf") for weight in weights):
            raise ConfigError(f"source_weights must be greater than 0, got {[*weights]}")
        if sources and self.counts:
            raise ConfigError("counts has no effect with sources; name the files in sources")
        if sources and self.loss is not EncoderLoss.TRIPLET:
            raise ConfigError(f"sources need the triplet loss, got {self.loss}")

    @classmethod
    def check_given(cls, given: Mapping[str, Any], where: str) -> None:
        """Refuse settings that have no effect with `linear`.

        Raises:
            ConfigError: If one is given, and is not its default.
        """
        defaults: dict[str, Any] = {field.name: field.default for field in fields(cls)} | {
            "hard": 0
        }
        for name in (n for n in _NOT_OF_LINEAR if cls._is_linear(given) and n in given):
            if given[name] != defaults[name]:
                raise ConfigError(
                    f"{where}{name} has no effect with linear: the base model stays as it is, and every paper is a "
                    "negative; remove it"
                )

    @classmethod
    def replaced_by(cls, given: Mapping[str, Any]) -> set[str]:
        """Return the names of settings that given ones leave without effect: `linear` those of reading texts."""
        return {*_NOT_OF_LINEAR} if cls._is_linear(given) else set()

    @classmethod
    def _is_linear(cls, given: Mapping[str, Any]) -> bool:
        recipe = given.get("recipe", "")
        of_recipe = cls.RECIPES.get(recipe, {}) if isinstance(recipe, str) else {}
        return bool(given.get("linear", of_recipe.get("linear")))

    def _check_batches(self) -> None:
        if self.loss is not EncoderLoss.TRIPLET and min(self.batch, self.step) < 2:
            raise ConfigError(
                f"the {self.loss} loss needs a batch of at least 2, got {min(self.batch, self.step)}"
            )
        if self.loss is EncoderLoss.MEMORY and self.batch != self.step:
            raise ConfigError("the memory loss has one step per batch; remove device_batch")
        if self.batch % self.step:
            raise ConfigError(
                f"batch must be a multiple of device_batch, {self.step}, got {self.batch}"
            )

    @property
    def step(self) -> int:
        """Examples in a step of one device."""
        if self.device_batch:
            return self.device_batch
        in_steps = self.loss is EncoderLoss.TRIPLET and self.batch % DEVICE_BATCH == 0
        return DEVICE_BATCH if in_steps else self.batch

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained: on the dev queries, or to mine hard negatives."""
        return EncodeConfig(device=self.device, precision=self.dtype, threads=self.threads)

    @property
    def schedule(self) -> Schedule:
        """How long and how fast it is trained."""
        return Schedule(
            epochs=self.epochs,
            batch=self.batch,
            step=self.step,
            learning_rate=self.learning_rate,
            drop_last=self.loss is EncoderLoss.IN_BATCH,
            selection_metric=self.selection_metric,
            seed=self.seed,
            dtype=self.dtype,
            device=self.device,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values, without empty lists and other settings that are not in use."""
        omitted_if_empty = {"counts", "sources", "source_weights", "queries", "linear"}
        values = TrainingSettings.to_json(self)
        return {n: value for n, value in values.items() if value or n not in omitted_if_empty}
