"""A learned ranker: a folder of one LightGBM model, as text, for each choice of features that may be read.

ranker.json: {"format": 1, "neighbours": 50, "variants": {"full": {"file": "full.txt", "features": [names, in the order
of the model], "calibration": {"top": 100, "scale": 1.1, "offset": -2.8}}, …}, "provenance": {…}}. A ranker without a
calibration gives no probabilities. Each model reads the columns of `features.Features.matrix` that it names.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.config import ExpandConfig, RecommendConfig
from citerec.corpus.splits import splits_sha256
from citerec.entries import is_regular, name_fault, read_record, shown
from citerec.errors import ConfigError, IndexDamagedError, ModelError
from citerec.folder import IndexFolder
from citerec.manifest import check_model, sha256_of
from citerec.rank.features import FEATURES, NAMES, Feature, Group, Matrix
from citerec.rank.known import Scores
from citerec.rank.library import Booster, read_booster
from citerec.rank.probability import Calibration

SPEC, FORMAT = "ranker.json", 1
RERANKED = "rerank"  # the feature that a reranker gives
OWN = "ranker"  # the folder of an index's own, under models/
TRAINING = "training.json"  # in which our trainers tell what a model was trained on
DEFAULT = Path(__file__).parent / "default"  # of the package

Contributions = npt.NDArray[np.float64]


class Variant(StrEnum):
    """Which features a ranker may read."""

    FULL = "full"
    NO_POPULARITY = "no-popularity"
    NO_AUTHORS = "no-authors"
    NO_POPULARITY_NO_AUTHORS = "no-popularity-no-authors"

    @classmethod
    def of(cls, *, popularity: bool, authors: bool) -> "Variant":
        """Return the variant that may read of popularity and authors, or not."""
        if popularity:
            return cls.FULL if authors else cls.NO_AUTHORS
        return cls.NO_POPULARITY if authors else cls.NO_POPULARITY_NO_AUTHORS

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that it may read, in the order of `FEATURES`."""
        barred = {Group.POPULARITY, Group.AUTHORS}
        if self in (Variant.FULL, Variant.NO_AUTHORS):
            barred.discard(Group.POPULARITY)
        if self in (Variant.FULL, Variant.NO_POPULARITY):
            barred.discard(Group.AUTHORS)
        return tuple(feature for feature in FEATURES if feature.group not in barred)


