"""The settings of each stage: frozen, keyword-only, checked at birth."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Literal

from citerec.errors import ConfigError
from citerec.text import QueryForm

MAX_K1 = 1000  # far above any use; Lucene's float32 scores vanish with a k1 of 1e30


class StopWords(StrEnum):
    """Which words a BM25 query leaves out."""

    ANSERINI = "anserini"  # Lucene's 33, as in the literature's tables
    LONG = "long"  # Snowball's 120 and single characters, too
    AUTO = "auto"  # long where most papers have no abstract, else Anserini's


def _at_least(config: object, least: Mapping[str, int]) -> None:
    for name, n in least.items():
        if getattr(config, name) < n:
            raise ConfigError(f"{name} must be at least {n}, got {getattr(config, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Config:
    """The lexical first stage. The defaults are Lucene's, which suit queries as long as an abstract."""

    k1: float = 1.2  # how fast a repeated term stops counting; in [0, 1000]
    b: float = 0.75  # how much a long paper is held back, in [0, 1]
    form: QueryForm = QueryForm.TITLE_ABSTRACT
    key_terms: int = 20  # terms that the form "key-terms" keeps, of highest tf * idf
    stop_words: StopWords = StopWords.AUTO
    threads: int = 0  # searches at once; 0 for one per processor

    def __post_init__(self) -> None:
        if not 0 <= self.k1 <= MAX_K1:
            raise ConfigError(f"k1 must lie in [0, {MAX_K1}], got {self.k1}")
        if not 0 <= self.b <= 1:
            raise ConfigError(f"b must lie in [0, 1], got {self.b}")
        if self.key_terms < 1:
            raise ConfigError(f"key-terms must be at least 1, got {self.key_terms}")
        if self.threads < 0:
            raise ConfigError(f"threads must not be negative, got {self.threads}")


