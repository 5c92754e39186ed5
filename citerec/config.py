"""The settings of each stage: frozen, keyword-only, validated on construction."""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Literal

from citerec.errors import ConfigError
from citerec.settings import check_least
from citerec.text import QueryForm

RANKING_DEPTH = 1000  # candidates per query; no metric reads deeper
RRF_K0 = 60  # damping of ranks in reciprocal rank fusion, as in its paper
MAX_K1 = 1000  # far above any useful value; with a k1 of 1e30 Lucene's float32 scores become 0


class StopWords(StrEnum):
    """Which words a BM25 query leaves out."""

    ANSERINI = "anserini"  # Lucene's 33, as in published tables
    LONG = "long"  # also Snowball's 120 and single characters
    AUTO = "auto"  # long if most papers have no abstract, else Anserini's


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Config:
    """BM25, the lexical first stage. The defaults are Lucene's, which suit queries as long as an abstract."""

    k1: float = 1.2  # how fast the weight of a repeated term saturates; in [0, 1000]
    b: float = 0.75  # how strongly long papers are normalised; in [0, 1]
    form: QueryForm = QueryForm.TITLE_ABSTRACT
    key_terms: int = 20  # terms that the form "key-terms" keeps: those of highest tf * idf
    stop_words: StopWords = StopWords.AUTO
    threads: int = 0  # parallel searches; 0 for one per processor

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

    EXACT = "exact"  # compares the query with every vector
    HNSW = "hnsw"  # a graph of nearest neighbours over vectors of one byte per dimension
    # inverted lists of similar vectors, compressed to a quarter of a byte per dimension
    IVF = "ivf"
    AUTO = "auto"  # exact up to a million papers, else hnsw


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseIndexConfig:
    """How the vectors of an index are stored. `exact` reads only `kind`."""

    kind: DenseKind = DenseKind.AUTO
    hnsw_m: int = 32  # links of a vector; twice as many on the lowest layer
    ef_construction: int = 200  # candidates that are compared when a vector is linked
    ef_search: int = 1024  # candidates of a search; doubled until the recall target is reached
    # None for 4 * sqrt(papers), or fewer if there are too few training vectors
    ivf_lists: int | None = None
    nprobe: int = 64  # lists that a search reads; doubled until the recall target is reached
    training_papers: int = 262_144  # at most; drawn at random
    recall_target: float = 0.95  # share of the exact search's hits, in [0, 1]
    recall_depth: int = RANKING_DEPTH  # hits over which the recall is measured
    recall_queries: int = 200  # papers that serve as queries for it, drawn at random
    seed: int = 0
    threads: int = 0  # 0 for all
    reproducible: bool = True  # hnsw links vectors on one thread: with several threads the links differ between builds

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
        check_least(self, least)
        if self.ivf_lists is not None and self.ivf_lists < 1:
            raise ConfigError(f"ivf_lists must be at least 1, got {self.ivf_lists}")
        if not 0 <= self.recall_target <= 1:
            raise ConfigError(f"recall_target must lie in [0, 1], got {self.recall_target}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseConfig:
    """Dense retrieval, the semantic first stage: how much a search reads."""

    ef_search: int | None = None  # of an hnsw index; None for the value that its build chose
    nprobe: int | None = None  # of an ivf index; None for the value that its build chose
    threads: int = 0  # 0 for all

    def __post_init__(self) -> None:
        least = {"ef_search": 1, "nprobe": 1, "threads": 0}
        check_least(self, {name: n for name, n in least.items() if getattr(self, name) is not None})


class FuseMethod(StrEnum):
    """How the ranked lists of the first stages are fused."""

    RRF = "rrf"  # by ranks alone
    WEIGHTED = "weighted"  # by scores, min-max scaled per ranked list


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseConfig:
    """How BM25 and dense retrieval are fused."""

    method: FuseMethod = FuseMethod.RRF
    k0: int = RRF_K0  # rrf: damping; higher values weaken the first ranks
    bm25_weight: float = 0.5  # weighted: in [0, 1]
    dense_weight: float = 0.5  # weighted: in [0, 1]
    depth: int = RANKING_DEPTH  # hits per retriever that are fused

    def __post_init__(self) -> None:
        check_least(self, {"k0": 0, "depth": 1})
        for name, weight in self.weights.items():
            if not 0 <= weight <= 1:
                raise ConfigError(f"the weight of {name} must lie in [0, 1], got {weight}")
        if not any(self.weights.values()):
            raise ConfigError("the weights of bm25 and dense are both 0; set one of them above 0")

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each retriever, by its name."""
        return {"bm25": self.bm25_weight, "dense": self.dense_weight}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderConfig:
    """One cross-encoder, and how many candidates it scores."""

    model: str = "auto"  # auto: the index's own, else the package's; else a name, folder or hub id
    depth: int = 0  # candidates per query; 0 for what suits model and device
    # query tokens of an input, with special tokens; 0 for the model's own setting
    query_tokens: int = 0
    candidate_tokens: int = 0  # likewise for the candidate

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("reranker is empty; name a model, or use auto or none")
        check_least(self, {"depth": 0, "query_tokens": 0, "candidate_tokens": 0})


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankConfig:
    """Reranking by a cross-encoder, or by several; each scores the best candidates of the previous one."""

    cross_encoders: tuple[CrossEncoderConfig, ...] = (CrossEncoderConfig(),)  # cheapest first
    # of the last reranker against the previous order, in [0, 1]; None: the tuned weight, else the model's
    weight: float | None = None
    early_stop: bool = False  # stop scoring when the best k cannot change any more
    device: str = "auto"  # or cpu, cuda, cuda:1
    precision: str = "auto"  # of `citerec.encode.config.Precision`
    backend: str = "auto"  # of `citerec.encode.config.Backend`
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        if not self.cross_encoders:
            raise ConfigError("no reranker is named; name one, or use none")
        check_least(self, {"threads": 0})
        if self.weight is not None and not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the reranker must lie in [0, 1], got {self.weight}")
        if self.early_stop and self.weight == 1 and len(self.cross_encoders) == 1:
            raise ConfigError(
                "stopping early needs a weight below 1: with the reranker alone, any paper that it has not scored "
                "may still be the best"
            )
        depths = [encoder.depth for encoder in self.cross_encoders if encoder.depth]
        if any(a <= b for a, b in pairwise(depths)):
            listed = ", ".join(map(str, depths))
            raise ConfigError(
                f"the depths of the rerankers must fall, cheapest first, got {listed}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandConfig:
    """How papers that the best candidates cite or are cited together with are added (expansion)."""

    neighbours: int = (
        50  # the best papers of the first stages, which cite or are co-cited with the added papers
    )
    k0: int = RRF_K0  # a neighbour weighs 1 / (k0 + rank)
    extra: int = RANKING_DEPTH  # papers that the expansion adds per query, at most; 0 for none
    weight: float = 0.3  # of the expansion against the first stages when both are fused

    def __post_init__(self) -> None:
        check_least(self, {"neighbours": 1, "k0": 0, "extra": 0})
        if not 0 <= self.weight <= 1:
            raise ConfigError(f"the weight of the expansion must lie in [0, 1], got {self.weight}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendConfig:
    """How many papers are recommended, and how they are retrieved and ranked."""

    k: int = 20  # recommendations per query
    bm25: Bm25Config = Bm25Config()
    encoder: str = "auto"  # auto: the index's own, if it has vectors; none: BM25 alone; else its name or folder
    dense: DenseConfig = DenseConfig()
    # more first-stage retrievers, which other packages register by entry points: their names
    retrievers: tuple[str, ...] = ()
    # a method alone: with the tuned weights; None: the tuned fusion, else RRF
    fuse: FuseConfig | FuseMethod | None = None
    # auto: the index's own, else the package's, if there is one
    reranker: Literal["auto", "none"] | RerankConfig = "auto"
    ranker: str = "auto"  # auto: the index's own, else the package's; none; or a folder
    popularity: bool = True  # whether the ranker may read citation counts and ages
    authors: bool = True  # whether the ranker may read authors
    # of the ranker's candidates; None: the expansion that it was trained with
    expand: ExpandConfig | None = None
    diversity: float = 0.0  # penalty for similarity to papers ranked above, in [0, 1]
    few_queries: bool = False  # the process ends after a few queries: prefer what opens faster

    def __post_init__(self) -> None:
        if not self.ranker.strip():
            raise ConfigError("ranker is empty; name a folder, or use auto or none")
        if self.ranker == "none" and not (self.popularity and self.authors):
            raise ConfigError("popularity and authors are read by the ranker only, and it is none")
        if not 0 <= self.diversity <= 1:
            raise ConfigError(f"diversity must lie in [0, 1], got {self.diversity}")
        if isinstance(self.k, bool) or not hasattr(self.k, "__index__"):
            raise ConfigError(f"k must be a whole number, got {self.k!r}")
        if self.k < 1:
            raise ConfigError(f"k must be at least 1, got {self.k}")
        if not self.encoder.strip():
            raise ConfigError("encoder is empty; name one, or use auto or none")
        if isinstance(self.reranker, str) and self.reranker not in ("auto", "none"):
            raise ConfigError(
                f"reranker must be auto, none or a RerankConfig, got {self.reranker!r}"
            )

    def fuse_with(self, tuned: FuseConfig | None) -> FuseConfig:
        """Return the fusion for an index whose tuned fusion is `tuned` (None if it was not tuned)."""
        if isinstance(self.fuse, FuseConfig):
            return self.fuse
        fusion = tuned or FuseConfig()
        return replace(fusion, method=self.fuse) if self.fuse else fusion
