"""Learning to rank: the stage that orders expanded candidates by their features, and the models that it uses.

A model is a folder with one LightGBM model, as text, for each variant of the features. ranker.json: {"format": 1,
"neighbours": 50, "variants": {"full": {"file": "full.txt", "features": [names, in the order of the model],
"calibration": {"scale": 0.9, "offset": -2, "weights": {"coverage": 16, …}}, "linear": {"bm25_rank": 150, …}}, …},
"provenance": {…}}. A model without a calibration gives no probabilities; `linear` are weights of features whose sum is
added to the score of the trees. Each model reads the columns of
`features.Features.matrix` that its `features` name; names that are not citerec's own are features of installed
packages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import orjson
from pydantic import Field
from threadpoolctl import ThreadpoolController

from citerec.config import RecommendConfig, Settings, read_settings
from citerec.errors import ConfigError, ModelError
from citerec.files.arrays import Array, Floats, Rows, Scores
from citerec.files.atomic import is_regular
from citerec.files.checksums import check_model, read_record, sha256_of
from citerec.graph.temporal import TemporalGraph
from citerec.index.folder import RANKER, IndexFolder
from citerec.rank.expand import NEIGHBOURS, ExpandedCandidates
from citerec.rank.features import (
    FEATURES,
    NAMES,
    Feature,
    Features,
    Group,
    Matrix,
    added_features,
)
from citerec.rank.trees import read_booster
from citerec.rerank.reranker import NAME as RERANK
from citerec.rerank.reranker import OpenReranker, name_of
from citerec.retrieve.fuse import ranks_and_scores, sigmoid
from citerec.stages import checked_scores
from citerec.types import CandidateSet, Hits, Progress, Query, QueryBatch, no_progress

NAME = "ranker"  # the name of the hits of this stage
SPEC = "ranker.json"
DEFAULT = Path(__file__).parent / "default"  # the ranker of the package
# whose scores are added to those of a trained ranker: for a sentence, and for a draft with its text
SENTENCES = Path(__file__).parent / "sentences"
TEXTS = Path(__file__).parent / "texts"
# in place of the default, where no citation is known: it moves the fused order less
LIBRARY = Path(__file__).parent / "library"
TOP = 100  # best papers of a list, on which the calibration is fitted

ListFeature = Literal["coverage", "references", "known"]  # features of `Group.LIST`
RankFeature = Literal["bm25_rank", "dense_rank"]


class Calibration(Settings):
    """Maps scores to probabilities that a paper is cited.

    The probability is sigmoid(scale * score + offset + sum of weight * value) over the features of `Group.LIST`:
    whether the corpus covers the draft, how many references its papers have, and whether some are known; 0 where
    missing. They are the same for all papers of a list, so the probability rises strictly with the score.

    Source: Platt, Advances in Large Margin Classifiers, 1999.
    """

    scale: float = Field(gt=0)
    offset: float
    weights: dict[ListFeature, float] = Field(default_factory=dict)

    def probabilities(self, scores: Scores, matrix: Matrix) -> Floats:
        """Return the probability of each paper, shape (papers,); `matrix` has the features of their list or lists."""
        return sigmoid(self.terms(scores, matrix).sum(axis=1) + self.offset)

    def terms(self, scores: Array, matrix: Matrix) -> Floats:
        """Return what the score and each feature add to the logits, shape (papers, 1 + weights)."""
        columns = [matrix[:, NAMES.index(name)] for name in self.weights]
        factors = [self.scale, *self.weights.values()]
        return (
            np.nan_to_num(np.column_stack([scores, *columns]).astype(np.float64))
            * factors
        )


class Variant(StrEnum):
    """The feature groups that a ranker may read."""

    FULL = "full"
    NO_POPULARITY = "no-popularity"
    NO_AUTHORS = "no-authors"
    NO_POPULARITY_NO_AUTHORS = "no-popularity-no-authors"

    def reads(self, feature: Feature) -> bool:
        """Return whether the variant may read a feature."""
        barred = (
            Group.LIST,
            *(group for group in Group if f"no-{group}" in self.value),
        )
        return feature.groups.isdisjoint(barred)


@dataclass(frozen=True, kw_only=True)
class LtrModel:
    """A learning-to-rank model with the properties that the pipeline reads.

    It is a user's `RankModel`, which reads no reranker and has no calibration, or a trained `Ranker`.
    """

    model: Any
    # that the model reads; the others are not computed
    features: tuple[str, ...] = NAMES
    # features that are not citerec's own: the last columns
    added: tuple[Feature, ...] = ()
    neighbours: int = NEIGHBOURS  # of the expansion of its candidates
    calibration: Calibration | None = None  # None if its scores have no probabilities
    # sha256 of the rerankers, or names of objects, that it was trained with; empty if unknown
    rerankers: tuple[str, ...] = ()
    # that it was trained with besides BM25 and vectors
    retrievers: tuple[str, ...] = ()
    # whether the model reads the probabilities of a reranker
    reads_reranker: bool = False
    is_default: bool = False  # whether it is the whole ranker of the package

    def __str__(self) -> str:
        return name_of(self.model)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a matrix."""
        return (*NAMES, *(feature.name for feature in self.added))

    def score(self, matrix: Matrix) -> Scores:
        """Return the score of each paper, shape (papers,); a ConfigError if a user's model fails to."""
        return checked_scores(self.model.score(matrix), str(self), len(matrix))

    def contributions(self, matrix: Matrix) -> Floats:
        """Return what each feature adds to each score, shape (papers, columns + 1); the last is the base.

        All are 0 for a user's model, whose contributions are unknown.
        """
        return np.zeros((len(matrix), matrix.shape[1] + 1))


