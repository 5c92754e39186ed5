"""Settings of the training of a cross-encoder: a recipe, a TOML file that overrides it, options that override both."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from citerec.encode.config import EncodeConfig, Precision
from citerec.errors import ConfigError
from citerec.rerank.spec import RerankerSpec
from citerec.train.reranker.choices import (
    CandidateSource,
    RerankerLoss,
    RerankerNegatives,
    RerankerPositives,
    RerankerRecipe,
    RerankerSelectionMetric,
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

NO_TEACHER, BY_ENCODER, BY_FUSION = "none", "encoder", "fused"  # any other value names a model


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerTraining:
    """The settings of the training of a cross-encoder. The defaults are those of the recipe `paper`."""

    recipe: RerankerRecipe = RerankerRecipe.PAPER
    model: str = "scibert"  # the base model
    seed: int = 0
    query_tokens: int = 256  # including [CLS] and the first [SEP], in training and later
    candidate_tokens: int = 256  # including the last [SEP]

    candidates: CandidateSource = CandidateSource.BM25
    depth: int = 10  # candidates per query
    positives: RerankerPositives = RerankerPositives.FOUND
    negatives: RerankerNegatives = RerankerNegatives.FOUND
    random_negatives: int = 10  # per query, with negatives = "random"
    queries: int = 0  # train queries, drawn at random; 0 for all

    list_negatives: int = 0  # negatives per positive; 0: each candidate is an example by itself
    examples: int = 0  # lists: positives per query and epoch; 0 for all
    negatives_from: int = 1  # lists: the first rank of negatives
    negatives_to: int = 0  # lists: the last rank of negatives; 0 for `depth`
    margin: float = 0.0  # lists: drop negatives that score above this share of the positive's score; 0: keep all
    easy_first: float = 0.0  # lists: share of deep-ranked negatives in the first epoch

    loss: RerankerLoss = RerankerLoss.BCE
    teacher: str = NO_TEACHER  # or encoder (that of the index), fused, or the folder of an encoder or cross-encoder
    # The teacher's scores are standardised in each list, except for margin-mse: it uses the raw scores of a
    # cross-encoder.
    distill: float = 0.0  # weight of the distillation loss
    temperature: float = 1.0  # of the teacher's scores in the distillation loss
    warm_steps: int = 0  # first updates, which fit the teacher's scores and ignore the labels

    epochs: int = 1
    steps: int = 0  # total updates; 0 derives them from `epochs`
    batch: int = 128  # pairs in an update of the weights; lists with list_negatives
    micro: int = 0  # pairs in a step of one device; 0 for its default
    window: int = 4  # batches whose pairs are sorted by length, for less padding
    learning_rate: float = 3e-6
    warmup: float = (
        10_000 / 300_000
    )  # share of the updates in which the rate rises; then it falls linearly to 0
    weight_decay: float = 0.01
    dropout: float = 0.1
    attention_dropout: float = 0.1
    freeze_embeddings: bool = False
    freeze_layers: int = 0  # number of lowest layers

    dev_queries: int = 200  # evaluated each time; 0 for none
    dev_depth: int = 50  # reranked candidates per dev query
    selection_metric: RerankerSelectionMetric = (
        RerankerSelectionMetric.F1
    )  # selects the saved weights
    eval_steps: int = 0  # updates between evaluations; 0: once per epoch
    patience: int = 0  # evaluations without a gain until the training stops; 0: never
    save_steps: int = 0  # updates between further checkpoints; 0: one at each evaluation only
    log_steps: int = 10  # updates per point of the loss curve
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
        if not self.list_negatives and (self.loss is not RerankerLoss.BCE or self.distill):
            setting = "distill" if self.loss is RerankerLoss.BCE else f"the loss {self.loss}"
            raise ConfigError(
                f"{setting} compares the papers of a list; list_negatives must be at least 1"
            )
        if self.negatives_from > self.last_rank:
            raise ConfigError(
                f"negatives_from must be at most the last rank, {self.last_rank}, got {self.negatives_from}"
            )
        if self.negatives_to > self.depth:
            raise ConfigError(
                f"negatives_to must be at most depth, {self.depth}, got {self.negatives_to}"
            )

    def _check_teacher(self) -> None:
        needs = [n for n in ("distill", "warm_steps") if getattr(self, n)]
        needs += ["the loss margin-mse"] if self.loss is RerankerLoss.MARGIN_MSE else []
        if needs and not self.has_teacher:
            raise ConfigError(
                f"{needs[0]} needs a teacher: encoder, fused, or the folder of a cross-encoder"
            )
        if not self.teacher.strip():
            raise ConfigError("teacher is empty; name one, or none")

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
        """The number of pairs in an example."""
        return 1 + self.list_negatives

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained: on the dev queries, or as a teacher."""
        return EncodeConfig(device=self.device, precision=self.precision, threads=self.threads)

    @property
    def schedule(self) -> Schedule:
        """How long and how fast it is trained."""
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
        """Complete values with the defaults of their recipe.

        Args:
            given: Values by name, from a TOML file or the command line; `epochs` replaces the `steps` of a recipe.
            where: The origin of the values, as a prefix of error messages.

        Raises:
            ConfigError: If a name is unknown or a value is invalid.
        """
        values = checked(_KINDS, given, where)
        recipe = values.get("recipe", RerankerRecipe.PAPER)
        defaults = {**_RECIPES[recipe]}
        if "epochs" in values:
            defaults.pop("steps", None)
            defaults.pop("eval_steps", None)
        return cls(**{"recipe": recipe, **defaults, **values})

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)


def read_training(file: Path | None, options: Mapping[str, Any]) -> RerankerTraining:
    """Read the settings: options override the file, the file overrides the recipe.

    `epochs` and `steps` exclude each other: the one given replaces the other.

    Args:
        file: TOML; keys as the fields of `RerankerTraining`.
        options: From the command line; None means not given.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it is invalid.
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
_RECIPES: Mapping[RerankerRecipe, Mapping[str, Any]] = {
    RerankerRecipe.PAPER: {"steps": 300_000, "eval_steps": 10_000, "log_steps": 100},
    RerankerRecipe.PAPER_SMALL: {
        "model": "minilm",
        "query_tokens": 128,
        "candidate_tokens": 128,
        "epochs": 3,
        "batch": 32,
        "learning_rate": 3e-5,
        "warmup": 0.1,
    },
    RerankerRecipe.STRONG: {
        "model": "minilm",
        "query_tokens": 128,
        "candidate_tokens": 128,
        "candidates": CandidateSource.FUSED,
        "depth": 100,
        "list_negatives": 7,
        "examples": 3,
        "loss": RerankerLoss.SOFTMAX,
        "teacher": BY_FUSION,
        "warm_steps": 100,
        "epochs": 2,
        "batch": 16,
        "learning_rate": 1.5e-4,
        "warmup": 0.1,
        "dropout": 0.0,  # as in experiments/reranker, and faster
        "attention_dropout": 0.0,
        "freeze_embeddings": True,  # half of MiniLM's weights
        "freeze_layers": 2,
    },
}
