"""The settings of each trainer: a named recipe, a TOML file that overrides it, and options that override both."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from citerec.encode.config import EncodeConfig, Precision
from citerec.encode.spec import Pooling, Separator, Similarity
from citerec.errors import ConfigError
from citerec.io import read_toml
from citerec.text import EncoderForm

Seed = Annotated[int, Field(ge=0, lt=2**31, description="Random seed.")]
Threads = Annotated[int, Field(ge=0, le=1024, description="Threads; 0 for one per processor.")]
Model = Annotated[str, Field(min_length=1, description="Base model: a name, folder or hub id.")]
Queries = Annotated[int, Field(ge=0, description="Train queries, drawn at random; 0 for all.")]
Epochs = Annotated[int, Field(ge=1, description="Number of epochs.")]
Steps = Annotated[int, Field(ge=0, description="Number of updates, in place of --epochs.")]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False, description="Learning rate.")]
DeviceBatch = Annotated[int, Field(ge=0, description="Examples per step of a device; 0 for all.")]
EvalSteps = Annotated[int, Field(ge=0, description="Updates between evaluations; 0: each epoch.")]
Recipe = Field(description="A named set of settings; a file and options override it.")
Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=0)]
Some = Annotated[int, Field(ge=1)]


class Budget(StrEnum):
    """The time and the machine of the training of all models."""

    MINUTES = "minutes"  # the ranker, on a laptop
    HOUR = "hour"  # small models, on a CPU
    NIGHT = "night"  # the models of the papers, on a GPU


class TrainingSettings(BaseModel):
    """Settings of a training; the first of `RECIPES` is the default recipe, and gives the defaults of the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_recipe(cls, given: Any) -> Any:
        """Complete the given settings by those of their recipe; given epochs replace its updates."""
        default = next(iter(cls.RECIPES), "")
        recipe = dict(cls.RECIPES.get(str(given.get("recipe", default)), {}))
        if "epochs" in given:
            recipe = {k: v for k, v in recipe.items() if k not in ("steps", "eval_steps")}
        return {**recipe, **given}

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Make settings from values by name.

        Raises:
            ConfigError: If a name is unknown or a value is invalid; `where` precedes the message.
        """
        try:
            return cls(**given)
        except ValidationError as error:
            fault = error.errors()[0]
            name = ".".join(map(str, fault["loc"]))
            known = f"; known settings: {', '.join(cls.model_fields)}"
            raise ConfigError(
                f"{where}{name}{name and ': '}{fault['msg'].removeprefix('Value error, ')}"
                + (known if fault["type"] == "extra_forbidden" else f", got {fault['input']!r:.80}")
            ) from error

    @classmethod
    def read(cls, file: Path | None, options: Mapping[str, Any]) -> Self:
        """Read settings: options override the TOML file, which overrides the recipe.

        Args:
            file: Its keys are the names of the fields.
            options: From the command line; None means not given.

        Raises:
            BadInputError: If the file cannot be read.
            ConfigError: If a name or a value is invalid.
        """
        values = read_toml(file) if file else {}
        if file:
            cls.of(values, f"{file}: ")
        given = {name: value for name, value in options.items() if value is not None}
        rivals = {"epochs": "steps", "steps": "epochs"}
        replaced = {rivals[name] for name in rivals if name in given}
        return cls.of({k: v for k, v in values.items() if k not in replaced} | given)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return self.model_dump(mode="json")


class ModelTraining(TrainingSettings):
    """What the trainings of both transformers share: how long, how fast, and where."""

    seed: Seed = 0
    queries: Queries = 0
    epochs: Epochs = 1
    steps: Steps = 0
    batch: Annotated[int, Field(ge=1, le=1_000_000, description="Examples per update.")] = 32
    device_batch: DeviceBatch = 0
    learning_rate: Rate = 2e-5
    warmup: Share = 0.1  # share of the updates in which the rate rises; then it falls linearly to 0
    eval_steps: EvalSteps = 0
    dev_queries: Annotated[int, Field(ge=0, description="Dev queries of an evaluation.")] = 200
    dtype: Precision = Precision.AUTO
    device: Annotated[str, Field(pattern="^(auto|cpu)$", description="auto or cpu.")] = "auto"
    threads: Threads = 0

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained: on the dev queries, or to mine negatives."""
        return EncodeConfig(device=self.device, precision=self.dtype, threads=self.threads)

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if self.dtype is Precision.FLOAT16:
            raise ValueError("dtype must be auto, float32 or bfloat16 in training")
        if self.device_batch and self.batch % self.device_batch:
            raise ValueError(f"batch {self.batch} must be a multiple of device_batch")
        return self