@dataclass(frozen=True, kw_only=True)
class Ranker(LtrModel):
    """One opened variant of a trained ranker; `model` is a `lightgbm.Booster`, which runs on one thread."""

    folder: Path
    shown: str  # its name in messages and reports
    variant: Variant
    linear: "Linear"

    def __str__(self) -> str:
        """Return the name and the variant."""
        how = "" if self.variant is Variant.FULL else f", {self.variant}"
        return f"{self.shown}{how}"

    def score(self, matrix: Matrix) -> Scores:
        """Return the score of each row of a feature matrix, shape (papers,)."""
        if not len(matrix):
            return np.zeros(0, np.float32)
        trees = self.model.predict(self._inputs(matrix), num_threads=1)
        return (trees + self.linear.scores(matrix)).astype(np.float32)

    def contributions(self, matrix: Matrix) -> Floats:
        """Return what each feature adds to each score; it is 0 for features that the model does not read."""
        whole = super().contributions(matrix)
        if len(matrix):
            inputs = self._inputs(matrix)
            added = self.model.predict(inputs, pred_contrib=True, num_threads=1)
            whole[:, [*self._places, -1]] = added
            whole[:, self.linear.places] += self.linear.terms(matrix)
        return whole

    @property
    def fingerprint(self) -> str:
        """The sha256 of the model file."""
        return sha256_of(self.folder / f"{self.variant}.txt")

    @cached_property
    def _places(self) -> list[int]:
        return [self.columns.index(name) for name in self.features]

    def _inputs(self, matrix: Matrix) -> Floats:
        return matrix[:, self._places].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of features, such as a fused rank; a missing one counts 0."""

    weights: dict[RankFeature, float]

    @property
    def places(self) -> list[int]:
        """The columns of the features."""
        return [NAMES.index(name) for name in self.weights]

    def terms(self, matrix: Matrix) -> Floats:
        """Return what each feature adds to each score, shape (papers, weights)."""
        values = np.nan_to_num(matrix[:, self.places].astype(np.float64))
        return values * [*self.weights.values()]

    def scores(self, matrix: Matrix) -> Floats:
        """Return the sum for each paper, shape (papers,)."""
        return self.terms(matrix).sum(axis=1)


class VariantSpec(Settings):
    """One variant of a model in `ranker.json`."""

    # <variant>.txt, never a path: a model may come from elsewhere
    file: str = Field(pattern=r"^[\w-]+\.txt$")
    features: tuple[str, ...]
    calibration: Calibration | None = None
    linear: dict[RankFeature, float] = Field(default_factory=dict)


class RankerSpec(Settings):
    """The content of `ranker.json`."""

    format: Literal[1]
    neighbours: int = Field(ge=1)  # of the expansion of the training data
    variants: dict[Variant, VariantSpec]
    provenance: Mapping[str, Any] = Field(default_factory=dict)


def find_ranker(name: str, index: IndexFolder) -> Path | None:
    """Return the folder of a ranker: `auto` is the index's own one, else the package's; None for `none`."""
    if name == "none":
        return None
    if name == "auto":
        return index.own_model(RANKER, SPEC) or DEFAULT
    if not is_regular(Path(name) / SPEC):
        raise ModelError(
            f"{name} is no ranker (it holds no {SPEC}); give the folder of a ranker, or none"
        )
    return Path(name)


def open_ranker(
    folder: Path, variant: Variant = Variant.FULL, features: Sequence[Feature] = ()
) -> Ranker:
    """Open one variant of a ranker, which may read `features` besides citerec's own and those of installed packages.

    ModelError if the ranker is damaged or invalid, has no such variant, or reads an unknown feature.
    """
    check_model(folder)
    spec = read_spec(folder)
    if (of_variant := spec.variants.get(variant)) is None:
        variants = ", ".join(sorted(spec.variants))
        raise ModelError(
            f"{folder} has no ranker of the kind {variant}; it has: {variants}"
        )
    names = of_variant.features
    try:
        added = added_features(names, features)
    except ConfigError as error:
        raise ModelError(
            f"{folder} was trained with a feature that is missing here ({error}); install the package that adds it, "
            "use the retriever or reranker that declares it, or train it again: citerec train-ranker"
        ) from error
    if barred := [
        f.name for f in (*FEATURES, *added) if f.name in names and not variant.reads(f)
    ]:
        raise ModelError(
            f"{folder} ranks by {barred[0]!r}, which is no feature for {variant}"
        )
    booster = read_booster(folder / f"{variant}.txt", len(names))
    splits = booster.feature_importance("split")  # by feature
    return Ranker(
        folder=folder,
        shown="the default ranker" if folder == DEFAULT else folder.name,
        variant=variant,
        features=names,
        added=added,
        model=booster,
        neighbours=spec.neighbours,
        calibration=of_variant.calibration,
        linear=Linear(of_variant.linear),
        rerankers=tuple(map(str, spec.provenance.get("rerankers", ()))),
        retrievers=tuple(map(str, spec.provenance.get("retrievers", ()))),
        reads_reranker=RERANK in names and bool(splits[names.index(RERANK)]),
        is_default=folder == DEFAULT and variant is Variant.FULL,
    )


def ranker_of(
    index: IndexFolder, config: RecommendConfig, features: Sequence[Feature] = ()
) -> Ranker | None:
    """Open the ranker of a config for an index; None for none. `features` are as for `open_ranker`.

    ConfigError if there is no ranker, but the config disables features; ModelError if the named folder holds no ranker,
    or it is damaged.
    """
    switches = {"no-popularity": config.popularity, "no-authors": config.authors}
    variant = Variant(
        "-".join(name for name, is_on in switches.items() if not is_on) or "full"
    )
    folder = find_ranker(config.ranker, index)
    if folder is None and variant is not Variant.FULL:
        raise ConfigError(
            f"{index.path} has no ranker, so no stage reads popularity or authors"
        )
    return open_ranker(folder, variant, features) if folder else None


def read_spec(folder: Path) -> RankerSpec:
    """Return the content of the `ranker.json` of a folder."""
    try:
        return read_settings(RankerSpec, orjson.loads(read_record(folder / SPEC)))
    except (OSError, ValueError, ConfigError) as error:
        raise ModelError(
            f"{folder / SPEC} cannot be parsed ({error}); train the ranker again"
        ) from error


def write_spec(folder: Path, spec: RankerSpec) -> None:
    """Write the `ranker.json` of a folder."""
    text = spec.model_dump_json(indent=2, exclude_none=True)
    (folder / SPEC).write_text(f"{text}\n", encoding="utf-8")


def reads_probability(ranker: LtrModel, reranker: OpenReranker) -> bool:
    """Return whether a learning-to-rank model reads the probabilities of a reranker as a feature.

    It reads those of a reranker that it was trained with, and calibrated ones, which mean the same for every reranker.
    A model that records no reranker reads every probability.
    """
    is_known = reranker.settings.get("weights") in ranker.rerankers
    is_comparable = reranker.has_probability and (
        reranker.calibrated or not ranker.rerankers
    )
    return ranker.reads_reranker and (is_known or is_comparable)


def reranker_notice(ranker: LtrModel, reranker: OpenReranker) -> str:
    """Return what a user should know if a model that reads a reranker was trained with another one; else empty."""
    is_other = (
        ranker.rerankers and reranker.settings.get("weights") not in ranker.rerankers
    )
    if not (ranker.reads_reranker and is_other):
        return ""
    if not reads_probability(ranker, reranker):
        return (
            f"{reranker.name} gives no calibrated probabilities, which {ranker} reads; "
            "its scores are interpolated with those of the ranker"
        )
    again = (
        f"train it again: citerec train-ranker --index {reranker.index.path} --force"
    )
    return f"{ranker} was trained with another reranker than {reranker.name}; {again}"


def retriever_notice(
    ranker: LtrModel, names: Collection[str], index: IndexFolder
) -> str:
    """Return what a user should know if a model was trained with a retriever that is not in use; else empty.

    `names` are the retrievers in use.
    """
    missing = ", ".join(name for name in ranker.retrievers if name not in names)
    if not missing:
        return ""
    again = f"train it again: citerec train-ranker --index {index.path} --force"
    return f"{ranker} was trained with the retriever {missing}, which is not in use; use it, or {again}"


def library_notice(ranker: LtrModel, index: IndexFolder) -> str:
    """Return what a user should know if an index has no citations, so that another model takes the default's place."""
    if not ranker.is_default or len(index.graph.indices):
        return ""
    return (
        "this corpus has no citations: a model for such libraries ranks by texts, ages, authors and venues; "
        "`citerec collect` fetches citations"
    )


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates(CandidateSet):
    """The candidates of one query in the order of the model, with its features."""

    models: tuple[LtrModel, ...]  # whose summed scores ordered them
    matrix: Matrix  # shape (papers, features), in the order of `expanded`
    expanded: ExpandedCandidates  # the candidates before, with the known citations and the neighbours of the query
    cited: Sequence[int]  # rows of the known references of the query


