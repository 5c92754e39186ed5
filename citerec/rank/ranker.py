"""The learned ranker: a folder with one LightGBM model, as text, for each variant of the features.

ranker.json: {"format": 1, "neighbours": 50, "variants": {"full": {"file": "full.txt", "features": [names, in the order
of the model], "calibration": {"top": 100, "scale": 1.1, "offset": -2.8}}, …}, "provenance": {…}}. A ranker without a
calibration gives no probabilities. Each model reads the columns of `features.Features.matrix` that its `features` name.
"""

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
from citerec.entries import is_regular, name_fault, read_record, shown
from citerec.errors import ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.manifest import check_model, sha256_of
from citerec.rank.catalogue import FEATURES, NAMES, Feature, Group
from citerec.rank.features import Matrix
from citerec.rank.library import Booster, read_booster
from citerec.rank.probability import Calibration
from citerec.rerank.cascade import NAME as RERANK
from citerec.rules.known import Scores
from citerec.rules.trained_on import RANKER, own_model

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
