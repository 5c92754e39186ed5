"""Boosted trees that rank the papers of a query: LambdaMART of LightGBM, its variants, ablations and calibration.

Source: Burges 2010, From RankNet to LambdaRank to LambdaMART, https://www.microsoft.com/en-us/research/publication/
from-ranknet-to-lambdarank-to-lambdamart-an-overview/.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.evaluate.metrics import Reliability, reliability
from citerec.folder import IndexFolder
from citerec.rank.calibrate import TOP, Calibration, relative
from citerec.rank.features import NAMES, Group, Matrix, without_groups
from citerec.rank.ltr import Variant
from citerec.rank.trees import load
from citerec.retrieve.fuse import sigmoid
from citerec.train.lists import Flags
from citerec.train.measures import F1_DEPTH, platt
from citerec.train.ranker_examples import MISSING, RankerExamples, always_present
from citerec.train.settings import RankerTraining

# A higher value of these features never lowers the score; this limits overfitting to one corpus.
RISING = frozenset(
    "bm25 bm25_rank dense dense_rank rrf rerank cited_by_similar cited_by_closest cited_by_similar_count co_cited "
    "coupled coupling author_overlap self_cited venue_match title_overlap linked_similarity walk venue_citations "
    "sentence sentences_near sentence_bm25 sentence_bm25_rank title_found".split()
)
DEEP = 200  # ranks whose pairs count; a reference list needs more than the first rank
PATIENCE = 30  # trees without a gain on dev until the training stops
FOLDS = 3  # of the dev queries, if they are training data
COPIES = 1  # of each query with randomly disabled feature groups
LEAST = 20  # cited papers that a calibration needs
GROUPS: tuple[tuple[str, tuple[Group, ...]], ...] = (  # of the ablations, added one by one
    ("lexical, semantic and text", (Group.LEXICAL, Group.SEMANTIC, Group.TEXT)),
    ("+ what close papers cite", (Group.GRAPH,)),
    ("+ citations and age", (Group.POPULARITY,)),
    ("+ authors and venue", (Group.AUTHORS, Group.VENUE)),
    ("+ cross-encoder", (Group.RERANKER,)),
)
_QUIET: Mapping[str, Any] = {"verbosity": -1, "max_bin": 127}

Measures = Mapping[str, float]  # f1@20 and mrr
Numbers = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A trained model over some features."""

    booster: Any
    features: tuple[str, ...]  # in the order of the columns
    rounds: int  # number of trees

    def scores(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return the score of each paper, shape (papers,); `matrix` has all features, columns as `NAMES`."""
        return self.booster.predict(_columns(matrix, self.features), num_iteration=self.rounds)

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


def _columns(matrix: Matrix, features: Sequence[str]) -> Matrix:
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

    def dataset(examples: RankerExamples, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            _columns(examples.matrix, features),
            examples.cited.astype(np.int8),
            group=examples.sizes,
            weight=examples.weights,
            reference=reference,
            feature_name=list(features),
            params=_QUIET,
        )

    parameters = {
        **_QUIET,
        "objective": "lambdarank",
        "lambdarank_truncation_level": DEEP,
        "lambdarank_norm": True,  # a query with many references counts little more than others
        "feature_fraction": 0.5,
        "lambda_l2": 20.0,
        "label_gain": [0, 1],
        "metric": "ndcg",
        "eval_at": [F1_DEPTH],
        "learning_rate": 0.08,
        "num_leaves": 31,
        "min_data_in_leaf": config.least_rows,
        "monotone_constraints": [int(name in RISING) for name in features],
        "seed": config.seed,
        "num_threads": config.threads,
        "deterministic": True,
        "force_row_wise": True,
    }
    data = dataset(train)
    validation = dev.learnable() if dev else None
    try:
        booster = lightgbm.train(
            parameters,
            data,
            num_boost_round=trees or config.trees,
            valid_sets=[dataset(validation, data)] if validation else [],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)] if validation else [],
        )
    except lightgbm.basic.LightGBMError as error:
        raise ConfigError(f"LightGBM refuses the settings: {error}") from error
    return Trees(booster, tuple(features), booster.best_iteration or booster.current_iteration())


@dataclass(frozen=True, slots=True, eq=False)
class IndexExamples:
    """The training and dev examples of one index."""

    index: IndexFolder
    train: RankerExamples  # of train queries, without the models trained on their citations
    dev: RankerExamples  # complete candidate sets of dev queries
    dev_teaches: bool  # whether there is such a model: then dev queries are training data, too
    reranker: str | None = None  # the reranker of the dev queries; None for none


@dataclass(frozen=True, slots=True, eq=False)
class DevEvaluation:
    """A model, and dev examples of an index that it was not trained on."""

    index: object  # the index of the dev examples
    trees: Trees
    dev: RankerExamples


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


def fit_variant(
    examples_by_index: Sequence[IndexExamples], variant: Variant, config: RankerTraining
) -> FittedVariant:
    """Train one variant, and evaluate it on dev queries that it was not trained on.

    Raises:
        ConfigError: If there is nothing to train on, or LightGBM refuses the settings.
    """
    features = [feature.name for feature in variant.features]
    joined = RankerExamples.joined
    train = joined(one.train for one in examples_by_index)
    teaching = joined(one.dev for one in examples_by_index if one.dev_teaches)
    validation = joined(one.dev for one in examples_by_index if not one.dev_teaches)
    if not len(train.learnable()) and not len(teaching.learnable()):
        raise ConfigError(
            "there is nothing to train on: no query of the index cites one of its candidates"
        )
    evaluations: list[DevEvaluation] = []
    trees = None
    if len(teaching):
        evaluations, trees = _in_folds(examples_by_index, train, validation, features, config)
        train, validation = joined([train, teaching]), joined([])
    stops = validation if len(validation.learnable()) else None
    model = fit(_copied(train, config), stops, features, config, trees)
    evaluations += [
        DevEvaluation(one.index, model, one.dev) for one in examples_by_index if not one.dev_teaches
    ]
    lists = [TopLists.of(e.dev, e.trees.scores(e.dev.matrix), TOP) for e in evaluations]
    return FittedVariant(model, evaluations, len(train), fitted(lists))


def _in_folds(
    examples_by_index: Sequence[IndexExamples],
    train: RankerExamples,
    validation: RankerExamples,
    features: Sequence[str],
    config: RankerTraining,
) -> tuple[list[DevEvaluation], int]:
    """Return models trained on most of the dev queries, evaluated on the rest, and the best number of trees."""
    rng = np.random.default_rng([config.seed, 8])
    joined = RankerExamples.joined
    folds = [
        (one, rng.permutation(np.arange(len(one.dev)) % FOLDS))
        for one in examples_by_index
        if one.dev_teaches
    ]
    evaluations: list[DevEvaluation] = []
    rounds: list[int] = []
    for k in range(FOLDS):
        fold_train = joined([train, *(one.dev.of(fold != k) for one, fold in folds)])
        held_out = [(one.index, one.dev.of(fold == k)) for one, fold in folds]
        stops = joined([validation, *(dev for _, dev in held_out)])
        if not len(fold_train.learnable()):
            continue
        trees = fit(
            _copied(fold_train, config),
            stops if len(stops.learnable()) else None,
            features,
            config,
        )
        evaluations += [DevEvaluation(index, trees, dev) for index, dev in held_out]
        rounds.append(trees.rounds)
    return evaluations, max(1, round(float(np.mean(rounds)))) if rounds else 1


def _copied(examples: RankerExamples, config: RankerTraining) -> RankerExamples:
    return examples.learnable().with_copies(COPIES, np.random.default_rng([config.seed, 9]))


def measure(
    evaluations: Sequence[DevEvaluation], missing: Sequence[Group] = (), kept: Collection[str] = ()
) -> dict[str, float]:
    """Return the means over all queries of F1 at 20 and MRR, each query ranked by the model of its evaluation.

    Args:
        evaluations: The models with their dev examples.
        missing: Disabled feature groups.
        kept: Features of these groups that stay enabled.
    """
    scores = [
        one.trees.scores(without_groups(one.dev.matrix, missing, keep=kept)) for one in evaluations
    ]
    dev = RankerExamples.joined(one.dev for one in evaluations)
    return dev.measures(np.concatenate([np.zeros(0), *scores]))


def ablations(evaluations: Sequence[DevEvaluation]) -> dict[str, Measures]:
    """Measure a model with disabled feature groups, by label: groups added one by one, then all but one.

    Nothing is trained again: the training disables groups in copies of the queries.
    """
    present: list[Group] = []
    rows: dict[str, Measures] = {}
    for label, groups in GROUPS:
        present += groups
        rows[label] = measure(evaluations, [group for group in Group if group not in present])
    for one, _ in MISSING:
        rows[f"all but {', '.join(one)}"] = measure(evaluations, one, always_present(one))
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class TopLists:
    """The best papers of several queries by a model, as users see them, one list after the other.

    The sampled lists of the training have a much larger share of cited papers.
    """

    scores: Numbers  # relative to their list, see `relative`, shape (papers,)
    cited: Flags  # shape (papers,)

    @classmethod
    def of(cls, examples: RankerExamples, scores: Numbers, top: int) -> "TopLists":
        """Take the best `top` papers of each query; `examples` are complete candidate sets."""
        ends = np.cumsum(examples.sizes)[:-1]
        chosen = [np.zeros(0)]
        cited = [np.zeros(0, np.bool_)]
        pairs = zip(np.split(scores, ends), np.split(examples.cited, ends), strict=True)
        for values, flags in pairs if len(examples) else ():
            best = np.argsort(-values, kind="stable")[:top]
            chosen.append(relative(values)[best])
            cited.append(flags[best])
        return cls(np.concatenate(chosen), np.concatenate(cited))


def fitted(lists: Sequence[TopLists]) -> Calibration | None:
    """Fit a calibration to lists of scores; None if too few papers are cited."""
    scores = np.concatenate([np.zeros(0), *(top.scores for top in lists)])
    cited = np.concatenate([np.zeros(0, np.bool_), *(top.cited for top in lists)])
    if cited.sum() < LEAST or cited.all():
        return None
    scale, offset = platt(scores, cited)
    return Calibration(scale=scale, offset=offset)


def measured_at_top(
    calibration: Calibration, examples: RankerExamples, scores: Numbers, top: int = F1_DEPTH
) -> Reliability:
    """Measure a calibration on the best `top` papers of each query, which users see."""
    lists = TopLists.of(examples, scores, top)
    z = calibration.scale * lists.scores.astype(np.float64) + calibration.offset
    return reliability(sigmoid(z), lists.cited)