class DenseKind(StrEnum):
    """How the vectors of an index are searched."""

    EXACT = "exact"  # every vector is looked at
    HNSW = "hnsw"  # a graph of neighbours over vectors of one byte a dimension
    IVF = "ivf"  # lists of close vectors, compressed to a quarter of a byte a dimension
    AUTO = "auto"  # exact up to a million papers, else hnsw


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseIndexConfig:
    """How the vectors of an index are kept. `exact` reads nothing of it but `kind`."""

    kind: DenseKind = DenseKind.AUTO
    hnsw_m: int = 32  # links of a vector, twice as many on the ground floor
    ef_construction: int = 200  # candidates looked at for the links of a vector
    ef_search: int = 1024  # candidates of a search; doubled until the recall is reached
    ivf_lists: int | None = None  # None for 4 * sqrt(papers), fewer where training asks for it
    nprobe: int = 64  # lists that a search looks at; doubled until the recall is reached
    training_papers: int = 262_144  # at most; drawn at random
    recall_target: float = 0.95  # of the exact search's hits, in [0, 1]
    recall_depth: int = 1000  # hits that the recall is measured over
    recall_queries: int = 200  # papers that it is measured with, drawn at random
    seed: int = 0
    threads: int = 0  # 0 for all
    reproducible: bool = True  # hnsw links vectors on one thread: several never link alike twice

    def __post_init__(self) -> None:
        least = {
            "hnsw_m": 2,
            "ef_construction": 1,
            "ef_search": 1,
            "nprobe": 1,
            "training_papers": 10_000,
            "recall_depth": 1,
            "recall_queries": 1,
            "seed": 0,
            "threads": 0,
        }
        _at_least(self, least)
        if self.ivf_lists is not None and self.ivf_lists < 1:
            raise ConfigError(f"ivf_lists must be at least 1, got {self.ivf_lists}")
        if not 0 <= self.recall_target <= 1:
            raise ConfigError(f"recall_target must lie in [0, 1], got {self.recall_target}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseConfig:
    """The dense first stage: what a search may spend."""

    ef_search: int | None = None  # of an hnsw index; None for what its build chose
    nprobe: int | None = None  # of an ivf index; None for what its build chose
    threads: int = 0  # 0 for all

    def __post_init__(self) -> None:
        given = {"ef_search": 1, "nprobe": 1, "threads": 0}
        _at_least(self, {name: n for name, n in given.items() if getattr(self, name) is not None})


class FuseMethod(StrEnum):
    """How the rankings of the first stages become one."""

    RRF = "rrf"  # by ranks alone
    WEIGHTED = "weighted"  # by scores, each ranking's stretched to [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseConfig:
    """How BM25 and dense retrieval are put together."""

    method: FuseMethod = FuseMethod.RRF
    k0: int = 60  # rrf: how little the first ranks stand out
    bm25_weight: float = 0.5  # weighted: in [0, 1]
    dense_weight: float = 0.5  # weighted: in [0, 1]
    depth: int = 1000  # hits of each stage that are read

    def __post_init__(self) -> None:
        _at_least(self, {"k0": 0, "depth": 1})
        for name, weight in self.weights.items():
            if not 0 <= weight <= 1:
                raise ConfigError(f"the weight of {name} must lie in [0, 1], got {weight}")
        if not any(self.weights.values()):
            raise ConfigError("the weights of bm25 and dense are both 0; give one of them more")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each stage, by its name."""
        return {"bm25": self.bm25_weight, "dense": self.dense_weight}


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankStage:
    """One cross-encoder, and how many of the candidates it reads."""

    model: str = "auto"  # auto: the index's own; else its folder or hub id
    depth: int = 0  # candidates per query; 0 for what suits model and device
    query_tokens: int = 0  # of an input, special tokens within; 0 for what the model was made for
    candidate_tokens: int = 0  # likewise

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("reranker is empty; name a model, or say auto or none")
        _at_least(self, {"depth": 0, "query_tokens": 0, "candidate_tokens": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig:
    """The second stage: a cross-encoder, or several, each of which reads the best that the one before left."""

    stages: tuple[RerankStage, ...] = (RerankStage(),)  # cheapest first
    weight: float | None = (
        None  # of the last reranker against the first stages, in [0, 1]; None: as tuned, else 1
    )
    early_stop: bool = False  # stop reading where the list cannot change any more
    device: str = "auto"  # or cpu, cuda, cuda:1
    precision: str = "auto"  # of `citerec.encode.config.Precision`
    backend: str = "auto"  # of `citerec.encode.config.Backend`
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("no reranker is named; name one, or say none")
        _at_least(self, {"threads": 0})
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the reranker must lie in [0, 1], got {self.weight}")
        if self.early_stop and self.weight == 1 and len(self.stages) == 1:
            raise ConfigError(
                "stopping early needs a weight below 1: with the reranker alone, any paper that it has not read "
                "may still be the best"
            )
        depths = [stage.depth for stage in self.stages if stage.depth]
        if any(a <= b for a, b in pairwise(depths)):
            found = ", ".join(map(str, depths))
            raise ConfigError(f"the depths of the rerankers must fall, cheapest first, got {found}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandConfig:
    """How the papers that close ones cite join the candidates."""

    neighbours: int = 50  # close papers that are asked, the best of the first stages
    k0: int = 60  # a neighbour weighs 1 / (k0 + rank)
    extra: int = 1000  # papers that the expansion finds per query, at most; 0 for none
    weight: float = 0.3  # of the expansion against the first stages, where both make one list

    def __post_init__(self) -> None:
        _at_least(self, {"neighbours": 1, "k0": 0, "extra": 0})
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the expansion must lie in [0, 1], got {self.weight}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendConfig:
    """How many papers come back, and how they are found."""

    k: int = 20  # recommendations per query
    bm25: Bm25Config = Bm25Config()
    encoder: str = "auto"  # auto: the index's own, if it has vectors; none: BM25 alone; else its name or folder
    dense: DenseConfig = DenseConfig()
    fuse: FuseConfig | FuseMethod | None = (
        None  # a method alone: with the tuned weights; None: as tuned, else RRF
    )
    reranker: Literal["auto", "none"] | RerankConfig = (
        "auto"  # auto: the index's own, if it has one
    )
    ranker: str = "auto"  # auto: the index's own, else the package's; none; or its folder
    popularity: bool = True  # whether the ranker may read citation counts and ages
    authors: bool = True  # whether it may read who wrote a paper
    expand: ExpandConfig | None = None  # of the ranker's candidates; None: as it learned
    diversity: float = 0.0  # how much papers like those above are held back, in [0, 1]
    few_queries: bool = False  # of a process that ends after them: what opens sooner is chosen, not what runs faster

    def __post_init__(self) -> None:
        if not self.ranker.strip():
            raise ConfigError("ranker is empty; name a folder, or say auto or none")
        if self.ranker == "none" and not (self.popularity and self.authors):
            raise ConfigError("popularity and authors are read by the ranker only, and it is none")
        if not 0 <= self.diversity <= 1:
            raise ConfigError(f"diversity must lie in [0, 1], got {self.diversity}")
        if isinstance(self.k, bool) or not hasattr(self.k, "__index__"):
            raise ConfigError(f"k must be a whole number, got {self.k!r}")
        if self.k < 1:
            raise ConfigError(f"k must be at least 1, got {self.k}")
        if not self.encoder.strip():
            raise ConfigError("encoder is empty; name one, or say auto or none")
        if isinstance(self.reranker, str) and self.reranker not in ("auto", "none"):
            raise ConfigError(
                f"reranker must be auto, none or a RerankConfig, got {self.reranker!r}"
            )

    def fuse_with(self, tuned: FuseConfig | None) -> FuseConfig:
        """Return how the stages are fused on an index for which `tuned` was found best."""
        if isinstance(self.fuse, FuseConfig):
            return self.fuse
        found = tuned or FuseConfig()
        return replace(found, method=self.fuse) if self.fuse else found
