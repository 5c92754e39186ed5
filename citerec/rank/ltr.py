"""Learning to rank: the stage that orders expanded candidates by their features, and the models that it uses.

A model is a folder with one LightGBM model, as text, for each variant of the features. ranker.json: {"format": 1,
"neighbours": 50, "variants": {"full": {"file": "full.txt", "features": [names, in the order of the model],
"calibration": {"top": 100, "scale": 1.1, "offset": -2.8}}, …}, "provenance": {…}}. A model without a calibration gives
no probabilities. Each model reads the columns of `features.Features.matrix` that its `features` name.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson

from citerec.config import ExpandConfig, RecommendConfig
from citerec.encode.numpy_bert import one_blas_thread
from citerec.errors import ConfigError, ModelError, shown
from citerec.folder import IndexFolder
from citerec.io import check_model, is_regular, name_fault, read_record, sha256_of
from citerec.rank.calibrate import Calibration
from citerec.rank.expand import ExpandedCandidates
from citerec.rank.features import (
    FEATURES,
    NAMES,
    SENTENCE_VECTORS,
    Feature,
    Features,
    Group,
    Matrix,
    without_groups,
)
from citerec.rank.trees import Booster, read_booster
from citerec.rerank.reranker import NAME as RERANK
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.fuse import Rank, ranks_and_scores
from citerec.rules.held_out import RANKER, own_model
from citerec.rules.known import Rows, Scores, TemporalGraph
from citerec.types import CandidateSet, Hits, Progress, Query, QueryBatch, no_progress


class RankModel(Protocol):
    """Scores candidates by their features."""

    def score(self, features: Matrix) -> npt.NDArray[np.floating]:
        """Return the score of each paper, shape (papers,); a higher one is better.

        Args:
            features: Shape (papers, len(NAMES)), columns as `citerec.rank.features.NAMES`; NaN where a source is
                missing.
        """
        ...


class LtrModel(Protocol):
    """A learning-to-rank model with the properties that the pipeline reads, such as `Ranker` and `CustomRanker`."""

    @property
    def features(self) -> Sequence[str]:
        """The features that the model reads; some of the others are not computed."""
        ...

    @property
    def expand(self) -> ExpandConfig:
        """How the candidates of the model are expanded."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """Maps its scores to probabilities; None without a calibration."""
        ...

    @property
    def reads_reranker(self) -> bool:
        """Whether the model reads the probabilities of a reranker."""
        ...

    @property
    def rerankers(self) -> Collection[str]:
        """The sha256 of the weights of the rerankers that it was trained with; empty if they are unknown."""
        ...

    @property
    def cross_fitted(self) -> bool:
        """Whether train queries were reranked, by models that were not trained on them."""
        ...

    def score(self, matrix: Matrix) -> npt.NDArray[np.float32]:
        """Return the score of each paper, shape (papers,)."""
        ...

    def contributions(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return what each feature adds to each score, shape (papers, len(NAMES) + 1); the last is the base."""
        ...