class EncoderRecipe(StrEnum):
    """A named set of defaults."""

    SPECTER = "specter"  # the settings of the paper, https://arxiv.org/abs/2004.07180
    STRONG = "strong"  # in-batch negatives, and one that BM25 and the base model rank high


class EncoderLoss(StrEnum):
    """The loss function."""

    TRIPLET = "triplet"  # margin between Euclidean distances
    IN_BATCH = "in-batch"  # InfoNCE over the papers of a batch


class EncoderNegatives(StrEnum):
    """The source of hard negatives."""

    CITATIONS = "citations"  # references of the query's references
    MINED = "mined"  # top ranks of the fusion of BM25 and the base model


class Metric(StrEnum):
    """The measure on the dev queries that selects the weights."""

    MRR = "mrr"
    F1 = "f1"  # at 20
    MIXED = "mixed"  # f1 of the best interpolation with the first-stage scores; rerankers only


class EncoderTraining(ModelTraining):
    """The settings of the training of an encoder."""

    recipe: Annotated[EncoderRecipe, Recipe] = EncoderRecipe.SPECTER
    model: Model = "scibert"
    loss: EncoderLoss = EncoderLoss.TRIPLET
    margin: Annotated[float, Field(gt=0)] = 1.0  # of the triplet loss, in units of the distance
    temperature: Annotated[float, Field(gt=0)] = 0.05  # of the in-batch loss
    negatives: Annotated[
        EncoderNegatives, Field(description="Hard negatives: citations or mined.")
    ] = EncoderNegatives.CITATIONS
    examples: Some = 5  # per query and epoch; in-batch: at most one per positive
    # triplet: examples of a query with a hard negative; in-batch: hard negatives per example
    hard: Count = 2
    epochs: Epochs = 2
    max_tokens: Count = 0  # of the trained model; 0 for that of the base model
    train_tokens: Count = 0  # in training; 0 for `max_tokens`
    pooling: Pooling | None = None  # None for that of the base model, here and below
    similarity: Similarity | None = None
    separator: Separator | None = None
    form: EncoderForm | None = None
    dev_pool: Some = 2000  # candidate papers of the dev queries
    selection_metric: Metric = Metric.MRR

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        EncoderRecipe.SPECTER: {
            "pooling": Pooling.CLS,
            "similarity": Similarity.L2,
            "separator": Separator.TOKEN,
            "form": EncoderForm.TITLE_ABSTRACT,
            "max_tokens": 512,
        },
        EncoderRecipe.STRONG: {
            "model": "minilm",
            "loss": EncoderLoss.IN_BATCH,
            "negatives": EncoderNegatives.MINED,
            "hard": 1,
            "epochs": 3,
            "learning_rate": 3e-5,
        },
    }

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.loss is EncoderLoss.TRIPLET and self.hard > self.examples:
            raise ValueError(f"hard must be at most examples, {self.examples}")
        if self.loss is EncoderLoss.IN_BATCH and min(self.batch, self.device_batch or 2) < 2:
            raise ValueError("the in-batch loss needs a batch of at least 2")
        if self.selection_metric is Metric.MIXED:
            raise ValueError("an encoder is selected by mrr or f1")
        return self


NO_TEACHER, BY_ENCODER, BY_FUSION = "none", "encoder", "fused"


class RerankerRecipe(StrEnum):
    """A named set of defaults."""

    PAPER = "paper"  # the settings of the paper, https://aclanthology.org/2020.sdp-1.10
    STRONG = "strong"  # lists of the hybrid retriever's candidates, taught by the encoder


