"""Boosted trees that rank the papers of a query: LambdaMART of LightGBM.

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
from citerec.rank.trees import load
from citerec.train.measures import F1_DEPTH
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples

# A higher value of these features never lowers the score; this limits overfitting to one corpus.
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
        "linked_similarity",
        "walk",
        "venue_citations",
        "sentence",
        "sentences_near",
        "sentence_bm25",
        "sentence_bm25_rank",
        "title_found",
    }
)
DEEP = 200  # ranks whose pairs count; a reference list needs more than the first rank
LEARNING_RATE = 0.08
LEAVES = 31
PATIENCE = 30  # trees without a gain on dev until the training stops


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A trained model over some features."""

    booster: Any
    features: tuple[str, ...]  # in the order of the columns
    rounds: int  # number of trees

    def scores(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return the score of each paper, shape (papers,).

        Args:
            matrix: All features, columns as `NAMES`.
        """
        return self.booster.predict(columns(matrix, self.features), num_iteration=self.rounds)

    @property
    def text(self) -> str:
        """The model in the text format of LightGBM."""
        return self.booster.model_to_string(num_iteration=self.rounds)

    @property
    def gains(self) -> dict[str, float]:
        """The share of each feature in the gain of all splits, largest first."""
        gains = self.booster.feature_importance("gain", iteration=self.rounds)
        shares = gains / max(gains.sum(), 1e-9)
        by_feature = dict(zip(self.features, shares.tolist(), strict=True))
        return dict(sorted(by_feature.items(), key=lambda item: -item[1]))


def columns(matrix: Matrix, features: Sequence[str]) -> Matrix:
    """Return the columns of some features from a matrix of all features."""
    return matrix[:, [NAMES.index(name) for name in features]]


def fit(
    train: RankerExamples,
    dev: RankerExamples | None,
    features: Sequence[str],
    config: RankerTraining,
    trees: int | None = None,
) -> Trees:
    """Train on some queries.

    Args:
        train: The training examples.
        dev: Selects the number of trees by early stopping; None for the maximum number.
        features: The features of the model.
        config: The settings.
        trees: The maximum number of trees; that of the settings by default.

    Raises:
        ConfigError: If LightGBM refuses the settings.
    """
    lightgbm = load()
    dataset = _dataset(lightgbm, train, features)
    validation = dev.learnable() if dev else None
    callbacks = [lightgbm.early_stopping(PATIENCE, verbose=False)] if validation else []
    try:
        booster = lightgbm.train(
            _parameters(features, config),
            dataset,
            num_boost_round=trees or config.trees,
            valid_sets=[_dataset(lightgbm, validation, features, dataset)] if validation else [],
            callbacks=callbacks,
        )
    except lightgbm.basic.LightGBMError as error:
        raise ConfigError(f"LightGBM refuses the settings: {error}") from error
    return Trees(booster, tuple(features), booster.best_iteration or booster.current_iteration())


def _dataset(
    lightgbm: Any, examples: RankerExamples, features: Sequence[str], reference: Any = None
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
    monotone = [int(name in RISING) for name in features]
    return {
        **_QUIET,
        "objective": "lambdarank",
        "lambdarank_truncation_level": DEEP,
        "lambdarank_norm": True,  # a query with many references counts little more than others
        "feature_fraction": 0.5,
        "lambda_l2": 20.0,
        "label_gain": [0, 1],
        "metric": "ndcg",
        "eval_at": [F1_DEPTH],
        "learning_rate": LEARNING_RATE,
        "num_leaves": LEAVES,
        "min_data_in_leaf": config.least_rows,
        "monotone_constraints": monotone,
        "seed": config.seed,
        "num_threads": config.threads,
        "deterministic": True,
        "force_row_wise": True,
    }
