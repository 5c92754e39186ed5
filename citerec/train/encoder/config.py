"""Settings of the training of an encoder: a recipe, a TOML file that overrides it, options that override both."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from citerec.encode.config import Precision
from citerec.encode.spec import Pooling, Separator, Similarity
from citerec.errors import ConfigError
from citerec.text import EncoderForm
from citerec.train.encoder.sources import (
    EncoderNegatives,
    EncoderPositives,
    check_counts,
    check_sources,
    listed,
)
from citerec.train.schedule import Schedule
from citerec.train.settings import (
    Kinds,
    check_above_zero,
    check_least,
    checked,
    kinds_of,
    read_settings,
)

DEVICE_BATCH = 8  # triplets per step; several steps make a batch


class EncoderRecipe(StrEnum):
    """A named set of defaults."""

    SPECTER = "specter"  # the settings of the paper, https://arxiv.org/abs/2004.07180
    MODERN = "modern"  # in-batch and mined negatives
    MEMORY = "memory"  # all papers as negatives, from a memory of their last vectors


class EncoderLoss(StrEnum):
    """The loss function."""

    TRIPLET = "triplet"
    IN_BATCH = "in-batch"
    MEMORY = "memory"  # every positive of a query against all papers of the memory


class EncoderSelectionMetric(StrEnum):
    """The measure on the dev queries that selects the best epoch."""

    MRR = "mrr"
    F1 = "f1"  # at 20
    LOSS = "loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderTraining:
    """The settings of the training of an encoder. The defaults are those of the recipe `specter`."""

    recipe: EncoderRecipe = EncoderRecipe.SPECTER
    model: str = "scibert"  # the base model
    seed: int = 0

    loss: EncoderLoss = EncoderLoss.TRIPLET
    margin: float = 1.0  # of the triplet loss, in units of the distance
    temperature: float = 0.05  # of the in-batch and memory losses
    symmetric: bool = False  # in-batch: also rank the queries of each positive

    positives: EncoderPositives = EncoderPositives.CITATIONS
    negatives: EncoderNegatives = EncoderNegatives.CITATIONS
    counts: tuple[str, ...] = ()  # files of counts, all of one kind such as co-views
    sources: tuple[str, ...] = ()  # training signals that are mixed, in place of the three above
    source_weights: tuple[float, ...] = ()  # share of each source among the examples; empty: equal
    queries: int = 0  # train queries, drawn at random; 0 for all
    examples: int = 5  # per query and epoch; in-batch: at most one per positive
    hard: int = (
        2  # triplet: examples of a query with a hard negative; in-batch: hard negatives per example
    )
    fresh: bool = False  # draw new examples in each epoch
    mine_from: int = 10  # the first rank of mined negatives and of distant neighbours, from 1
    mine_to: int = 100  # the last rank
    nearest: int = 5  # nearest neighbours that are positives
    graph_dim: int = 64  # of the embedding of the citation graph
    memory_papers: int = 16_384  # memory: papers at most
    memory_queries: int = 4096  # memory: queries compared in a step at most

    epochs: int = 2
    batch: int = 32  # examples in an update of the weights; memory: papers
    device_batch: int = 0  # examples in a step of one device; 0 for the default of the loss
    learning_rate: float = 2e-5
    warmup: float = 0.1  # share of the updates in which the rate rises; then it falls linearly to 0
    weight_decay: float = 0.01
    dropout: bool = True  # the rates of the base model; False disables dropout

    max_tokens: int = 0  # of the trained model; 0 for that of the base model
    train_tokens: int = 0  # in training; 0 for `max_tokens`
    pooling: Pooling | None = None  # None for that of the base model, here and below
    similarity: Similarity | None = None
    separator: Separator | None = None
    form: EncoderForm | None = None

    dev_queries: int = 200  # evaluated after each epoch; 0 for none
    dev_pool: int = 2000  # candidate papers of the dev queries
    selection_metric: EncoderSelectionMetric = (
        EncoderSelectionMetric.MRR
    )  # selects the epoch of the saved weights
    save_steps: int = 0  # updates between further checkpoints; 0: one per epoch only
    precision: Precision = Precision.AUTO
    device: str = "auto"  # or cpu
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_above_zero(self, "margin", "temperature", "learning_rate")
        if self.seed >= 2**32:
            raise ConfigError(f"seed must be less than 2^32, got {self.seed}")
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"warmup must lie in [0, 1), got {self.warmup}")
        if self.mine_to < self.mine_from:
            raise ConfigError(
                f"mine_to must be at least mine_from, {self.mine_from}, got {self.mine_to}"
            )
        if self.loss is EncoderLoss.TRIPLET and self.hard > self.examples:
            raise ConfigError(f"hard must be at most examples, {self.examples}, got {self.hard}")
        if self.device not in ("auto", "cpu"):
            raise ConfigError(f"device must be auto or cpu, got {self.device!r}")
        if self.precision is Precision.FLOAT16:
            raise ConfigError("precision must be auto, float32 or bfloat16 in training")
        check_counts((self.positives, self.negatives), self.counts)
        check_sources(self.sources, self.source_weights)
        if self.sources and self.counts:
            raise ConfigError("counts has no effect with sources; name the files in sources")
        if self.sources and self.loss is not EncoderLoss.TRIPLET:
            raise ConfigError(f"sources need the triplet loss, got {self.loss}")
        self._check_batches()

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
        return (
            self.batch
            if self.loss is not EncoderLoss.TRIPLET or self.batch % DEVICE_BATCH
            else DEVICE_BATCH
        )

    @property
    def schedule(self) -> Schedule:
        """How long and how fast it is trained."""
        return Schedule(
            epochs=self.epochs,
            batch=self.batch,
            step=self.step,
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            drop_last=self.loss is EncoderLoss.IN_BATCH,
            save_steps=self.save_steps,
            selection_metric=self.selection_metric,
            seed=self.seed,
            precision=self.precision,
            device=self.device,
        )

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Complete values with the defaults of their recipe.

        Args:
            given: Values by name, from a TOML file or the command line.
            where: The origin of the values, as a prefix of error messages.

        Raises:
            ConfigError: If a name is unknown or a value is invalid.
        """
        values = checked(_KINDS, {n: listed(n, v, where) for n, v in given.items()}, where)
        recipe = values.get("recipe", EncoderRecipe.SPECTER)
        return cls(**{"recipe": recipe, **_RECIPES[recipe], **values})

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values, without empty lists and without an unlimited number of queries."""
        values = asdict(self)
        omitted_if_empty = {"counts", "sources", "source_weights", "queries"}
        return {
            name: value for name, value in values.items() if value or name not in omitted_if_empty
        }


def read_training(file: Path | None, options: Mapping[str, Any]) -> EncoderTraining:
    """Read the settings: options override the file, the file overrides the recipe.

    Args:
        file: TOML; keys as the fields of `EncoderTraining`.
        options: From the command line; None means not given.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it is invalid.
    """
    return read_settings(EncoderTraining.of, file, options)


_LEAST = {
    "seed": 0,
    "queries": 0,
    "examples": 1,
    "hard": 0,
    "mine_from": 1,
    "nearest": 1,
    "graph_dim": 1,
    "epochs": 1,
    "batch": 1,
    "device_batch": 0,
    "weight_decay": 0,
    "max_tokens": 0,
    "train_tokens": 0,
    "memory_papers": 2,
    "memory_queries": 1,
    "dev_queries": 0,
    "dev_pool": 1,
    "save_steps": 0,
    "threads": 0,
}
_OPTIONAL = {
    "pooling": Pooling,
    "similarity": Similarity,
    "separator": Separator,
    "form": EncoderForm,
}
_KINDS: Kinds = kinds_of(EncoderTraining, _OPTIONAL)
_RECIPES: Mapping[EncoderRecipe, Mapping[str, Any]] = {
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
}
