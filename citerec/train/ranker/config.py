"""How the final ranker is trained: a TOML file, and options that win over it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from citerec.config import ExpandConfig
from citerec.errors import ConfigError
from citerec.train.settings import check_above_zero, check_least, checked, kinds_of, read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerTraining:
    """How the final ranker is trained."""

    seed: int = 0
    queries: int = 20_000  # train queries of an index that are learned from, at random; 0 for all
    dev_queries: int = 2_000  # likewise, that are measured: their whole pools are in memory
    depth: int = 1000  # candidates of a query, of each stage
    neighbours: int = 50  # close papers whose citations are asked
    negatives: int = 150  # papers of a pool that a query is shown and does not cite, at most
    copies: int = 1  # how often each query is shown again, some of its sources missing
    citation_lag: int = 5  # years: the newest citations are unknown to half of the queries, up to so many years of them
    known_fraction: float = (
        0.15  # share of the train queries that know half of what they cite, as with --cited
    )
    reranker: str = "auto"  # what reads the pools: auto for the index's own, if it has one; none; a folder or hub id
    rerank_depth: int = 0  # candidates that it reads; 0 for what suits it
    trees: int = 120  # at most
    leaves: int = 15  # of a tree
    learning_rate: float = 0.1
    least_rows: int = 200  # of a leaf
    patience: int = 30  # trees without a gain on dev, after which it ends
    folds: int = 3  # of the dev queries, where they teach
    monotone: bool = True  # more evidence never lowers a paper
    threads: int = 0  # 0 for one per processor

    def __post_init__(self) -> None:
        check_least(self, _LEAST)
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise ConfigError(f"{name} must be at most {most:,}, got {getattr(self, name):,}")
        check_above_zero(self, "learning_rate")
        if not 0 <= self.known_fraction <= 1:
            raise ConfigError(f"known_fraction must lie in [0, 1], got {self.known_fraction}")
        if self.seed >= 2**31:
            raise ConfigError(f"seed must be less than 2^31, got {self.seed}")

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str = "") -> Self:
        """Make the settings from values by name; `where` says who gave them, for errors.

        Raises:
            ConfigError: If a name or a value cannot be.
        """
        return cls(**checked(kinds_of(cls), given, where))

    @property
    def expand(self) -> ExpandConfig:
        """How the papers that close ones cite join the candidates."""
        return ExpandConfig(neighbours=self.neighbours)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)


_LEAST = {
    "seed": 0,
    "queries": 0,
    "dev_queries": 0,
    "depth": 20,
    "neighbours": 1,
    "negatives": 1,
    "copies": 0,
    "citation_lag": 0,
    "rerank_depth": 0,
    "trees": 1,
    "leaves": 2,
    "least_rows": 1,
    "patience": 1,
    "folds": 2,
    "threads": 0,
}


_MOST = {  # LightGBM takes 10,000 papers of a query; up to 1,000 join the candidates
    "depth": 4000,
    "negatives": 5000,
    "leaves": 1000,
    "least_rows": 2**31 - 1,
    "trees": 10_000,
}


def read_training(file: Path | None, options: Mapping[str, Any]) -> RankerTraining:
    """Read how to train: options win over the file.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it cannot be.
    """
    return read_settings(RankerTraining.of, file, options)
