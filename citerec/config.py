"""The tree of settings: the settings of each stage with type, range, default and help text, declared once.

The options of the command line, TOML files, the schemas of the HTTP API and of MCP, and the rows of experiments are
views of these models.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from citerec.errors import ConfigError, shown
from citerec.text import QueryForm

RANKING_DEPTH = 1000  # candidates per query; no metric reads deeper
SENTENCE_K = 3  # recommendations for each sentence of a draft
RRF_K0 = 60  # damping of ranks in reciprocal rank fusion, as in its paper
MAX_K1 = 1000  # far above any useful value; with a k1 of 1e30 Lucene's float32 scores become 0
Threads = Annotated[
    int, Field(ge=0, le=1024, description="Threads; 0 for one per processor.")
]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1, description="Random seed.")]


class Settings(BaseModel):
    """Settings of one stage: frozen, keyword-only, validated on construction; a fault is a `ConfigError`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=False
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise config_error(error, type(self)) from None

    # Marks the constructor as equal to pydantic's own, so that nested settings are validated without it: the error then
    # has the full name, such as `bm25.k1`.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed, validated again."""
        return type(self)(**{**dict(self), **changes})


AnySettings = TypeVar("AnySettings", bound=Settings)


def setting(default: Any, description: str, **bounds: Any) -> Any:
    """Declare a setting; `description` is the help text of its option, `bounds` are those of pydantic's `Field`."""
    return Field(default, description=description, **bounds)


def read_settings(
    kind: type[AnySettings], given: Mapping[str, Any], where: str = ""
) -> AnySettings:
    """Make settings from values by name, as a TOML or JSON file has them; a missing one has its default.

    `where` is the origin of the values, as a prefix of messages, such as `row.toml: `. A ConfigError if a name is
    unknown, or a value has the wrong type or is out of its range.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise config_error(error, kind, where) from None


def config_error(
    error: ValidationError, kind: type[BaseModel], where: str = ""
) -> ConfigError:
    """Return the error of invalid settings as one line: which setting, what it must be, and what was given."""
    # of a union, the error of the member that the value came closest to
    fault = max(error.errors(), key=lambda error: len(error["loc"]))
    # a location also names members of unions, such as `RerankConfig` and `literal['auto']`
    parts = [
        str(p)
        for p in fault["loc"]
        if isinstance(p, int) or (p.isidentifier() and p == p.lower())
    ]
    name = ".".join(parts)
    message = fault["msg"]
    if fault["type"] == "extra_forbidden":
        table: Any = kind
        for part in parts[:-1]:
            table = (
                table.model_fields[part].annotation
                if hasattr(table, "model_fields")
                else None
            )
        known = getattr(table, "model_fields", None)
        listed = f"; known settings: {', '.join(known)}" if known else ""
        return ConfigError(f"{where}unknown setting {name!r}{listed}")
    if fault["type"] == "missing":
        return ConfigError(f"{where}setting {name!r} is missing")
    if fault["type"] == "value_error":
        text = message.removeprefix("Value error, ")
        return ConfigError(f"{where}{f'{name}: ' if name else ''}{text}")
    text = (
        message.replace("Input should", "must")
        .replace("String should", "must")
        .replace("greater than or equal to", "at least")
    )
    text = text.replace("less than or equal to", "at most")
    return ConfigError(f"{where}{name} {text}, got {shown(fault['input'])}")


class StopWords(StrEnum):
    """Which words a BM25 query leaves out."""

    ANSERINI = "anserini"  # Lucene's 33, as in published tables
    LONG = "long"  # also Snowball's 120 and single characters
    AUTO = "auto"  # long if most papers have no abstract, else Anserini's


class Bm25Config(Settings):
    """BM25, the lexical first stage. The defaults are Lucene's, which suit queries as long as an abstract."""

    k1: float = setting(1.2, "BM25: saturation of repeated terms.", ge=0, le=MAX_K1)
    b: float = setting(0.75, "BM25: normalisation by length, in [0, 1].", ge=0, le=1)
    form: QueryForm = setting(
        QueryForm.TITLE_ABSTRACT, "The text of a draft that BM25 searches with."
    )
    key_terms: int = setting(
        20, "Terms that the form key-terms keeps: those of highest tf * idf.", ge=1
    )
    stop_words: StopWords = setting(
        StopWords.AUTO, "Words that a BM25 query leaves out."
    )
    threads: Threads = 0  # parallel searches


class DenseKind(StrEnum):
    """How the vectors of an index are searched; see `citerec.index.vectors`."""

    EXACT = "exact"  # compares the query with every vector
    SQ8 = "sq8"  # with every vector as int8, and with the exact vectors of the best
    HNSW = "hnsw"  # by a graph of nearest neighbours, and with the exact vectors of the best
    AUTO = "auto"  # exact up to 50,000 papers, sq8 up to a million, else hnsw


