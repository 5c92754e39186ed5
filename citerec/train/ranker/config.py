"""Settings of the training of the learning-to-rank model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from citerec.errors import ConfigError
from citerec.train.settings import (
    From0,
    Threads,
    TrainingSettings,
    at_least,
    at_most,
    less_than_2_to,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerTraining(TrainingSettings):
    """The settings of the training of the learning-to-rank model."""

    seed: Annotated[int, at_least(0), less_than_2_to(31)] = 0
    queries: From0 = 2_000  # train queries per index, drawn at random; 0 for all
    dev_queries: From0 = 2_000  # dev queries per index; their candidate sets are in memory
    # auto for that of the index, else the default one, if it is installed; none; a folder or hub id; or a list with
    # one of these per index
    reranker: str | tuple[str, ...] = "auto"
    rerank_queries: From0 = 1_000  # reranked train queries per index, at most; 0 for all
    rerank_depth: From0 = 0  # reranked candidates per query; 0 for what suits model and device
    trees: Annotated[int, at_least(1), at_most(10_000)] = 200  # at most
    least_rows: Annotated[int, at_least(1), at_most(2**31 - 1)] = 200  # training rows per leaf
    threads: Threads = 0  # 0 for one per processor

    REMOVED: ClassVar[Mapping[str, Any]] = {
        "depth": 1000,
        "neighbours": 50,
        "negatives": 400,
        "copies": 1,
        "citation_lag": 5,
        "rerank_depth": 0,  # a setting again; records of some versions have it although it is 0
        "known_fraction": 0.15,
        "leaves": 31,
        "learning_rate": 0.08,
        "patience": 30,
        "folds": 3,
        "monotone": True,
    }

    def check_together(self) -> None:
        """Refuse an empty name of a reranker.

        Raises:
            ConfigError: If there is one.
        """
        if not all(name.strip() for name in self.rerankers(1)):
            raise ConfigError("reranker is empty; name one, or use auto or none")

    def rerankers(self, indexes: int) -> tuple[str, ...]:
        """Return the setting `reranker` of each of so many indexes; all values of a list if `indexes` is 1."""
        return (self.reranker,) * indexes if isinstance(self.reranker, str) else self.reranker

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values, without those of reranking that have their default."""
        values = TrainingSettings.to_json(self)
        default = TrainingSettings.to_json(RankerTraining())
        reranking = ("rerank_queries", "rerank_depth")  # records of earlier versions lack them
        return {n: v for n, v in values.items() if n not in reranking or v != default[n]}
