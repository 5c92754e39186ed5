"""Fits the variants of a learning-to-rank model, and measures each on dev queries that it was not trained on.

The fitted trees are saved in the training folder; an interrupted training resumes from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from citerec.atomic import replacing
from citerec.errors import ConfigError, writing
from citerec.folder import IndexFolder
from citerec.rank.calibrate import Calibration
from citerec.rank.ltr import Variant
from citerec.rank.trees import read_booster
from citerec.train.ranker.ablation import DevEvaluation, measure
from citerec.train.ranker.boost import Trees, fit
from citerec.train.ranker.calibrate import calibrated
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples, with_copies
from citerec.types import Progress, no_progress

FOLDS = 3  # of the dev queries, if they are training data
COPIES = 1  # of each query with randomly disabled feature groups

Measures = Mapping[str, float]  # f1@20 and mrr


@dataclass(frozen=True, slots=True, eq=False)
class IndexExamples:
    """The training and dev examples of one index."""

    index: IndexFolder
    train: RankerExamples  # of train queries, without the models trained on their citations
    dev: RankerExamples  # complete candidate sets of dev queries
    dev_teaches: bool  # whether there is such a model: then dev queries are training data, too
    reranker: str | None = None  # the reranker of the dev queries; None for none


@dataclass(frozen=True, slots=True, eq=False)
class FittedVariant:
    """One variant of the model, with its evaluation and calibration."""

    trees: Trees
    evaluations: Sequence[DevEvaluation]
    queries: int  # training queries
    calibration: Calibration | None

    @property
    def measures(self) -> Measures:
        """The measures on the dev queries."""
        return measure(self.evaluations)


@dataclass(slots=True)
class KeptTrees:
    """The boosted models of a training, each in a file; an existing file is not trained again."""

    folder: Path | None = None  # None for no files
    total: int = 0  # models of the training
    progress: Progress = no_progress
    made: int = 0  # finished models, including those of the resumed training

    def fit(
        self,
        train: RankerExamples,
        dev: RankerExamples | None,
        features: Sequence[str],
        config: RankerTraining,
        trees: int | None = None,
    ) -> Trees:
        """Return the result of `boost.fit`, read back from its file.

        Raises:
            ConfigError: If LightGBM refuses the settings.
            ModelError: If a file is damaged.
            OutputError: If a file cannot be written.
        """
        self.made += 1
        if self.folder is None:
            return fit(train, dev, features, config, trees)
        file = self.folder / f"trees-{self.made}.txt"
        if not file.is_file():
            text = fit(train, dev, features, config, trees).text
            with writing(file), replacing(file) as temporary:
                temporary.write_text(text)
        self.progress("boosted models", self.made, self.total)
        booster = read_booster(file, len(features)).model
        return Trees(booster, tuple(features), booster.num_trees())


def fit_variant(
    examples_by_index: Sequence[IndexExamples],
    variant: Variant,
    config: RankerTraining,
    kept: KeptTrees,
) -> FittedVariant:
    """Train one variant, and evaluate it on dev queries that it was not trained on."""
    features = [feature.name for feature in variant.features]
    copied = partial(_copied, config=config)
    train = RankerExamples.joined([examples.train for examples in examples_by_index])
    dev_as_training = RankerExamples.joined(
        [examples.dev for examples in examples_by_index if examples.dev_teaches]
    )
    if not len(train.learnable()) and not len(dev_as_training.learnable()):
        raise ConfigError(
            "there is nothing to train on: no query of the index cites one of its candidates"
        )
    evaluations: list[DevEvaluation] = []
    trees = None
    validation = RankerExamples.joined(
        [examples.dev for examples in examples_by_index if not examples.dev_teaches]
    )
    if len(dev_as_training):
        evaluations, trees = _in_folds(examples_by_index, train, validation, features, config, kept)
        train, validation = (
            RankerExamples.joined([train, dev_as_training]),
            RankerExamples.joined([]),
        )
    model = kept.fit(
        copied(train), validation if len(validation.learnable()) else None, features, config, trees
    )
    evaluations += [
        DevEvaluation(examples.index, model, examples.dev)
        for examples in examples_by_index
        if not examples.dev_teaches
    ]
    return FittedVariant(model, evaluations, len(train), calibrated(evaluations))


def _in_folds(
    examples_by_index: Sequence[IndexExamples],
    train: RankerExamples,
    validation: RankerExamples,
    features: Sequence[str],
    config: RankerTraining,
    kept: KeptTrees,
) -> tuple[list[DevEvaluation], int]:
    """Return models trained on most of the dev queries, evaluated on the rest, and the best number of trees."""
    rng = np.random.default_rng([config.seed, 8])
    folds = [
        (examples, rng.permutation(np.arange(len(examples.dev)) % FOLDS))
        for examples in examples_by_index
        if examples.dev_teaches
    ]
    evaluations: list[DevEvaluation] = []
    rounds: list[int] = []
    for k in range(FOLDS):
        fold_train = RankerExamples.joined(
            [train, *(examples.dev.of(fold != k) for examples, fold in folds)]
        )
        held_out_folds = [(examples.index, examples.dev.of(fold == k)) for examples, fold in folds]
        fold_validation = RankerExamples.joined([validation, *(dev for _, dev in held_out_folds)])
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


def _copied(examples: RankerExamples, config: RankerTraining) -> RankerExamples:
    return with_copies(examples.learnable(), COPIES, np.random.default_rng([config.seed, 9]))
