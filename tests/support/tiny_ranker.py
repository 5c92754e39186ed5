"""A real ranker, tiny: made in a moment, opened as any other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from citerec.files.checksums import seal_model
from citerec.rank.features import FEATURES, NAMES
from citerec.rank.ltr import Calibration, RankerSpec, Variant, VariantSpec, write_spec
from citerec.rank.trees import load


def tiny_ranker(
    folder: Path,
    weights: Mapping[str, float],
    *,
    variants: Sequence[Variant] = tuple(Variant),
    calibration: Calibration | None = None,
) -> Path:
    """Write a ranker whose scores grow with some features; return the folder.

    Args:
        folder: Where to; made if need be.
        weights: How much each feature counts, by its name; those that a variant may not read count nothing there.
        variants: Which are made.
        calibration: Of each of them.
    """
    lightgbm = load()
    folder.mkdir(parents=True, exist_ok=True)
    features = {
        v: [feature.name for feature in FEATURES if v.reads(feature)] for v in variants
    }
    for variant, names in features.items():
        rows = np.random.default_rng(0).random((2000, len(names)))
        rows[rows < 0.1] = 0
        worth = rows @ np.array([weights.get(name, 0.0) for name in names])
        settings = {"verbose": -1, "num_threads": 1, "seed": 0, "num_leaves": 15}
        model = lightgbm.train(
            settings, lightgbm.Dataset(rows, worth), num_boost_round=30
        )
        (folder / f"{variant}.txt").write_text(model.model_to_string())
    specs = {
        v: VariantSpec(file=f"{v}.txt", features=tuple(names), calibration=calibration)
        for v, names in features.items()
    }
    made = {"made": "for tests"}
    write_spec(
        folder, RankerSpec(format=1, neighbours=50, variants=specs, provenance=made)
    )
    seal_model(folder)
    return folder


def column(matrix: np.ndarray, name: str) -> list[float]:
    """Return one feature of a matrix."""
    return matrix[:, NAMES.index(name)].tolist()
