"""How a cross-encoder is trained: three named recipes, a TOML file, and options that win over both."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from citerec.encode.config import EncodeConfig, Precision
from citerec.errors import ConfigError
from citerec.rerank.spec import RerankerSpec
from citerec.train.schedule import Schedule
from citerec.train.settings import (
    Kinds,
    check_above_zero,
    check_least,
    checked,
    kinds_of,
    read_settings,
)

NO_TEACHER, BY_ENCODER, BY_FUSION = "none", "encoder", "fused"  # any other is a model


class Recipe(StrEnum):
    """Three sets of defaults."""

    PAPER = "paper"  # as the paper states it, https://aclanthology.org/2020.sdp-1.10
    PAPER_SMALL = "paper-small"  # the same for a small corpus and a small model
    STRONG = "strong"  # lists of the fused candidates


class Loss(StrEnum):
    """What is minimised."""

    BCE = "bce"  # each pair by itself: cited or not
    SOFTMAX = "softmax"  # the cited one against its list
    RANKNET = "ranknet"
    LAMBDA = "lambda"
    MARGIN_MSE = "margin-mse"  # differences of scores as the teacher has them


class Candidates(StrEnum):
    """Where the candidates of a query come from."""

    BM25 = "bm25"
    FUSED = "fused"  # RRF of BM25 and the index's vectors; BM25 alone where it has none


class Positives(StrEnum):
    """Which cited papers are learned from."""

    FOUND = "found"  # those among the candidates
    ALL = "all"  # all: then where a paper comes from tells whether it is cited


class Negatives(StrEnum):
    """Which papers are learned from that are not cited."""

    FOUND = "found"  # candidates
    RANDOM = "random"  # and random papers: the same leak from the other side


class SelectionMetric(StrEnum):
    """By which measure on the dev queries the best weights are found."""

    F1 = "f1"  # at 20
    MRR = "mrr"
    MIXED = "mixed"  # f1 of the best mixture with the scores of the candidates
    LOSS = "loss"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerTraining:
    """How a cross-encoder is trained. The defaults are those of the recipe `paper`."""

    recipe: Recipe = Recipe.PAPER
    model: str = "scibert"  # what training begins with
    seed: int = 0
    query_tokens: int = 256  # [CLS] and the first [SEP] within, in training and later
    candidate_tokens: int = 256  # the last [SEP] within

    candidates: Candidates = Candidates.BM25
    depth: int = 10  # candidates of a query
    positives: Positives = Positives.FOUND
    negatives: Negatives = Negatives.FOUND
    random_negatives: int = 10  # of a query, if they are wanted
    queries: int = 0  # that are learned from, at random; 0 for all

    list_negatives: int = 0  # that stand against one positive; 0: each pair by itself, as found
    examples: int = 0  # lists: positives of a query in an epoch; 0 for all
    negatives_from: int = 1  # lists: the first rank of negatives
    negatives_to: int = 0  # the last; 0 for the last candidate
    margin: float = (
        0.0  # lists: of the positive's score, above which a negative may be a citation; 0: none is
    )
    easy_first: float = 0.0  # lists: share of the first epoch's negatives that are of deep ranks

    loss: Loss = Loss.BCE
    teacher: str = NO_TEACHER  # or encoder (the index's own), fused, or the folder of an encoder or cross-encoder
    # The teacher's scores have a spread of 1 in a list, but for margin-mse: there those of a cross-encoder are as it
    # gives them.
    distill: float = 0.0  # weight of the teacher's order of each list beside the loss
    temperature: float = 1.0  # of the teacher's order
    warm_steps: int = 0  # first updates, which learn the teacher's scores and no labels

    epochs: int = 1
    steps: int = 0  # updates in all; 0 for those of the epochs
    batch: int = 128  # pairs in an update of the weights; lists, where there are lists
    micro: int = 0  # pairs that a device reads at once; 0 for what suits it
    window: int = 4  # batches whose pairs are sorted by length: less padding
    learning_rate: float = 3e-6
    warmup: float = (
        10_000 / 300_000
    )  # share of the updates over which the rate rises; then it falls to 0
    weight_decay: float = 0.01
    dropout: float = 0.1
    attention_dropout: float = 0.1
    freeze_embeddings: bool = False
    freeze_layers: int = 0  # the lowest ones

    dev_queries: int = 200  # measured at each evaluation; 0 for none
    dev_depth: int = 50  # candidates of each that are reranked
    selection_metric: SelectionMetric = SelectionMetric.F1  # the weights that are best by this
    eval_steps: int = 0  # updates between evaluations; 0 for once an epoch
    patience: int = 0  # evaluations without a gain, after which it ends; 0 for never
    save_steps: int = 0  # updates between checkpoints, besides those that are evaluated; 0 for none
    log_steps: int = 10  # updates whose mean loss is one point of the loss curve
    precision: Precision = Precision.AUTO
    device: str = "auto"  # or cpu
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        check_above_zero(self, "learning_rate", "temperature")
        RerankerSpec(query_tokens=self.query_tokens, candidate_tokens=self.candidate_tokens)
        if self.seed >= 2**32:
            raise ConfigError(f"seed must be less than 2^32, got {self.seed}")
        for name in ("warmup", "dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must lie in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.easy_first <= 1:
            raise ConfigError(f"easy_first must lie in [0, 1], got {self.easy_first}")
        if self.device not in ("auto", "cpu"):
            raise ConfigError(f"device must be auto or cpu, got {self.device!r}")
        if self.precision is Precision.FLOAT16:
            raise ConfigError("precision must be auto, float32 or bfloat16 in training")
        self._check_lists()
        self._check_teacher()

    def _check_lists(self) -> None:
        if not self.list_negatives and (self.loss is not Loss.BCE or self.distill):
            what = "distill" if self.loss is Loss.BCE else f"the loss {self.loss}"
            raise ConfigError(f"{what} compares papers of a list; set list_negatives to 1 or more")
        if self.negatives_from > self.last_rank:
            raise ConfigError(
                f"negatives_from {self.negatives_from} lies behind the last rank, {self.last_rank}"
            )
        if self.negatives_to > self.depth:
            raise ConfigError(f"negatives_to {self.negatives_to} lies below depth {self.depth}")

    def _check_teacher(self) -> None:
        needs = [n for n in ("distill", "warm_steps") if getattr(self, n)]
        needs += ["the loss margin-mse"] if self.loss is Loss.MARGIN_MSE else []
        if needs and not self.has_teacher:
            raise ConfigError(
                f"{needs[0]} needs a teacher: encoder, fused, or the folder of a cross-encoder"
            )
        if not self.teacher.strip():
            raise ConfigError("teacher is empty; name one, or say none")

    @property
    def has_teacher(self) -> bool:
        """Whether there is a teacher."""
        return self.teacher != NO_TEACHER

    @property
    def last_rank(self) -> int:
        """The last rank of negatives."""
        return self.negatives_to or self.depth

    @property
    def in_list(self) -> int:
        """How many pairs an example is made of."""
        return 1 + self.list_negatives

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained: on dev queries, or as a teacher."""
        return EncodeConfig(device=self.device, precision=self.precision, threads=self.threads)

    @property
    def schedule(self) -> Schedule:
        """How long it trains, and how fast."""
        return Schedule(
            epochs=self.epochs,
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            log_steps=self.log_steps,
            save_steps=self.save_steps,
            eval_steps=self.eval_steps,
            patience=self.patience if self.dev_queries else 0,
            selection_metric=self.selection_metric,
            seed=self.seed,
            precision=self.precision,
            device=self.device,
        )

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Complete what is given by the defaults of its recipe.

        Args:
            given: Values by name, as a TOML file or the command line has them; epochs win over a recipe's steps.
            where: Who gave them, for errors.

        Raises:
            ConfigError: If there is no such name, or the value cannot be.
        """
        values = checked(_KINDS, given, where)
        recipe = values.get("recipe", Recipe.PAPER)
        defaults = {**_RECIPES[recipe]}
        if "epochs" in values:
            defaults.pop("steps", None)
            defaults.pop("eval_steps", None)
        return cls(**{"recipe": recipe, **defaults, **values})

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def read_training(file: Path | None, options: Mapping[str, Any]) -> RerankerTraining:
    """Read how to train: options win over the file, the file over the recipe; epochs over its steps, too.

    Args:
        file: TOML, keys as the fields of `RerankerTraining`.
        options: From the command line; None means not given.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it cannot be.
    """
    return read_settings(RerankerTraining.of, file, options, _RIVALS)


_FROM_0: Sequence[str] = """
    seed queries list_negatives examples negatives_to margin distill warm_steps steps micro weight_decay freeze_layers
    dev_queries eval_steps patience save_steps threads