class RerankerLoss(StrEnum):
    """The loss function."""

    BCE = "bce"  # each pair by itself: cited or not
    SOFTMAX = "softmax"  # InfoNCE: the cited paper against its list


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
    # candidates and random papers; leaks the label, as added papers are never cited
    RANDOM = "random"


class RerankerTraining(ModelTraining):
    """The settings of the training of a cross-encoder."""

    recipe: Annotated[RerankerRecipe, Recipe] = RerankerRecipe.PAPER
    model: Model = "scibert"
    query_tokens: Annotated[int, Field(ge=8, le=448)] = 256  # with [CLS] and the first [SEP]
    candidate_tokens: Annotated[int, Field(ge=8, le=448)] = 256  # with the last [SEP]
    candidates: CandidateSource = CandidateSource.BM25
    depth: Some = 10  # candidates per query
    positives: RerankerPositives = RerankerPositives.FOUND
    negatives: Annotated[
        RerankerNegatives, Field(description="Negatives: found (candidates) or random.")
    ] = RerankerNegatives.FOUND
    random_negatives: Some = 10  # per query, with negatives = "random"
    list_negatives: Count = 0  # negatives per positive; 0: each candidate is an example by itself
    examples: Count = 0  # lists: positives per query and epoch; 0 for all
    loss: RerankerLoss = RerankerLoss.BCE
    # Weight of the first-stage scores, standardised in each list, that are added to the logits in a loss of lists: the
    # model then learns what the first stage does not know, as interpolation adds its scores later.
    first_stage_weight: Annotated[float, Field(ge=0)] = 0.0
    teacher: Annotated[str, Field(pattern="^(none|encoder|fused)$")] = NO_TEACHER
    distill: Annotated[float, Field(ge=0)] = 0.0  # weight of the teacher's order in the loss
    batch: Annotated[int, Field(ge=1, le=1_000_000, description="Pairs, or lists, per update.")] = (
        128
    )
    learning_rate: Rate = 3e-6
    warmup: Share = 10_000 / 300_000
    dropout: Share = 0.1
    freeze_embeddings: bool = False
    freeze_layers: Count = 0  # number of lowest layers
    dev_depth: Some = 50  # reranked candidates per dev query
    selection_metric: Metric = Metric.F1

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        RerankerRecipe.PAPER: {"steps": 300_000, "eval_steps": 10_000},
        RerankerRecipe.STRONG: {
            "model": "minilm",
            "query_tokens": 128,
            "candidate_tokens": 128,
            "candidates": CandidateSource.FUSED,
            "depth": 100,
            "list_negatives": 7,
            "examples": 3,
            "loss": RerankerLoss.SOFTMAX,
            # the encoder teaches faster than the fused order: experiments/CURVES.md
            "teacher": BY_ENCODER,
            "distill": 0.5,
            "first_stage_weight": 0.85,
            "epochs": 2,
            "batch": 16,
            "learning_rate": 1.5e-4,
            "warmup": 0.1,
            "dropout": 0.0,
            "freeze_embeddings": True,  # half of MiniLM's weights
            "freeze_layers": 2,
            "selection_metric": Metric.MIXED,
        },
    }

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.list_negatives and (
            self.loss is not RerankerLoss.BCE or self.distill or self.first_stage_weight
        ):
            raise ValueError(
                "the loss softmax, distill and first_stage_weight compare the papers of a list; "
                "list_negatives must be at least 1"
            )
        if self.distill and self.teacher == NO_TEACHER:
            raise ValueError("distill needs a teacher: encoder or fused")
        return self


class RankerTraining(TrainingSettings):
    """The settings of the training of the learning-to-rank model."""

    seed: Seed = 0
    queries: Queries = 2_000  # per index
    dev_queries: Count = 2_000  # per index; their candidate sets are in memory
    reranker: Annotated[str, Field(min_length=1)] = (
        "auto"  # that of the index, else none; none; a folder
    )
    rerank_queries: Count = 1_000  # reranked train queries per index, at most; 0 for all
    rerank_depth: Count = 0  # reranked candidates per query; 0 for what suits model and device
    trees: Annotated[int, Field(ge=1, le=10_000, description="Trees at most.")] = 200
    least_rows: Some = 200  # training rows per leaf
    threads: Threads = 0
