"""Settings of the training of the learning-to-rank model: a TOML file, and options that override it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from citerec.config import RANKING_DEPTH, ExpandConfig
from citerec.errors import ConfigError
from citerec.train.settings import check_above_zero, check_least, checked, kinds_of, read_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerTraining:
    """The settings of the training of the learning-to-rank model."""

    seed: int = 0
    queries: int = 20_000  # train queries per index, drawn at random; 0 for all
    dev_queries: int = 2_000  # dev queries per index, likewise; their candidate sets are in memory
    depth: int = RANKING_DEPTH  # candidates per query and retriever
    neighbours: int = 50  # nearest papers whose references join the candidates
    negatives: int = 150  # sampled candidates per query that it does not cite, at most
    copies: int = 1  # copies of each query with randomly disabled feature groups
    citation_lag: int = (
        5  # years; half of the queries do not know the newest citations, of 1 to so many years
    )
    known_fraction: float = (
        0.15  # share of the train queries that know half of their references, as with --cited
    )
    reranker: str = "auto"  # auto for that of the index, if any; none; a folder or hub id
    rerank_depth: int = 0  # reranked candidates; 0 for the default of the model
    trees: int = 120  # at most
    leaves: int = 15  # per tree
    learning_rate: float = 0.1
    least_rows: int = 200  # training rows per leaf, at least
    patience: int = 30  # trees without a gain on dev until the training stops
    folds: int = 3  # of the dev queries, if they are training data
    monotone: bool = True  # a higher value of the features in `RISING` never lowers a score
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
        """Make the settings from values by name.

        Args:
            given: Values by name, from a TOML file or the command line.
            where: The origin of the values, as a prefix of error messages.

        Raises:
            ConfigError: If a name is unknown or a value is invalid.
        """
        return cls(**checked(kinds_of(cls), given, where))

    @property
    def expand(self) -> ExpandConfig:
        """How the references of neighbours join the candidates."""
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


_MOST = {  # LightGBM allows 10,000 papers per query; up to 1,000 join the candidates
    "depth": 4000,
    "negatives": 5000,
    "leaves": 1000,
    "least_rows": 2**31 - 1,
    "trees": 10_000,
}


def read_training(file: Path | None, options: Mapping[str, Any]) -> RankerTraining:
    """Read the settings: options override the file.

    Raises:
        BadInputError: If the file cannot be read.
        ConfigError: If a name or a value in it is invalid.
    """
    return read_settings(RankerTraining.of, file, options)