""".split()
_FROM_1: Sequence[str] = (
    "depth random_negatives negatives_from epochs batch window dev_depth log_steps".split()
)
_LEAST: Mapping[str, float] = {
    name: least for least, names in enumerate((_FROM_0, _FROM_1)) for name in names
}
_KINDS: Kinds = kinds_of(RerankerTraining)
_RIVALS: Mapping[str, str] = {"epochs": "steps", "steps": "epochs"}
_RECIPES: Mapping[Recipe, Mapping[str, Any]] = {
    Recipe.PAPER: {"steps": 300_000, "eval_steps": 10_000, "log_steps": 100},
    Recipe.PAPER_SMALL: {
        "model": "minilm",
        "query_tokens": 128,
        "candidate_tokens": 128,
        "epochs": 3,
        "batch": 32,
        "learning_rate": 3e-5,
        "warmup": 0.1,
    },
    Recipe.STRONG: {
        "model": "minilm",
        "query_tokens": 128,
        "candidate_tokens": 128,
        "candidates": Candidates.FUSED,
        "depth": 100,
        "list_negatives": 7,
        "examples": 3,
        "loss": Loss.SOFTMAX,
        "teacher": BY_FUSION,
        "warm_steps": 100,
        "epochs": 2,
        "batch": 16,
        "learning_rate": 1.5e-4,
        "warmup": 0.1,
        "dropout": 0.0,  # as in the training of experiments/reranker, and quicker
        "attention_dropout": 0.0,
        "freeze_embeddings": True,  # half of MiniLM, and its words are known
        "freeze_layers": 2,
    },
}