@dataclass(frozen=True)
class Ranker:
    """One variant of a ranker, open."""

    folder: Path
    shown: str  # as it is told
    variant: Variant
    features: tuple[str, ...]  # that it reads, in the order of its model
    booster: Booster
    expand: ExpandConfig = ExpandConfig()  # how the pools were made that it learned from
    calibration: Calibration | None = None  # None where its scores have no probabilities

    def __str__(self) -> str:
        """Say which it is, in a few words."""
        how = "" if self.variant is Variant.FULL else f", {self.variant}"
        return f"{self.shown}{how}"

    def score(self, matrix: Matrix) -> Scores:
        """Return how much each paper of a matrix of features is worth, shape (papers,)."""
        if not len(matrix):
            return np.zeros(0, np.float32)
        return self.booster.predict(self._read(matrix)).astype(np.float32)

    def contributions(self, matrix: Matrix) -> Contributions:
        """Return what each feature adds to each score, shape (papers, len(FEATURES) + 1); the last is the base.

        A feature that is not read adds 0.
        """
        whole = np.zeros((len(matrix), len(NAMES) + 1))
        if len(matrix):
            whole[:, [*self._columns, -1]] = self.booster.contributions(self._read(matrix))
        return whole

    @property
    def reads_reranker(self) -> bool:
        """Whether any of its trees reads the probability of a reranker."""
        return self._used.get(RERANKED, False)

    @cached_property
    def _used(self) -> dict[str, bool]:
        return dict(zip(self.features, self.booster.used.tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of its model."""
        return sha256_of(self.folder / f"{self.variant}.txt")

    @cached_property
    def _columns(self) -> list[int]:
        return [NAMES.index(name) for name in self.features]

    def _read(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        return matrix[:, self._columns].astype(np.float64)


def find_ranker(name: str, index: IndexFolder) -> Path | None:
    """Return the folder of the ranker that is meant; None for none.

    Args:
        name: auto: the index's own, else the package's; none; or a folder.
        index: Which may have its own.

    Raises:
        ModelError: If there is none in the folder that is named.
        IndexDamagedError: If there is a folder for the index's own, and no ranker in it.
    """
    if name == "none":
        return None
    if name != "auto":
        if not is_regular(Path(name) / SPEC):
            raise ModelError(
                f"{name} is no ranker (it holds no {SPEC}); name the folder of one, or say --ranker none"
            )
        return Path(name)
    own = index.models / OWN
    if os.path.lexists(own) and not is_regular(own / SPEC):
        raise IndexDamagedError(index.path, [f"{index.models.name}/{OWN}/{SPEC} is missing"])
    return next((folder for folder in (own, DEFAULT) if folder.is_dir()), None)


def trained_on_other_data(folder: Path, index: IndexFolder) -> bool:
    """Whether a ranker tells that it learned from other papers or other splits than an index has.

    An index that is built anew takes its models along: what they learned from may be its test queries now.
    """
    try:
        told: Any = orjson.loads(read_record(folder / TRAINING))
        learned = [(one["corpus_sha256"], one["splits_sha256"]) for one in told["indexes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # nothing is told
    return (index.manifest.corpus["sha256"], splits_sha256(index.splits)) not in learned


def open_ranker(folder: Path, variant: Variant = Variant.FULL) -> Ranker:
    """Open one variant of the ranker in a folder.

    Raises:
        ModelError: If it is damaged or cannot be made out, has no such variant, or reads an unknown feature.
    """
    check_model(folder)
    spec = read_spec(folder)
    told: Any = spec["variants"].get(variant.value)
    if told is None:
        there = ", ".join(sorted(spec["variants"]))
        raise ModelError(f"{folder} has no ranker of the kind {variant}; it has: {there}")
    allowed = {feature.name for feature in variant.features}
    if strange := [name for name in told["features"] if name not in allowed]:
        raise ModelError(
            f"{folder} ranks by {strange[0]!r}, which this version of citerec does not know for {variant}; "
            "train it again: citerec train-ranker"
        )
    booster = read_booster(folder / told["file"], len(told["features"]))
    shown = "the default ranker" if folder == DEFAULT else folder.name
    expand = ExpandConfig(neighbours=spec["neighbours"])
    found: Any = told.get("calibration")
    calibration = None if found is None else Calibration.from_json(found)
    return Ranker(folder, shown, variant, tuple(told["features"]), booster, expand, calibration)


def ranker_of(index: IndexFolder, config: RecommendConfig) -> Ranker | None:
    """Open the ranker that a config names, for an index; None for none.

    Raises:
        ConfigError: If there is none, and the config keeps it from features.
        ModelError: If there is none in the folder that is named, or it is damaged.
    """
    variant = Variant.of(popularity=config.popularity, authors=config.authors)
    folder = find_ranker(config.ranker, index)
    if folder is None and variant is not Variant.FULL:
        raise ConfigError(
            f"{index.path} has no ranker, so there is nothing that reads popularity or authors"
        )
    return open_ranker(folder, variant) if folder else None


def read_spec(folder: Path) -> dict[str, Any]:
    """Return what the `ranker.json` of a folder says.

    Raises:
        ModelError: If it cannot be made out, or is of another format.
    """
    try:
        spec: Any = orjson.loads(read_record(folder / SPEC))
        if spec["format"] != FORMAT:
            raise ModelError(
                f"{folder} holds a ranker of format {spec['format']}, expected {FORMAT}; train it again"
            )
        for told in spec["variants"].values():
            _ = [str(name) for name in told["features"]]
            if fault := name_fault(told["file"]):
                raise ModelError(f"{folder / SPEC}: {shown(told['file'])} {fault}")
            if told.get("calibration") is not None:
                Calibration.from_json(told["calibration"])
        ExpandConfig(neighbours=spec["neighbours"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise ModelError(f"{folder / SPEC} cannot be made out; train the ranker again") from error
    return spec


def write_spec(
    folder: Path,
    variants: Mapping[Variant, Sequence[str]],
    expand: ExpandConfig,
    provenance: Mapping[str, Any],
    calibrations: Mapping[Variant, Calibration] | None = None,
) -> None:
    """Write the `ranker.json` beside the models `<variant>.txt` of a folder.

    Args:
        folder: Where they lie.
        variants: The features of each model, in its order.
        expand: How the pools were made that they learned from.
        provenance: Where it comes from.
        calibrations: Of the variants that have one.
    """
    told: dict[str, dict[str, Any]] = {
        variant.value: {"file": f"{variant}.txt", "features": list(names)}
        for variant, names in variants.items()
    }
    for variant, calibration in (calibrations or {}).items():
        told[variant.value]["calibration"] = calibration.to_json()
    content = {
        "format": FORMAT,
        "neighbours": expand.neighbours,
        "variants": told,
        "provenance": dict(provenance),
    }
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (folder / SPEC).write_bytes(orjson.dumps(content, option=options))
