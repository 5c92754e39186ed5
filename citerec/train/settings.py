"""The settings of each trainer: a named recipe, a TOML file that overrides it, and options that override both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from citerec.config import (
    Bm25Config,
    Precision,
    Seed,
    Settings,
    Threads,
    read_settings,
    setting,
)
from citerec.encode.spec import EncodeConfig
from citerec.files.reading import read_toml
from citerec.rerank.pair import SideTokens
from citerec.text import EncoderForm

Model = Annotated[
    str, Field(min_length=1, description="Base model: a name, folder or hub id.")
]
Epochs = Annotated[int, Field(ge=1, description="Number of epochs.")]
Steps = Annotated[
    int, Field(ge=0, description="Number of updates, in place of --epochs.")
]
Batch = Annotated[int, Field(ge=1, le=1_000_000, description="Examples per update.")]
Queries = Annotated[
    int, Field(ge=0, description="Train queries, drawn at random; 0 for all.")
]
Rate = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Some = Annotated[int, Field(ge=1)]


class TrainingSettings(Settings):
    """What all trainings share. The fields have the default recipe; another recipe replaces some of their defaults."""

    RECIPES: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    seed: Seed = 0
    queries: Queries = 0
    threads: Threads = 0

    @model_validator(mode="before")
    @classmethod
    def _with_recipe(cls, given: Mapping[str, Any]) -> Any:
        """Complete the given settings by those of their recipe; given epochs replace its number of updates."""
        recipe = cls.RECIPES.get(str(given.get("recipe")), {})
        epochs = {"steps": 0, "eval_steps": 0} if "epochs" in given else {}
        return {**recipe, **epochs, **given}

    @classmethod
    def read(cls, file: Path | None, options: Mapping[str, Any]) -> Self:
        """Read settings: options by name override the TOML file, which overrides the recipe."""
        values = read_toml(file) if file else {}
        read_settings(cls, values, f"{file}: ")
        if "epochs" in options:
            values.pop("steps", None)
        return read_settings(cls, {**values, **options})


class ModelTraining(TrainingSettings):
    """What the trainings of both transformers share: how long, how fast, and where."""

    model: Model = "scibert"
    epochs: Epochs = 1
    steps: Steps = 0
    batch: Batch = 32
    learning_rate: Rate = 2e-5
    # share of the updates in which the rate rises; then it falls linearly to 0
    warmup: Share = 0.1
    eval_steps: Count = 0  # updates between evaluations; 0 for each epoch
    dev_queries: Count = 200  # of an evaluation; 0: the last weights are saved
    dtype: Precision = Precision.AUTO
    device: str = setting("auto", "auto or cpu.", pattern="^(auto|cpu)$")

    @property
    def metric(self) -> str:
        """The measure on the dev queries that selects the weights."""
        return "mrr"

    @property
    def running(self) -> EncodeConfig:
        """How a model is run that is not trained, on the dev queries."""
        return EncodeConfig(
            device=self.device, precision=self.dtype, threads=self.threads
        )

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        if self.dtype is Precision.FLOAT16:
            raise ValueError("dtype must be auto, float32 or bfloat16 in training")
        return self


class EncoderTraining(ModelTraining):
    """The settings of the training of an encoder."""

    RECIPES: ClassVar = {
        "strong": {
            "model": "minilm",
            "hard": 1,
            "epochs": 3,
            "learning_rate": 3e-5,
            "max_tokens": 0,
            "form": None,
        }
    }

    # specter: triplets with references of references as hard negatives: https://arxiv.org/abs/2004.07180
    # strong: InfoNCE over the papers of a batch, with hard negatives of high ranks
    recipe: Literal["specter", "strong"] = setting(
        "specter",
        "specter: SciBERT on the paper's triplets; strong: MiniLM on hard and in-batch negatives.",
    )
    examples: Some = 5  # per query and epoch; strong: at most one per positive
    # specter: examples of a query with a hard negative; strong: hard negatives per example
    hard: Count = 2
    epochs: Epochs = 2
    max_tokens: Count = 512  # of the trained model; 0 for that of the base model
    train_tokens: Count = 0  # in training; 0 for `max_tokens`
    # None for that of the base model
    form: EncoderForm | None = EncoderForm.TITLE_ABSTRACT
    # of the base model in the weights that are measured and saved, which are means of its and the trained ones
    base_share: Share = 0.0
    dev_pool: Some = 2000  # candidate papers of the dev queries

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.recipe == "specter" and self.hard > self.examples:
            raise ValueError(f"hard must be at most examples, {self.examples}")
        if self.recipe == "strong" and self.batch < 2:
            raise ValueError("in-batch negatives need a batch of at least 2")
        return self


class RerankerTraining(ModelTraining):
    """The settings of the training of a cross-encoder."""

    RECIPES: ClassVar = {
        "strong": {
            "model": "minilm",
            "query_tokens": 128,
            "candidate_tokens": 128,
            "candidates": "fused",
            "depth": 100,
            "examples": 3,
            "first_stage_weight": 0.85,
            "distill": 0.5,
            "epochs": 2,
            "steps": 0,
            "eval_steps": 0,
            "batch": 16,
            "learning_rate": 1.5e-4,
            "warmup": 0.1,
            "dropout": 0.0,
            # half of MiniLM's weights; what is below the trained layers needs no gradient either
            "freeze_embeddings": True,
            "freeze_layers": 2,
        }
    }

    # paper: each of BM25's candidates by itself, cited or not: https://aclanthology.org/2020.sdp-1.10
    # strong: InfoNCE on lists of the hybrid retriever's candidates: a cited one and some others
    recipe: Literal["paper", "strong"] = setting(
        "paper",
        "paper: SciBERT as published; strong: MiniLM on lists, taught by the index's encoder.",
    )
    query_tokens: SideTokens = 256
    candidate_tokens: SideTokens = 256
    # fused: those of BM25 and of the vectors, where the index has some
    candidates: Literal["bm25", "fused"] = "bm25"
    bm25: Bm25Config = Bm25Config()
    depth: Some = 10  # candidates per query
    # The fields up to `distill` are of lists. A number of pairs per update is then one of lists.
    list_negatives: Some = 7  # per positive
    examples: Count = 0  # positives per query and epoch; 0 for all
    # Weight of the first-stage scores, standardised in each list, that are added to the logits: the model then learns
    # what the first stage does not know, as interpolation adds its scores later.
    first_stage_weight: Weight = 0.0
    # weight of the loss against the order by the encoder of the index
    distill: Weight = 0.0
    steps: Steps = 300_000
    eval_steps: Count = 10_000
    batch: Batch = 128
    learning_rate: Rate = 3e-6
    warmup: Share = 10_000 / 300_000
    dropout: Share = 0.1
    freeze_embeddings: bool = False
    freeze_layers: Count = 0  # number of lowest layers
    # reranked candidates per dev query; more than the 20 whose F1 is measured
    dev_depth: int = Field(default=50, gt=20)

    @property
    def is_listwise(self) -> bool:
        """Whether an example is a list of candidates rather than a pair of query and candidate."""
        return self.recipe == "strong"

    @property
    def metric(self) -> str:
        """The measure that selects the weights; of lists, which add to the first stage, F1 at the best weight."""
        return "mixed" if self.is_listwise else "f1"


class RankerTraining(TrainingSettings):
    """The settings of the training of the learning-to-rank model."""

    queries: Queries = 2_000  # per index
    # per index, in memory with their candidates; 0: all trees are kept
    dev_queries: Count = 2_000
    retrievers: tuple[str, ...] = setting(
        (), "More first-stage retrievers: names that installed packages register."
    )
    features: tuple[str, ...] = setting(
        (), "More features: names that installed packages register."
    )
    reranker: str = setting(
        "auto", "auto: that of the index, else none; none; or a model.", min_length=1
    )
    rerank_depth: Count = 0  # 0 for what suits model and device
    trees: int = Field(default=200, ge=1, le=10_000)  # at most
    least_rows: Some = 200  # training rows per leaf


class TrainPlan(Settings):
    """The settings of each step; by default small models, which a few cores train in an hour."""

    encoder: EncoderTraining = EncoderTraining(
        recipe="strong", queries=3_000, train_tokens=128, dev_pool=1_500
    )
    reranker: RerankerTraining = RerankerTraining(
        recipe="strong",
        queries=3_000,
        query_tokens=96,
        candidate_tokens=64,
        steps=400,
        batch=8,
        eval_steps=100,
        dev_queries=100,
    )
    ranker: RankerTraining = RankerTraining(dev_queries=300, rerank_depth=20)

    @classmethod
    def read(cls, file: Path | None, options: Mapping[str, Any]) -> Self:
        """Read a plan from a TOML file, in which a table replaces the settings of a step; options override both."""
        plan = read_settings(cls, read_toml(file) if file else {}, f"{file}: ")
        return plan.replace(
            **{n: step.replace(**options.get(n, {})) for n, step in plan}
        )
