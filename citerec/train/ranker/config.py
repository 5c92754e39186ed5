"""Settings of the training of the learning-to-rank model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from citerec.train.settings import (
    From0,
    TrainingSettings,
    at_least,
    at_most,
    less_than_2_to,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerTraining(TrainingSettings):
    """The settings of the training of the learning-to-rank model."""

    seed: Annotated[int, at_least(0), less_than_2_to(31)] = 0
    queries: From0 = 20_000  # train queries per index, drawn at random; 0 for all
    dev_queries: From0 = 2_000  # dev queries per index; their candidate sets are in memory
    # auto for that of the index, else the default one, if it is installed; none; a folder or hub id
    reranker: str = "auto"
    trees: Annotated[int, at_least(1), at_most(10_000)] = 120  # at most
    least_rows: Annotated[int, at_least(1), at_most(2**31 - 1)] = 200  # training rows per leaf
    threads: From0 = 0  # 0 for one per processor

    REMOVED: ClassVar[Mapping[str, Any]] = {
        "depth": 1000,
        "neighbours": 50,
        "negatives": 150,
        "copies": 1,
        "citation_lag": 5,
        "known_fraction": 0.15,
        "rerank_depth": 0,
        "leaves": 15,
        "learning_rate": 0.1,
        "patience": 30,
        "folds": 3,
        "monotone": True,
    }