class DenseIndexConfig(Settings):
    """How the vectors of an index are stored."""

    kind: DenseKind = setting(
        DenseKind.AUTO,
        "auto: exact up to 50,000 papers, sq8 up to a million, hnsw above.",
    )
    threads: Threads = 0  # of the build


class DenseConfig(Settings):
    """Dense retrieval, the semantic first stage."""

    threads: Threads = 0  # of a search


class FuseMethod(StrEnum):
    """How the ranked lists of the first stages are fused."""

    RRF = "rrf"  # by ranks alone
    WEIGHTED = "weighted"  # by scores, min-max scaled per ranked list


class FuseConfig(Settings):
    """How BM25 and dense retrieval are fused."""

    method: FuseMethod = setting(
        FuseMethod.RRF, "How BM25 and dense retrieval are fused: by ranks or by scores."
    )
    k0: int = setting(
        RRF_K0, "rrf: damping; higher values weaken the first ranks.", ge=0
    )
    bm25_weight: float = setting(
        0.5, "weighted: weight of BM25, in [0, 1].", ge=0, le=1
    )
    dense_weight: float = setting(
        0.5, "weighted: weight of dense retrieval, in [0, 1].", ge=0, le=1
    )

    @model_validator(mode="after")
    def _has_weight(self) -> Self:
        if not any(self.weights.values()):
            raise ValueError(
                "the weights of bm25 and dense are both 0; set one of them above 0"
            )
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each retriever, by its name."""
        return {"bm25": self.bm25_weight, "dense": self.dense_weight}


class Precision(StrEnum):
    """The number format of a model's computation; vectors and scores are always float32."""

    # The one that CITEREC_DTYPE names; else bfloat16 if it is faster there, else float16 on a GPU, else float32.
    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class ModelConfig(Settings):
    """How an encoder or a cross-encoder is run; the results hardly depend on it (vectors: cosine > 0.999)."""

    device: str = setting("auto", "Where the model runs: auto, cpu, cuda or cuda:1.")
    precision: Precision = setting(
        Precision.AUTO, "Data type of the model's computations."
    )
    threads: Threads = 0


class RerankConfig(ModelConfig):
    """Reranking by a cross-encoder: which one, how many candidates it scores, and how it is run."""

    model: str = setting(
        "auto",
        "The cross-encoder that reorders the best candidates: none, a folder, a hub id, or a name that an installed "
        "package registers. auto takes the one that was trained on this index; if there is none, nothing is reranked.",
        min_length=1,
    )
    depth: int = setting(
        0,
        "How many of the best candidates are reranked; 0: what takes about 1.5 seconds (100 in evaluate).",
        ge=0,
    )
    query_tokens: int = setting(
        0, "Query tokens of an input, with special tokens; 0 for the model's own.", ge=0
    )
    candidate_tokens: int = setting(
        0, "Candidate tokens of an input; 0 for the model's own.", ge=0
    )
    weight: float | None = setting(
        None,
        "Weight of the reranker against the previous order; by default the model's own.",
        ge=0,
        le=1,
    )


class RecommendConfig(Settings):
    """How many papers are recommended, and how they are retrieved and ranked."""

    k: int = setting(20, "Recommendations per query.", ge=1)
    bm25: Bm25Config = Bm25Config()
    encoder: str = setting(
        "auto",
        "The encoder: auto for that of the index; none for BM25 alone; else its name or folder.",
        min_length=1,
    )
    dense: DenseConfig = DenseConfig()
    retrievers: tuple[str, ...] = setting(
        (), "More first-stage retrievers: names that installed packages register."
    )
    fuse: FuseConfig = FuseConfig()
    # a string is `RerankConfig.model`; see `rerank`
    reranker: RerankConfig | str = "auto"
    ranker: str = setting(
        "auto",
        "The learning-to-rank model: a folder; none; auto: that of the index, else the package's.",
        min_length=1,
    )
    popularity: bool = setting(True, "Let the ranker read citation counts and ages.")
    authors: bool = setting(True, "Let the ranker read authors.")
    diversity: float = setting(
        0.0, "Penalty for similarity to papers ranked above, in [0, 1].", ge=0, le=1
    )
    # the process ends after a few queries: prefer what opens faster
    few_queries: bool = False

    @property
    def rerank(self) -> RerankConfig:
        """The settings of the reranker, whether they were given or its model alone."""
        given = self.reranker
        return RerankConfig(model=given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _ranker_is_used(self) -> Self:
        if self.ranker == "none" and not (self.popularity and self.authors):
            raise ValueError(
                "popularity and authors are read by the ranker only, and it is none"
            )
        return self
