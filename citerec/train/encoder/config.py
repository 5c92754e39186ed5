"""How an encoder is trained: three named recipes, a TOML file, and options that win over both."""

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
    Negatives,
    Positives,
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

DEVICE_BATCH = 8  # triples in a step, where batches are put together from several


class Recipe(StrEnum):
    """Three sets of defaults."""

    SPECTER = "specter"  # as the paper states it, https://arxiv.org/abs/2004.07180
    MODERN = "modern"  # in-batch negatives and mined ones
    MEMORY = "memory"  # all papers at once, as they were read last


class Loss(StrEnum):
    """What is minimised."""

    TRIPLET = "triplet"
    IN_BATCH = "in-batch"
    MEMORY = "memory"  # every positive of a query against all papers, as they were read last


class SelectionMetric(StrEnum):
    """By which measure on the dev queries the best epoch is found."""

    MRR = "mrr"
    F1 = "f1"  # at 20
    LOSS = "loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderTraining:
    """How an encoder is trained. The defaults are those of the recipe `specter`."""

    recipe: Recipe = Recipe.SPECTER
    model: str = "scibert"  # what training begins with
    seed: int = 0

    loss: Loss = Loss.TRIPLET
    margin: float = 1.0  # of the triplet loss, in units of the distance
    temperature: float = 0.05  # of the in-batch loss and that over the memory
    symmetric: bool = False  # in-batch: positives look for their queries, too

    positives: Positives = Positives.CITATIONS
    negatives: Negatives = Negatives.CITATIONS
    counts: tuple[str, ...] = ()  # files of counts, all of one kind
    sources: tuple[str, ...] = ()  # mixed, in place of the three above
    source_weights: tuple[float, ...] = ()  # share of each source among the examples; empty: alike
    queries: int = 0  # train queries that are asked, a random part; 0 for all
    examples: int = 5  # of each query in an epoch; in-batch: at most one for each positive
    hard: int = (
        2  # triplet: of a query's examples, those with a hard negative; in-batch: of each example
    )
    fresh: bool = False  # examples are drawn anew for each epoch
    mine_from: int = 10  # the first rank of mined negatives and of distant neighbours, from 1
    mine_to: int = 100  # the last
    nearest: int = 5  # neighbours that are positives
    graph_dim: int = 64  # of the embedding of the citation graph
    memory_papers: int = 16_384  # memory: at most so many are learned from
    memory_queries: int = 4096  # memory: of these at most so many are compared in a step

    epochs: int = 2
    batch: int = 32  # examples in an update of the weights; memory: papers
    device_batch: int = 0  # examples in a step of one device; 0 for what suits the loss
    learning_rate: float = 2e-5
    warmup: float = 0.1  # share of the updates over which the rate rises; then it falls to 0
    weight_decay: float = 0.01
    dropout: bool = (
        True  # as the base model has it; without, training reads a paper as it is read later
    )

    max_tokens: int = 0  # that the model reads later on; 0 for the base model's
    train_tokens: int = 0  # that it reads in training; 0 for as many
    pooling: Pooling | None = None  # None for the base model's, here and below
    similarity: Similarity | None = None
    separator: Separator | None = None
    form: EncoderForm | None = None

    dev_queries: int = 200  # measured after each epoch; 0 for none
    dev_pool: int = 2000  # papers that they are searched in
    selection_metric: SelectionMetric = (
        SelectionMetric.MRR
    )  # the weights of the epoch that is best by this
    save_steps: int = 0  # updates between checkpoints, besides that of each epoch; 0 for none
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
            raise ConfigError(f"mine_to {self.mine_to} lies before mine_from {self.mine_from}")
        if self.loss is Loss.TRIPLET and self.hard > self.examples:
            raise ConfigError(f"hard {self.hard} is more than the {self.examples} examples")
        if self.device not in ("auto", "cpu"):
            raise ConfigError(f"device must be auto or cpu, got {self.device!r}")
        if self.precision is Precision.FLOAT16:
            raise ConfigError("precision must be auto, float32 or bfloat16 in training")
        check_counts((self.positives, self.negatives), self.counts)
        check_sources(self.sources, self.source_weights)
        if self.sources and self.counts:
            raise ConfigError("sources name their files themselves; leave counts out")
        if self.sources and self.loss is not Loss.TRIPLET:
            raise ConfigError(f"sources go with the triplet loss, not with {self.loss}")
        self._check_batches()

    def _check_batches(self) -> None:
        if self.loss is not Loss.TRIPLET and min(self.batch, self.step) < 2:
            raise ConfigError(
                f"the {self.loss} loss needs a batch of at least 2, got {min(self.batch, self.step)}"
            )
        if self.loss is Loss.MEMORY and self.batch != self.step:
            raise ConfigError("over the memory a step is a batch; leave device_batch out")
        if self.batch % self.step:
            raise ConfigError(
                f"batch {self.batch} is no multiple of device_batch {self.step}; choose one that is"
            )

    @property
    def step(self) -> int:
        """Examples in a step of one device."""
        if self.device_batch:
            return self.device_batch
        return (
            self.batch
            if self.loss is not Loss.TRIPLET or self.batch % DEVICE_BATCH
            else DEVICE_BATCH
        )

    @property
    def schedule(self) -> Schedule:
        """How long it trains, and how fast."""
        return Schedule(
            epochs=self.epochs,
            batch=self.batch,
            step=self.step,
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            drop_last=self.loss is Loss.IN_BATCH,
            save_steps=self.save_steps,
            selection_metric=self.selection_metric,
            seed=self.seed,
            precision=self.precision,
            device=self.device,
        )

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Complete what is given by the defaults of its recipe.

        Args:
            given: Values by name, as a TOML file or the command line has them.
            where: Who gave them, for errors.

        Raises:
            ConfigError: If there is no such name, or the value cannot be.
        """
        values = checked(_KINDS, {n: listed(n, v, where) for n, v in given.items()}, where)
        recipe = values.get("recipe", Recipe.SPECTER)
        return cls(**{"recipe": recipe, **_RECIPES[recipe], **values})

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; what says nothing is left out: empty lists, no bound on the queries."""
        values = asdict(self)
        silent = {"counts", "sources", "source_weights", "queries"}
        return {name: value for name, value in values.items() if value or name not in silent}


def read_training(file: Path | None, options: Mapping[str, Any]) -> EncoderTraining:
    """Read how to train: options win over the file, the file over the recipe.

    Args:
        file: TOML, keys as the fields of `EncoderTraining`.
        options: From the command line; None means not given.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it cannot be.
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
_RECIPES: Mapping[Recipe, Mapping[str, Any]] = {
    Recipe.SPECTER: {
        "pooling": Pooling.CLS,
        "similarity": Similarity.L2,
        "separator": Separator.TOKEN,
        "form": EncoderForm.TITLE_ABSTRACT,
        "max_tokens": 512,
    },
    Recipe.MODERN: {
        "model": "minilm",
        "loss": Loss.IN_BATCH,
        "negatives": Negatives.MINED,
        "hard": 1,
        "fresh": True,
        "epochs": 3,
        "learning_rate": 3e-5,
    },
    Recipe.MEMORY: {
        "model": "minilm",
        "loss": Loss.MEMORY,
        "hard": 0,
        "dropout": False,
        "epochs": 4,
        "batch": 64,
        "learning_rate": 5e-5,
    },
}