class LtrStage:
    """A stage that orders expanded candidates by a learning-to-rank model.

    If the model reads the probabilities of a reranker, it first orders all candidates without. The reranker scores the
    best of these, and the model orders all candidates again.
    """

    def __init__(
        self,
        graph: TemporalGraph,
        ranker: LtrModel,
        reranker: OpenReranker | None = None,
    ) -> None:
        """Prepare; the model reads `reranker`, if any."""
        self._ranker = ranker
        self._reranker = reranker
        self._id_rank = graph.index.id_rank
        self._graph = graph
        self._features = self._computed(ranker)
        # models of the package by their folders, opened on first use
        self._of_package = dict[Path, tuple[Ranker, Features]]()

    def _computed(self, *models: LtrModel) -> Features:
        """Return what computes the features of models; what the variant of the ranker may not read is missing."""
        names = set[str]()
        for model in models:
            names |= {*model.features}
            if model.calibration:
                names |= model.calibration.weights.keys()
        if isinstance(self._ranker, Ranker):
            reads = self._ranker.variant.reads
            barred = {
                feature.name
                for feature in FEATURES
                if feature.group is not Group.LIST and not reads(feature)
            }
            names -= barred
        return Features(self._graph, names, self._ranker.added)

    def _opened(self, folder: Path) -> tuple[Ranker, Features]:
        """Return a model of the package, and what computes its features and those of the ranker."""
        if folder not in self._of_package:
            model = open_ranker(folder)
            self._of_package[folder] = model, self._computed(self._ranker, model)
        return self._of_package[folder]

    def _models(
        self, query: Query, candidates: ExpandedCandidates
    ) -> tuple[tuple[LtrModel, ...], Features]:
        """Return the models whose scores are summed for a list, and the features.

        A model of the package is added for a sentence, and for a draft with its text; another one takes the place of
        the default where no citation is known.
        """
        ranker = self._ranker
        if not isinstance(ranker, Ranker):
            return (ranker,), self._features
        if query.is_sentence or query.body:
            addition, features = self._opened(SENTENCES if query.is_sentence else TEXTS)
            return (ranker, addition), features
        if ranker.is_default and candidates.snapshot.is_empty and not self._reranker:
            model, features = self._opened(LIBRARY)
            return (model,), features
        return (ranker,), self._features

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[Any],
        progress: Progress = no_progress,
    ) -> list[RankedCandidates]:
        """Order all candidates of each query, one `ExpandedCandidates` each; the reranked pairs are scored together."""
        ranked: list[RankedCandidates] = []
        for place, (query, expanded) in enumerate(
            zip(batch.queries, candidates, strict=True)
        ):
            progress("ranking", place, len(batch))
            cited = batch.known_references(place)
            # on more threads sums differ in the last bits
            with _LIMITED, _openblas().limit(limits=1):
                models, features = self._models(query, expanded)
                matrix = features.matrix(query, expanded, cited)
            ranked.append(self._ordered(models, matrix, expanded, cited))
        if self._reranker is None:
            return ranked
        done = self._reranker.rerank(
            batch.queries, [found.hits for found in ranked], progress
        )
        again: list[RankedCandidates] = []
        for found, reranked in zip(ranked, done, strict=True):
            expanded = found.expanded
            scored = self._reranker.unit_scores(reranked)
            matrix = with_rerank_feature(found.matrix, expanded.rows, scored)
            stages = {RERANK: reranked.scored}
            again.append(
                self._ordered(found.models, matrix, expanded, found.cited, stages)
            )
        return again

    def _ordered(
        self,
        models: tuple[LtrModel, ...],
        matrix: Matrix,
        candidates: ExpandedCandidates,
        cited: Sequence[int],
        scored: Mapping[str, Hits] | None = None,
    ) -> RankedCandidates:
        scores = np.sum([model.score(matrix) for model in models], axis=0)
        calibration = models[-1].calibration
        hits = Hits.ordered(candidates.rows, scores, self._id_rank)
        probabilities = None
        if calibration:
            # its features are equal for all papers of a list, so the order of `matrix` does not matter
            values = calibration.probabilities(hits.scores, matrix).astype(np.float32)
            probabilities = Hits(hits.rows, values)
        return RankedCandidates(
            hits,
            {**candidates.hits_by_source, **(scored or {}), NAME: hits},
            matrix=matrix,
            expanded=candidates,
            cited=cited,
            models=models,
            probabilities=probabilities,
            query_vector=candidates.query_vector,
            agreement=candidates.agreement,
        )


def with_rerank_feature(matrix: Matrix, rows: Rows, scored: Hits) -> Matrix:
    """Return the features of the papers at `rows`, with the probabilities of a reranker where it scored them."""
    matrix = matrix.copy()
    matrix[:, NAMES.index(RERANK)] = ranks_and_scores(scored, rows)[1]
    return matrix


# the limit is one of the process: of overlapping ones, the first would end the others
_LIMITED = Lock()


@cache
def _openblas() -> Any:
    return ThreadpoolController().select(internal_api="openblas")
