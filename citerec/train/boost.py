"""Boosted trees that rank the papers of a query: examples, LambdaMART of LightGBM, its variants and calibration.

Source: Burges 2010, From RankNet to LambdaRank to LambdaMART, https://www.microsoft.com/en-us/research/publication/
from-ranknet-to-lambdarank-to-lambdamart-an-overview/.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from citerec.errors import ConfigError
from citerec.files.arrays import (
    Array,
    Counts,
    Flags,
    Floats,
    Numbers,
    Scores,
    concatenated,
)
from citerec.index.folder import IndexFolder
from citerec.rank.features import (
    FEATURES,
    NAMES,
    Feature,
    Group,
    Matrix,
    without_groups,
)
from citerec.rank.ltr import (
    DEFAULT,
    TOP,
    Calibration,
    Linear,
    Variant,
    read_spec,
)
from citerec.rank.trees import load
from citerec.train.data import F1_DEPTH, LabelledScores, logistic, query_measures
from citerec.train.settings import RankerTraining

DEEP = 200  # ranks whose pairs count; a reference list needs more than the first rank
PATIENCE = 30  # trees without a gain on dev until the training stops
FOLDS = 3  # of the dev queries, if they are training data
# strength of the default's calibration: that of so many cited papers, about
PRIOR = 10.0
# The probability that a feature group is disabled in a copy of a query. Lexical features are always enabled, since
# every index has BM25. Graph and popularity are disabled together, as in an index without citations.
MISSING = (
    ((Group.SEMANTIC,), 0.3),
    ((Group.RERANKER,), 0.5),
    ((Group.GRAPH, Group.POPULARITY), 0.25),
    ((Group.AUTHORS,), 0.3),
    ((Group.VENUE,), 0.3),
    ((Group.CONTEXTS,), 0.5),
)
_QUIET: Mapping[str, Any] = {"verbosity": -1, "max_bin": 127}

Measures = Mapping[str, float]  # f1@20 and mrr


@dataclass(frozen=True, slots=True, eq=False)
class RankerExamples:
    """The candidates of several queries, query by query, in first-stage order."""

    # shape (papers, features), columns as `FEATURES` and the added features
    matrix: Matrix
    cited: Flags  # shape (papers,)
    sizes: Counts  # papers of each query, shape (queries,)
    gold: Counts  # cited papers of each query, retrieved or not, shape (queries,)
    weights: Scores  # of each paper, shape (papers,)

    @classmethod
    def one(cls, matrix: Matrix, cited: Flags, gold: int, weights: Any = None) -> Self:
        """Make the examples of one query; weights are 1 by default."""
        each = np.ones(len(cited), np.float32) if weights is None else weights
        return cls(matrix, cited, np.array([len(cited)]), np.array([gold]), each)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Concatenate the queries of several parts."""
        parts = [part for part in parts if len(part)]
        if not parts:
            none = np.zeros(0, np.int64)
            matrix = np.zeros((0, len(FEATURES)), np.float32)
            return cls(
                matrix, none.astype(np.bool_), none, none, none.astype(np.float32)
            )
        columns = zip(*(part.arrays.values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays by name, as the constructor takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def segment_ids(self) -> Counts:
        """The number of the query of each paper, shape (papers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def of(self, chosen: Flags) -> Self:
        """Return the flagged queries; `chosen` has shape (queries,)."""
        rows = chosen[self.segment_ids]
        queries = self.sizes[chosen], self.gold[chosen]
        return type(self)(
            self.matrix[rows], self.cited[rows], *queries, self.weights[rows]
        )

    def learnable(self) -> Self:
        """Return the queries with both cited and other papers."""
        hits = np.bincount(self.segment_ids, self.cited, len(self))
        return self.of((hits > 0) & (hits < self.sizes))

    def lists(self, scores: Numbers) -> Iterator[LabelledScores]:
        """Yield for each query the scores and labels of its papers, and its gold count; scores as `cited`."""
        ends = np.cumsum(self.sizes)
        for end, size, gold in zip(ends, self.sizes, self.gold.tolist(), strict=True):
            yield scores[end - size : end], self.cited[end - size : end], gold

    def measures(self, scores: Numbers) -> dict[str, float]:
        """Return the means over the queries of F1 at 20 and of 1 / rank of the first cited paper."""
        return mean_measures(query_measures(self.lists(scores)))

    def with_copies(self, rng: np.random.Generator, added: Sequence[Feature]) -> Self:
        """Return the queries and a copy of each with disabled feature groups: an index may lack these."""
        matrix = self.matrix
        for groups, share in MISSING:
            disabled = (rng.random(len(self)) < share)[self.segment_ids]
            # the age of a paper needs no citation graph
            keep = {"age"} if Group.GRAPH in groups else ()
            matrix = without_groups(matrix, groups, disabled, keep=keep, added=added)
        return self.joined([self, replace(self, matrix=matrix)])


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A trained model; LightGBM reads its best number of trees."""

    booster: Any
    added: tuple[Feature, ...] = ()  # that are not citerec's own
    base: "Trees | Linear | None" = None  # whose scores theirs are added to

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of the model."""
        return tuple(self.booster.feature_name())

    @property
    def rounds(self) -> int:
        """The number of trees."""
        return self.booster.best_iteration or self.booster.current_iteration()

    def scores(self, matrix: Matrix) -> Floats:
        """Return the score of each paper, shape (papers,); `matrix` has all features."""
        own = self.booster.predict(_read(matrix, self.features, self.added))
        return own + self.base.scores(matrix) if self.base else own

    @property
    def gains(self) -> dict[str, float]:
        """The share of each feature in the gain of all splits, largest first."""
        gains = self.booster.feature_importance("gain")
        shares = gains / max(gains.sum(), 1e-9)
        by_feature = dict(zip(self.features, shares.tolist(), strict=True))
        return dict(sorted(by_feature.items(), key=lambda item: -item[1]))


def _read(matrix: Matrix, features: Sequence[str], added: Sequence[Feature]) -> Matrix:
    columns = [*NAMES, *(feature.name for feature in added)]
    return matrix[:, [columns.index(name) for name in features]]


def fit(
    train: RankerExamples,
    dev: RankerExamples | None,
    features: Sequence[str],
    config: RankerTraining,
    trees: int | None = None,
    added: tuple[Feature, ...] = (),
    base: Trees | Linear | None = None,
) -> Trees:
    """Train on some queries; dev queries select the number of trees, at most `trees`, by early stopping.

    The scores of the trees are added to those of `base`, if it is given.
    """
    lightgbm = load()

    def dataset(examples: RankerExamples, reference: Any = None) -> Any:
        return lightgbm.Dataset(
            _read(examples.matrix, features, added),
            examples.cited.astype(np.int8),
            group=examples.sizes,
            weight=examples.weights,
            init_score=base.scores(examples.matrix) if base else None,
            reference=reference,
            feature_name=list(features),
            params=_QUIET,
        )

    rising = {f.name for f in (*FEATURES, *added) if f.direction == "rising"}
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
        "monotone_constraints": [int(name in rising) for name in features],
        "seed": config.seed,
        "num_threads": config.threads,
        "deterministic": True,
        "force_row_wise": True,
    }
    rng = np.random.default_rng([config.seed, 9])
    data = dataset(train.learnable().with_copies(rng, added))
    validation = dev.learnable() if dev else None
    booster = lightgbm.train(
        parameters,
        data,
        num_boost_round=trees or config.trees,
        valid_sets=[dataset(validation, data)] if validation else [],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)]
        if validation
        else [],
    )
    return Trees(booster, added, base)


@dataclass(frozen=True, slots=True, eq=False)
class IndexExamples:
    """The training and dev examples of one index."""

    index: IndexFolder
    train: RankerExamples  # of train queries, without the models trained on their citations
    dev: RankerExamples  # complete candidate sets of dev queries
    # whether there is such a model: then dev queries are training data, too
    dev_teaches: bool
    reranker: str | None = None  # the reranker of the dev queries; None for none
    # features that are not citerec's own; the same for each index
    added: tuple[Feature, ...] = ()
    # the dev queries as `recommend` has them: the citations of all earlier papers are known
    deployed: RankerExamples | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FittedVariant:
    """One variant of the model, with its measures on dev queries that it was not trained on, and its calibration."""

    trees: Trees
    # MRR and F1 at 20 of each dev query, shape (queries, 2); NaN for one without a model that was not trained on it
    by_query: Floats
    queries: int  # training queries
    calibration: Calibration | None

    @property
    def measures(self) -> Measures:
        """The means over the dev queries."""
        return mean_measures(self.by_query[~np.isnan(self.by_query[:, 0])])


def mean_measures(by_query: Numbers) -> dict[str, float]:
    """Return the means over queries of what `query_measures` returns."""
    mrr, f1 = by_query.mean(0).tolist() if len(by_query) else (0.0, 0.0)
    return {"f1@20": f1, "mrr": mrr}


def fit_variant(
    examples_by_index: Sequence[IndexExamples],
    variant: Variant,
    config: RankerTraining,
    base: Trees | Linear | None,
    group: Group | None,
) -> FittedVariant:
    """Train one variant, and evaluate it on dev queries that it was not trained on; `base` is as for `fit`.

    With a `group` it reads these features alone.
    Where dev queries teach, one model per fold is trained on the others to evaluate it and to choose the number of
    trees.
    """
    added = examples_by_index[0].added
    features = [
        feature.name
        for feature in (*FEATURES, *added)
        if variant.reads(feature) and group in (None, feature.group)
    ]
    joined = RankerExamples.joined
    rng = np.random.default_rng([config.seed, 8])
    # of each dev query, the fold whose model is not trained on it; FOLDS for the final model
    folds = [
        rng.permutation(np.arange(len(examples.dev)) % FOLDS)
        if examples.dev_teaches
        else np.full(len(examples.dev), FOLDS)
        for examples in examples_by_index
    ]
    dev = joined(examples.dev for examples in examples_by_index)
    fold = concatenated(folds, np.int64)
    train = joined(examples.train for examples in examples_by_index)
    validation = dev.of(fold == FOLDS)
    teaching = dev.of(fold < FOLDS)
    whole = joined([train, teaching])
    if not len(whole.learnable()):
        raise ConfigError(
            "there is nothing to train on: no query of the index cites one of its candidates"
        )
    models: dict[int, Trees] = {}
    if len(teaching):
        for k in range(FOLDS):
            rest = joined([train, dev.of((fold != k) & (fold < FOLDS))])
            if len(rest.learnable()):
                held = joined([validation, dev.of(fold == k)])
                models[k] = fit(rest, held, features, config, added=added, base=base)
        rounds = [trees.rounds for trees in models.values()] or [1]
        mean = max(1, round(float(np.mean(rounds))))
        model = fit(whole, None, features, config, mean, added, base)
    else:
        model = fit(whole, validation, features, config, added=added, base=base)
    models[FOLDS] = model
    by_query = np.full((len(dev), 2), np.nan)
    lists: list[TopList] = []
    for k, trees in models.items():
        of_fold = dev.of(fold == k)
        if len(of_fold):
            scores = trees.scores(of_fold.matrix)
            by_query[fold == k] = query_measures(of_fold.lists(scores))
            lists.append(top_lists(of_fold, scores))
    prior = read_spec(DEFAULT).variants[variant].calibration or Calibration(
        scale=1, offset=-3
    )
    return FittedVariant(model, by_query, len(whole), calibrated(lists, prior))


TopList = tuple[Numbers, Matrix, Flags]  # scores, features and labels of papers


def top_lists(examples: RankerExamples, scores: Numbers, top: int = TOP) -> TopList:
    """Return the scores, features and labels of the best `top` papers of each query, as users see them.

    The sampled lists of the training have a much larger share of cited papers; `examples` are complete candidate sets.
    """
    starts = np.cumsum(examples.sizes) - examples.sizes
    best = [
        start + np.argsort(-values, kind="stable")[:top]
        for start, (values, _, _) in zip(
            starts.tolist(), examples.lists(scores), strict=True
        )
    ]
    rows = concatenated(best, np.int64)
    return scores[rows], examples.matrix[rows], examples.cited[rows]


def calibrated(
    lists: Sequence[TopList], prior: Calibration, strength: float = PRIOR
) -> Calibration | None:
    """Fit a calibration to `top_lists`; None if no paper is cited, or all are.

    The penalty is that of each weight / its value in `prior`, so few papers, or lists of one corpus, move it little.
    """
    cited = concatenated((flags for *_, flags in lists), np.bool_)
    if not cited.any() or cited.all():
        return None
    scores = np.concatenate([scores for scores, *_ in lists])
    x = prior.terms(scores, np.concatenate([matrix for _, matrix, _ in lists]))
    offset, [scale, *times] = logistic(
        x, cited.astype(np.float64), prior.offset, strength
    )
    weights = zip(prior.weights.items(), times, strict=True)
    return Calibration(
        scale=prior.scale * scale,
        offset=offset,
        weights={name: weight * by for (name, weight), by in weights},
    )
