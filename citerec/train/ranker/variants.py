"""Fits the variants of a learning-to-rank model, and measures each on dev queries that it was not trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rank.probability import Calibration
from citerec.rank.ranker import Variant
from citerec.train.ranker.ablation import DevEvaluation, measure
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.calibrate import calibrated
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples, with_copies
from citerec.train.ranker.kept import KeptTrees

Measures = Mapping[str, float]  # f1@20 and mrr


@dataclass(frozen=True, slots=True, eq=False)
class IndexExamples:
    """The training and dev examples of one index."""

    index: IndexFolder
    train: Examples  # of train queries, without the models trained on their citations
    dev: Examples  # complete candidate sets of dev queries
    dev_teaches: bool  # whether there is such a model: then dev queries are training data, too


@dataclass(frozen=True, slots=True, eq=False)
class FittedVariant:
    trees: Trees
    evaluations: Sequence[DevEvaluation]
    queries: int  # training queries
    calibration: Calibration | None

    @property
    def measures(self) -> Measures:
        return measure(self.evaluations)


def fit_variant(
    examples_by_index: Sequence[IndexExamples],
    variant: Variant,
    config: RankerTraining,
    kept: KeptTrees,
) -> FittedVariant:
    """Train one variant, and evaluate it on dev queries that it was not trained on."""
    features = [feature.name for feature in variant.features]
    copied = partial(_copied, config=config)
    train = Examples.joined([one.train for one in examples_by_index])
    dev_as_training = Examples.joined([one.dev for one in examples_by_index if one.dev_teaches])
    if not len(train.learnable()) and not len(dev_as_training.learnable()):
        raise ConfigError(
            "there is nothing to train on: no query of the index cites one of its candidates"
        )
    evaluations: list[DevEvaluation] = []
    trees, validation = (
        None,
        Examples.joined([one.dev for one in examples_by_index if not one.dev_teaches]),
    )
    if len(dev_as_training):
        evaluations, trees = _in_folds(examples_by_index, train, validation, features, config, kept)
        train, validation = Examples.joined([train, dev_as_training]), Examples.joined([])
    model = kept.fit(
        copied(train), validation if len(validation.learnable()) else None, features, config, trees
    )
    evaluations += [
        DevEvaluation(one.index, model, one.dev) for one in examples_by_index if not one.dev_teaches
    ]
    return FittedVariant(model, evaluations, len(train), calibrated(evaluations))


def _in_folds(
    examples_by_index: Sequence[IndexExamples],
    train: Examples,
    validation: Examples,
    features: Sequence[str],
    config: RankerTraining,
    kept: KeptTrees,
) -> tuple[list[DevEvaluation], int]:
    """Return models trained on most of the dev queries, evaluated on the rest, and the best number of trees."""
    rng = np.random.default_rng([config.seed, 8])
    folds = [
        (one, rng.permutation(np.arange(len(one.dev)) % config.folds))
        for one in examples_by_index
        if one.dev_teaches
    ]
    evaluations: list[DevEvaluation] = []
    rounds: list[int] = []
    for k in range(config.folds):
        fold_train = Examples.joined([train, *(one.dev.of(fold != k) for one, fold in folds)])
        held_out_folds = [(one.index, one.dev.of(fold == k)) for one, fold in folds]
        fold_validation = Examples.joined([validation, *(dev for _, dev in held_out_folds)])
        if not len(fold_train.learnable()):
            continue
        has_validation = len(fold_validation.learnable()) > 0
        trees = kept.fit(
            _copied(fold_train, config),
            fold_validation if has_validation else None,
            features,
            config,
        )
        evaluations += [DevEvaluation(index, trees, dev) for index, dev in held_out_folds]
        rounds.append(trees.rounds)
    return evaluations, max(1, round(float(np.mean(rounds)))) if rounds else 1


def _copied(examples: Examples, config: RankerTraining) -> Examples:
    return with_copies(examples.learnable(), config.copies, np.random.default_rng([config.seed, 9]))
