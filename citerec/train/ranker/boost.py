"""Boosted trees that order the papers of a query: LightGBM's LambdaMART.

Source: Burges 2010, From RankNet to LambdaRank to LambdaMART, https://www.microsoft.com/en-us/research/publication/
from-ranknet-to-lambdarank-to-lambdamart-an-overview/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.rank.features import NAMES, Matrix
from citerec.rank.library import load
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples
from citerec.train.selection import F1_DEPTH

# What a paper has more of never speaks against it: so no corpus can teach what holds there alone.
RISING = frozenset(
    {
        "bm25",
        "bm25_rank",
        "dense",
        "dense_rank",
        "rrf",
        "rerank",
        "cited_by_similar",
        "cited_by_closest",
        "cited_by_similar_count",
        "co_cited",
        "coupled",
        "coupling",
        "author_overlap",
        "self_cited",
        "venue_match",
        "title_overlap",
    }
)


DEEP = 200  # ranks whose pairs count: of a list of references the first paper is not all


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A trained model of some features."""

    booster: Any
    features: tuple[str, ...]  # in the order of its columns
    rounds: int  # trees that are used

    def scores(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return the score of each paper, from the features of all of `NAMES`."""
        return self.booster.predict(columns(matrix, self.features), num_iteration=self.rounds)

    @property
    def text(self) -> str:
        """The model as LightGBM writes it."""
        return self.booster.model_to_string(num_iteration=self.rounds)

    @property
    def gains(self) -> dict[str, float]:
        """The share of the gain of all splits that each feature has, largest first."""
        gains = self.booster.feature_importance("gain", iteration=self.rounds)
        shares = gains / max(gains.sum(), 1e-9)
        found = dict(zip(self.features, shares.tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def columns(matrix: Matrix, features: Sequence[str]) -> Matrix:
    """Return some columns of a matrix that has all features."""
    return matrix[:, [NAMES.index(name) for name in features]]


def fit(
    train: Examples,
    dev: Examples | None,
    features: Sequence[str],
    config: RankerTraining,
    trees: int | None = None,
) -> Trees:
    """Train on some queries.

    Args:
        train: What is learned from.
        dev: Where the number of trees is best is measured here; None for as many as there may be.
        features: Those that it may read.
        config: How.
        trees: How many at most; by default as the settings say.

    Raises:
        ConfigError: If LightGBM refuses the settings.
    """
    lightgbm = load()
    learned = _dataset(lightgbm, train, features)
    watched = dev.learnable() if dev else None
    asked = [lightgbm.early_stopping(config.patience, verbose=False)] if watched else []
    try:
        booster = lightgbm.train(
            _parameters(features, config),
            learned,
            num_boost_round=trees or config.trees,
            valid_sets=[_dataset(lightgbm, watched, features, learned)] if watched else [],
            callbacks=asked,
        )
    except lightgbm.basic.LightGBMError as error:
        raise ConfigError(f"these settings cannot be trained with: {error}") from error
    return Trees(booster, tuple(features), booster.best_iteration or booster.current_iteration())


def _dataset(
    lightgbm: Any, examples: Examples, features: Sequence[str], reference: Any = None
) -> Any:
    return lightgbm.Dataset(
        columns(examples.matrix, features),
        examples.cited.astype(np.int8),
        group=examples.sizes,
        weight=examples.weights,
        reference=reference,
        feature_name=list(features),
        params=_QUIET,
    )


_QUIET: Mapping[str, Any] = {"verbosity": -1, "max_bin": 127}


def _parameters(features: Sequence[str], config: RankerTraining) -> dict[str, Any]:
    rising = [int(config.monotone and name in RISING) for name in features]
    return {
        **_QUIET,
        "objective": "lambdarank",
        "lambdarank_truncation_level": DEEP,
        "lambdarank_norm": False,
        "feature_fraction": 0.5,
        "lambda_l2": 20.0,
        "label_gain": [0, 1],
        "metric": "ndcg",
        "eval_at": [F1_DEPTH],
        "learning_rate": config.learning_rate,
        "num_leaves": config.leaves,
        "min_data_in_leaf": config.least_rows,
        "monotone_constraints": rising,
        "seed": config.seed,
        "num_threads": config.threads,
        "deterministic": True,
        "force_row_wise": True,
    }
