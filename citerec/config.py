"""The settings of each stage: frozen, keyword-only, checked at birth."""

from dataclasses import dataclass
from enum import StrEnum

from citerec.errors import ConfigError
from citerec.text import QueryForm

MAX_K1 = 1000  # far above any use; Lucene's float32 scores vanish with a k1 of 1e30


class StopWords(StrEnum):
    """Which words a BM25 query leaves out."""

    ANSERINI = "anserini"  # Lucene's 33, as in the literature's tables
    LONG = "long"  # Snowball's 120 and single characters, too
    AUTO = "auto"  # long where most papers have no abstract, else Anserini's


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendConfig:
    """How many papers come back, and how they are found."""

    k: int = 20  # recommendations per query
    bm25: Bm25Config = Bm25Config()

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k must be at least 1, got {self.k}")
