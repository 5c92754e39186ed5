"""Settings of the training of a cross-encoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from citerec.encode.config import EncodeConfig, Precision
from citerec.errors import ConfigError
from citerec.rerank.spec import RerankerSpec
from citerec.train.schedule import Schedule
from citerec.train.settings import (
    AboveZero,
    Batch,
    Device,
    Dtype,
    From0,
    From1,
    NotNegative,
    Seed,
    Share,
    Threads,
    TrainingSettings,
)

NO_TEACHER, BY_ENCODER, BY_FUSION = "none", "encoder", "fused"  # any other value names a model


class RerankerRecipe(StrEnum):
    """A named set of defaults."""

    PAPER = "paper"  # the settings of the paper, https://aclanthology.org/2020.sdp-1.10
    PAPER_SMALL = "paper-small"  # the same for a small corpus and model
    STRONG = "strong"  # lists of candidates of the hybrid retriever


class RerankerLoss(StrEnum):
    """The loss function."""

    BCE = "bce"  # each pair by itself: cited or not
    SOFTMAX = "softmax"  # the cited paper against its list
    RANKNET = "ranknet"
    LAMBDA = "lambda"
    MARGIN_MSE = "margin-mse"  # score differences of the teacher


class CandidateSource(StrEnum):
    """The retriever of the candidates."""

    BM25 = "bm25"
    FUSED = "fused"  # RRF of BM25 and the vectors of the index; BM25 alone without vectors


class RerankerPositives(StrEnum):
    """The cited papers that are positives."""

    FOUND = "found"  # cited candidates
    ALL = "all"  # all cited papers; leaks the label, as added papers are all cited


class RerankerNegatives(StrEnum):
    """The papers that are negatives."""

    FOUND = "found"  # candidates
    # Candidates and random papers; leaks the label, as added papers are never cited.
    RANDOM = "random"


class RerankerSelectionMetric(StrEnum):
    """The measure on the dev queries that selects the best weights."""

    F1 = "f1"  # at 20
    MRR = "mrr"
    MIXED = "mixed"  # f1 of the best interpolation with the first-stage scores


_RECIPES: Mapping[str, Mapping[str, Any]] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerTraining(TrainingSettings):
    """The settings of the training of a cross-encoder. The defaults are those of the recipe `paper`."""

    recipe: RerankerRecipe = RerankerRecipe.PAPER
    model: str = "scibert"  # the base model
    seed: Seed = 0
    query_tokens: int = 256  # including [CLS] and the first [SEP], in training and later
    candidate_tokens: int = 256  # including the last [SEP]
    short_share: Share = 0.0  # share of the updates that read 128 + 64 tokens of their pairs

    candidates: CandidateSource = CandidateSource.BM25
    depth: From1 = 10  # candidates per query
    positives: RerankerPositives = RerankerPositives.FOUND
    negatives: RerankerNegatives = RerankerNegatives.FOUND
    random_negatives: From1 = 10  # per query, with negatives = "random"
    queries: From0 = 0  # train queries, drawn at random; 0 for all

    list_negatives: From0 = 0  # negatives per positive; 0: each candidate is an example by itself
    examples: From0 = 0  # lists: positives per query and epoch; 0 for all

    loss: RerankerLoss = RerankerLoss.BCE
    # Weight of the first-stage scores, standardised in each list, that are added to the logits in a loss of lists: the
    # model then learns what the first stage does not know, as interpolation adds its scores later.
    first_stage_weight: NotNegative = 0.0
    teacher: str = NO_TEACHER  # or encoder (that of the index), fused, or the folder of an encoder or cross-encoder
    # The teacher's scores are standardised in each list, except for margin-mse: it uses the raw scores of a
    # cross-encoder.
    distill: NotNegative = 0.0  # weight of the distillation loss
    warm_steps: From0 = 0  # first updates, which fit the teacher's scores and ignore the labels

    epochs: From1 = 1
    steps: From0 = 0  # total updates; 0 derives them from `epochs`
    batch: Batch = 128  # pairs in an update of the weights; lists with list_negatives
    micro: From0 = 0  # pairs in a step of one device; 0 for its default
    learning_rate: AboveZero = 3e-6
    warmup: Share = 10_000 / 300_000  # share of the updates in which the rate rises; then it falls
    dropout: Share = 0.1
    attention_dropout: Share = 0.1
    freeze_embeddings: bool = False
    freeze_layers: From0 = 0  # number of lowest layers

    dev_queries: From0 = 200  # evaluated each time; 0 for none
    dev_depth: From1 = 50  # reranked candidates per dev query
    selection_metric: RerankerSelectionMetric = RerankerSelectionMetric.F1  # selects the weights
    eval_steps: From0 = 0  # updates between evaluations; 0: once per epoch
    patience: From0 = 0  # evaluations without a gain until the training stops; 0: never
    log_steps: From1 = 10  # updates per point of the loss curve
    dtype: Dtype = Precision.AUTO
    device: Device = "auto"  # or cpu
    threads: Threads = 0  # 0 for one per processor

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = _RECIPES
    RIVALS: ClassVar[Mapping[str, str]] = {"epochs": "steps", "steps": "epochs"}
    REMOVED: ClassVar[Mapping[str, Any]] = {
        "negatives_from": 1,
        "negatives_to": 0,
        "margin": 0.0,
        "easy_first": 0.0,
        "temperature": 1.0,
        "window": 4,
        "weight_decay": 0.01,
        "save_steps": 0,
    }

    def check_together(self) -> None:
        """Check the settings that depend on each other.

        Raises:
            ConfigError: If they do not fit.
        """
        RerankerSpec(query_tokens=self.query_tokens, candidate_tokens=self.candidate_tokens)
        if not self.list_negatives and (self.loss is not RerankerLoss.BCE or self.distill):
            setting = "distill" if self.loss is RerankerLoss.BCE else f"the loss {self.loss}"
            raise ConfigError(
                f"{setting} compares the papers of a list; list_negatives must be at least 1"
            )
        if self.first_stage_weight and (
            not self.list_negatives or self.loss is RerankerLoss.MARGIN_MSE
        ):
            raise ConfigError(
                "first_stage_weight adds to the logits of a list; list_negatives must be at least 1, and the loss not "
                "margin-mse"
            )
        needs = [n for n in ("distill", "warm_steps") if getattr(self, n)]
        needs += ["the loss margin-mse"] if self.loss is RerankerLoss.MARGIN_MSE else []
        if needs and not self.has_teacher:
            raise ConfigError(
                f"{needs[0]} needs a teacher: encoder, fused, or the folder of a cross-encoder"
            )
        if not self.teacher.strip():
            raise ConfigError("teacher is empty; name one, or none")

    @classmethod
    def replaced_by(cls, given: Mapping[str, Any]) -> set[str]:
        """Return the names of settings that given ones replace: `epochs` also those of evaluations by updates."""
        rivals = {rival for name, rival in cls.RIVALS.items() if name in given}
        return rivals | ({"eval_steps"} if "epochs" in given else set())

    @classmethod
    def recipe_defaults(cls, recipe: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the defaults of a recipe; given `epochs` replace its `steps` and `eval_steps`."""
        left_out = {"steps", "eval_steps"} if "epochs" in values else set[str]()
        return {name: v for name, v in cls.RECIPES[recipe].items() if name not in left_out}

    @property
    def has_teacher(self) -> bool:
        """Whether there is a teacher."""
        return self.teacher != NO_TEACHER

    @property
    def teacher_model(self) -> str | None:
        """The model that is the teacher; None without a teacher, and for one that is part of the first stage."""
        return None if self.teacher in (NO_TEACHER, BY_ENCODER, BY_FUSION) else self.teacher

    @property
    def in_list(self) -> int:
        """The number of pairs in an example."""
        return 1 + self.list_negatives

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained: on the dev queries, or as a teacher."""
        return EncodeConfig(device=self.device, precision=self.dtype, threads=self.threads)

    @property
    def schedule(self) -> Schedule:
        """How long and how fast it is trained."""
        return Schedule(
            epochs=self.epochs,
            steps=self.steps,
            batch=self.batch,
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            log_steps=self.log_steps,
            eval_steps=self.eval_steps,
            patience=self.patience if self.dev_queries else 0,
            selection_metric=self.selection_metric,
            seed=self.seed,
            dtype=self.dtype,
            device=self.device,
        )