@dataclass(frozen=True, slots=True)
class CustomRanker:
    """A user-defined model in place of a trained one. It reads no reranker and has no calibration."""

    model: RankModel
    expand: ExpandConfig = ExpandConfig()
    calibration: Calibration | None = None
    reads_reranker: bool = False
    rerankers: tuple[str, ...] = ()
    cross_fitted: bool = False
    features: Sequence[str] = NAMES

    def __str__(self) -> str:
        return str(getattr(self.model, "name", "") or type(self.model).__name__)

    def score(self, matrix: Matrix) -> npt.NDArray[np.float32]:
        """Return the score of each paper, shape (papers,).

        Raises:
            ConfigError: If the model does not return one finite number per paper.
        """
        scores = np.asarray(self.model.score(matrix), np.float32)
        if scores.shape != (len(matrix),) or not np.isfinite(scores).all():
            raise ConfigError(
                f"{self}.score must return {len(matrix)} finite numbers, one per paper, got shape {scores.shape}"
            )
        return scores

    def contributions(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        """Return 0 for each contribution, because they are unknown; shape (papers, len(NAMES) + 1)."""
        return np.zeros((len(matrix), len(NAMES) + 1))


SPEC, FORMAT = "ranker.json", 1
DEFAULT = Path(__file__).parent / "default"  # the ranker of the package

Contributions = npt.NDArray[np.float64]


class Variant(StrEnum):
    """The feature groups that a ranker may read."""

    FULL = "full"
    NO_POPULARITY = "no-popularity"
    NO_AUTHORS = "no-authors"
    NO_POPULARITY_NO_AUTHORS = "no-popularity-no-authors"

    @classmethod
    def of(cls, *, popularity: bool, authors: bool) -> "Variant":
        """Return the variant with or without the features of popularity and of authors."""
        if popularity:
            return cls.FULL if authors else cls.NO_AUTHORS
        return cls.NO_POPULARITY if authors else cls.NO_POPULARITY_NO_AUTHORS

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of the variant, in the order of `FEATURES`."""
        barred = {Group.POPULARITY, Group.AUTHORS}
        if self in (Variant.FULL, Variant.NO_AUTHORS):
            barred.discard(Group.POPULARITY)
        if self in (Variant.FULL, Variant.NO_POPULARITY):
            barred.discard(Group.AUTHORS)
        return tuple(feature for feature in FEATURES if not feature.groups & barred)


@dataclass(frozen=True)
class Ranker:
    """One opened variant of a ranker."""

    folder: Path
    shown: str  # its name in messages and reports
    variant: Variant
    features: tuple[str, ...]  # the columns of its model, in their order
    booster: Booster
    expand: ExpandConfig = ExpandConfig()  # the expansion of its training data
    calibration: Calibration | None = None  # None if its scores have no probabilities
    rerankers: tuple[str, ...] = ()  # sha256 of those that it was trained with; empty if unknown
    cross_fitted: bool = False  # whether train queries were reranked, by models of other queries

    def __str__(self) -> str:
        """Return the name and the variant."""
        how = "" if self.variant is Variant.FULL else f", {self.variant}"
        return f"{self.shown}{how}"

    def score(self, matrix: Matrix) -> Scores:
        """Return the score of each row of a feature matrix, shape (papers,)."""
        if not len(matrix):
            return np.zeros(0, np.float32)
        return self.booster.predict(self._inputs(matrix)).astype(np.float32)

    def contributions(self, matrix: Matrix) -> Contributions:
        """Return what each feature adds to each score, shape (papers, len(FEATURES) + 1); the last is the base.

        A feature that the model does not read adds 0.
        """
        whole = np.zeros((len(matrix), len(NAMES) + 1))
        if len(matrix):
            whole[:, [*self._columns, -1]] = self.booster.contributions(self._inputs(matrix))
        return whole

    @property
    def reads_reranker(self) -> bool:
        """Whether at least one tree reads the probability of a reranker."""
        return self._used.get(RERANK, False)

    @cached_property
    def _used(self) -> dict[str, bool]:
        return dict(zip(self.features, self.booster.used.tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the model file."""
        return sha256_of(self.folder / f"{self.variant}.txt")

    @cached_property
    def _columns(self) -> list[int]:
        return [NAMES.index(name) for name in self.features]

    def _inputs(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        return matrix[:, self._columns].astype(np.float64)


def find_ranker(name: str, index: IndexFolder) -> Path | None:
    """Return the folder of the ranker with a name; None for none.

    Args:
        name: `auto` for the index's own ranker, else the package's; `none`; or a folder.
        index: An index, which may have its own ranker.

    Raises:
        ModelError: If the named folder holds no ranker.
        IndexDamagedError: If the folder of the index's own ranker holds no ranker.
    """
    if name == "none":
        return None
    if name != "auto":
        if not is_regular(Path(name) / SPEC):
            raise ModelError(
                f"{name} is no ranker (it holds no {SPEC}); give the folder of a ranker, or --ranker none"
            )
        return Path(name)
    return own_model(index, RANKER, SPEC) or (DEFAULT if DEFAULT.is_dir() else None)


def open_ranker(folder: Path, variant: Variant = Variant.FULL) -> Ranker:
    """Open one variant of the ranker in a folder.

    Raises:
        ModelError: If the ranker is damaged or invalid, has no such variant, or reads an unknown feature.
    """
    check_model(folder)
    spec = read_spec(folder)
    variant_spec: Any = spec["variants"].get(variant.value)
    if variant_spec is None:
        variants = ", ".join(sorted(spec["variants"]))
        raise ModelError(f"{folder} has no ranker of the kind {variant}; it has: {variants}")
    allowed = {feature.name for feature in variant.features}
    if unknown := [name for name in variant_spec["features"] if name not in allowed]:
        raise ModelError(
            f"{folder} ranks by {unknown[0]!r}, which this version of citerec does not know for {variant}; "
            "train it again: citerec train-ranker"
        )
    booster = read_booster(folder / variant_spec["file"], len(variant_spec["features"]))
    shown = "the default ranker" if folder == DEFAULT else folder.name
    expand = ExpandConfig(neighbours=spec["neighbours"])
    calibration_json: Any = variant_spec.get("calibration")
    calibration = None if calibration_json is None else Calibration.from_json(calibration_json)
    origin: Any = spec.get("provenance", {})
    return Ranker(
        folder,
        shown,
        variant,
        tuple(variant_spec["features"]),
        booster,
        expand,
        calibration,
        rerankers=tuple(map(str, origin.get("rerankers", ()))),
        cross_fitted=bool(origin.get("cross_fitted")),
    )


def ranker_of(index: IndexFolder, config: RecommendConfig) -> Ranker | None:
    """Open the ranker of a config for an index; None for none.

    Raises:
        ConfigError: If there is no ranker, but the config disables features.
        ModelError: If the named folder holds no ranker, or it is damaged.
    """
    variant = Variant.of(popularity=config.popularity, authors=config.authors)
    folder = find_ranker(config.ranker, index)
    if folder is None and variant is not Variant.FULL:
        raise ConfigError(f"{index.path} has no ranker, so no stage reads popularity or authors")
    return open_ranker(folder, variant) if folder else None


def read_spec(folder: Path) -> dict[str, Any]:
    """Return the content of the `ranker.json` of a folder.

    Raises:
        ModelError: If the file is invalid or of another format.
    """
    try:
        spec: Any = orjson.loads(read_record(folder / SPEC))
        if spec["format"] != FORMAT:
            raise ModelError(
                f"{folder} holds a ranker of format {spec['format']}, expected {FORMAT}; train it again"
            )
        for variant_spec in spec["variants"].values():
            _ = [str(name) for name in variant_spec["features"]]
            if fault := name_fault(variant_spec["file"]):
                raise ModelError(f"{folder / SPEC}: {shown(variant_spec['file'])} {fault}")
            if variant_spec.get("calibration") is not None:
                Calibration.from_json(variant_spec["calibration"])
        ExpandConfig(neighbours=spec["neighbours"])
        _ = [str(weights) for weights in spec.get("provenance", {}).get("rerankers", ())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ModelError(f"{folder / SPEC} cannot be parsed; train the ranker again") from error
    return spec


def write_spec(
    folder: Path,
    variants: Mapping[Variant, Sequence[str]],
    expand: ExpandConfig,
    provenance: Mapping[str, Any],
    calibrations: Mapping[Variant, Calibration] | None = None,
) -> None:
    """Write the `ranker.json` of a folder with the models `<variant>.txt`.

    Args:
        folder: The folder of the models.
        variants: The features of each model, in its order.
        expand: The expansion of their training data.
        provenance: The origin of the ranker, as JSON values.
        calibrations: The calibrations by variant; a variant may have none.
    """
    variant_specs: dict[str, dict[str, Any]] = {
        variant.value: {"file": f"{variant}.txt", "features": list(names)}
        for variant, names in variants.items()
    }
    for variant, calibration in (calibrations or {}).items():
        variant_specs[variant.value]["calibration"] = calibration.to_json()
    content = {
        "format": FORMAT,
        "neighbours": expand.neighbours,
        "variants": variant_specs,
        "provenance": dict(provenance),
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / SPEC).write_bytes(orjson.dumps(content, option=options))


def suits_default_reranker(ranker: str, index: IndexFolder) -> bool:
    """Return whether lists are reranked by the default cross-encoder of the package if no option asks for it.

    They are if there is no learning-to-rank model, or one that was trained with a cross-encoder. They are not if there
    is no such model: whoever opens it reports that.

    Args:
        ranker: As for `find_ranker`.
        index: The index.

    Raises:
        IndexDamagedError: As for `find_ranker`.
    """
    try:
        folder = find_ranker(ranker, index)
        return folder is None or bool(read_spec(folder).get("provenance", {}).get("rerankers"))
    except ModelError:
        return False


def reads_sentence_vectors(ranker: LtrModel) -> bool:
    """Return whether a learning-to-rank model reads the vectors of the sentences of a query."""
    return not SENTENCE_VECTORS.isdisjoint(ranker.features)


def reads_probability(ranker: LtrModel, cascade: OpenReranker) -> bool:
    """Return whether a learning-to-rank model reads the probabilities of the last reranker as a feature.

    It reads those of a reranker that it was trained with, and calibrated ones, which mean the same for every reranker.
    A model that records no reranker reads every probability.
    """
    if not (ranker.reads_reranker and cascade.has_probability):
        return False
    return cascade.calibrated or not ranker.rerankers or _knows(ranker, cascade)


def reranker_notice(ranker: LtrModel, cascade: OpenReranker) -> str:
    """Return what a user should know if a model that reads a reranker was trained with another one; else empty.

    A model whose train queries were reranked by models of other corpora is made for any calibrated reranker.
    """
    if not (ranker.reads_reranker and ranker.rerankers) or _knows(ranker, cascade):
        return ""
    if not reads_probability(ranker, cascade):
        return (
            f"{cascade.name} gives no calibrated probabilities, which {ranker} reads; "
            "its scores are interpolated with those of the ranker"
        )
    if ranker.cross_fitted:
        return ""
    return (
        f"{ranker} was trained with another reranker than {cascade.name}; train it again: "
        f"citerec train-ranker --index {cascade.index.path} --force"
    )


def _knows(ranker: LtrModel, cascade: OpenReranker) -> bool:
    return cascade.settings.get("weights") in ranker.rerankers


NAME = "ranker"  # the name of the hits of this stage


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates(CandidateSet):
    """The candidates of one query in the order of the model, with its features."""

    matrix: Matrix  # shape (papers, features)
    matrix_rows: Rows  # the papers of `matrix`, in its order
    expanded: ExpandedCandidates  # the candidates before, with the known citations and the neighbours of the query
    cited: Sequence[int]  # rows of the known references of the query

    def features_of(self, rows: Rows) -> Matrix:
        """Return the features of some of the candidates, in the order of `rows`."""
        order = np.argsort(self.matrix_rows)
        return self.matrix[order[np.searchsorted(self.matrix_rows, rows, sorter=order)]]


class LtrStage:
    """A stage that orders expanded candidates by a learning-to-rank model."""

    def __init__(
        self, graph: TemporalGraph, ranker: LtrModel, disabled_features: Collection[Group] = ()
    ) -> None:
        """Prepare.

        Args:
            graph: The citation graph of the expansion.
            ranker: The model.
            disabled_features: Feature groups to leave out, for comparisons.
        """
        self._ranker, self._graph, self._disabled = ranker, graph, disabled_features
        self._id_rank: Rank = graph.index.id_rank
        self._features = Features(graph.index, graph, ranker.features)

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[RankedCandidates]:
        """Order all candidates of each query.

        Args:
            batch: The queries.
            candidates: One `ExpandedCandidates` per query.
            progress: Not called, because ranking is fast.

        Raises:
            TypeError: If the candidates were not expanded.
        """
        return [
            self._ranked(query, expanded(of_query), batch.known_references(position))
            for position, (query, of_query) in enumerate(
                zip(batch.queries, candidates, strict=True)
            )
        ]

    def reordered(
        self, ranked: RankedCandidates, scored: Hits, hits_by_reranker: Mapping[str, Hits]
    ) -> RankedCandidates:
        """Order candidates again, with the probabilities of a reranker.

        Args:
            ranked: The candidates in the order of the model without them.
            scored: The papers that the reranker scored, with their probabilities.
            hits_by_reranker: By name, the papers that each reranker scored, with its scores.
        """
        matrix = with_rerank_feature(ranked.matrix, ranked.matrix_rows, scored)
        before = {name: hits for name, hits in ranked.hits_by_source.items() if name != NAME}
        return self._ordered(matrix, {**before, **hits_by_reranker}, ranked.expanded, ranked.cited)

    def _ranked(
        self, query: Query, candidates: ExpandedCandidates, cited: Sequence[int]
    ) -> RankedCandidates:
        with one_blas_thread():  # on more threads its sums differ in the last bits
            matrix = self._features.matrix(query, candidates, cited)
        if self._disabled:
            matrix = without_groups(matrix, self._disabled)
        return self._ordered(matrix, candidates.hits_by_source, candidates, cited)

    def _ordered(
        self,
        matrix: Matrix,
        hits_by_source: Mapping[str, Hits],
        candidates: ExpandedCandidates,
        cited: Sequence[int],
    ) -> RankedCandidates:
        rows = candidates.rows
        scores = self._ranker.score(matrix)
        hits = Hits.ordered(rows, scores, self._id_rank)
        probabilities = None
        if calibration := self._ranker.calibration:
            values = calibration.probabilities(hits.scores).astype(np.float32)
            probabilities = Hits(hits.rows, values)
        return RankedCandidates(
            hits,
            {**hits_by_source, NAME: hits},
            matrix=matrix,
            matrix_rows=rows,
            expanded=candidates,
            cited=cited,
            probabilities=probabilities,
        )


def with_rerank_feature(matrix: Matrix, rows: Rows, scored: Hits) -> Matrix:
    """Return features with the probabilities of a reranker.

    Args:
        matrix: The features, shape (papers, features).
        rows: The papers of `matrix`, in its order.
        scored: The papers that the reranker scored, with their probabilities.
    """
    matrix = matrix.copy()
    matrix[:, NAMES.index(RERANK)] = ranks_and_scores(scored, rows)[1]
    return matrix


def expanded(candidates: CandidateSet) -> ExpandedCandidates:
    """Return candidates with the type of expanded candidates.

    Raises:
        TypeError: If the candidates are not expanded.
    """
    if not isinstance(candidates, ExpandedCandidates):
        raise TypeError(
            "the candidates are not expanded; run a CandidateExpander before this stage"
        )
    return candidates
