"""The model folder that a training of the ranker leaves: text alone, and small."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from citerec.config import ExpandConfig
from citerec.manifest import seal_model
from citerec.rank.features import FEATURES
from citerec.rank.probability import TOP, Calibration
from citerec.rank.ranker import Variant, write_spec
from citerec.train.modelfolder import TRAINING, write_json
from citerec.train.ranker.ablation import Ablation
from citerec.train.ranker.boost import Trees

PACKAGES = ("lightgbm", "numpy", "scipy")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerRecord:
    """What is told of a training: in training.json whole, in the model card in short."""

    settings: Mapping[str, Any]
    expand: ExpandConfig
    indexes: Sequence[Mapping[str, Any]]  # that it learned from
    before: Mapping[str, float]  # of the dev queries, as the pool stood
    after: Mapping[str, Mapping[str, float]]  # by variant
    by_index: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]  # before and after
    ablations: Sequence[Ablation]  # of the variant with all features
    provenance: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "settings": dict(self.settings),
            "indexes": [dict(one) for one in self.indexes],
            "before": dict(self.before),
            "after": {name: dict(measured) for name, measured in self.after.items()},
            "ablations": [asdict(row) for row in self.ablations],
            "packages": {name: version(name) for name in PACKAGES},
            "provenance": dict(self.provenance),
        }


def write_ranker(
    folder: Path,
    models: Mapping[Variant, Trees],
    calibrations: Mapping[Variant, Calibration],
    told: RankerRecord,
) -> None:
    """Write the variants of a ranker and all that is said of it into a folder.

    Args:
        folder: Where to.
        models: The variants.
        calibrations: Of the variants that have one.
        told: How they were trained.
    """
    for variant, trees in models.items():
        (folder / f"{variant}.txt").write_text(trees.text, encoding="utf-8")
    features = {variant: trees.features for variant, trees in models.items()}
    names = [one["name"] for one in told.indexes]
    origin = {"citerec": version("citerec"), "learned_from": names}
    write_spec(folder, features, told.expand, origin, calibrations)
    gains = {str(variant): trees.gains for variant, trees in models.items()}
    write_json(folder / TRAINING, told.to_json() | {"gains": gains})
    card = model_card(told, models[Variant.FULL], calibrations)
    (folder / "README.md").write_text(card, encoding="utf-8")
    seal_model(folder)


def model_card(told: RankerRecord, full: Trees, calibrations: Mapping[Variant, Calibration]) -> str:
    """Return README.md: what the ranker is, what it learned from, how good it is, what it looks at."""
    names = ", ".join(str(one["name"]) for one in told.indexes)
    return f"""# A ranker of citations, trained on {names}

It orders the candidates of a draft by what is known of each: lexical and semantic similarity, what neighbours cite,
citations, age, authors, venue. LambdaMART of LightGBM, by citerec {version("citerec")}; {full.rounds} trees. What an
index lacks (vectors, authors, a graph, a reranker) is missing to it as it was in training.

## Use

`citerec recommend --query FILE --ranker FOLDER`; with `--no-popularity` and `--no-authors` the variants answer that
were trained without citation counts and age, and without authors.

## Data

{_rows(("index", "papers", "train queries", "dev queries"), _indexes(told))}

Of dev and test queries it was trained on none, but on dev queries where models of an index have seen what its train
queries cite; then what is measured is measured on queries left out. Half of the train queries did not know the newest
citations, up to {told.settings["citation_lag"]} years of them, and each was shown {told.settings["copies"]} more
times with sources missing.

## Measures

On the dev queries:

{_rows(("variant", "F1@20", "MRR"), _variants(told))}

{_by_index(told)}## Probabilities

{_probabilities(calibrations)}

## What each source is worth

On the dev queries, with sources missing; nothing is trained again.

{_rows(("sources", "F1@20", "MRR"), [(a.label, _figure(a.f1), _figure(a.mrr)) for a in told.ablations])}

## What it looks at

{_rows(("feature", "share of the gain", "what it is"), _features(full))}

## Settings

```
{chr(10).join(f"{name} = {value}" for name, value in told.settings.items())}
```
"""


def _indexes(told: RankerRecord) -> list[tuple[str, ...]]:
    return [
        (
            str(one["name"]),
            f"{one['papers']:,}",
            f"{one['train_queries']:,}",
            f"{one['dev_queries']:,}" + (", which teach" if one["dev_queries_teach"] else ""),
        )
        for one in told.indexes
    ]


def _variants(told: RankerRecord) -> list[tuple[str, ...]]:
    rows = {"as the candidates were found": told.before, **told.after}
    return [(name, _figure(m["f1@20"]), _figure(m["mrr"])) for name, m in rows.items()]


def _by_index(told: RankerRecord) -> str:
    if len(told.by_index) < 2:
        return ""
    rows = [
        (name, _figure(b["f1@20"]), _figure(a["f1@20"]), _figure(b["mrr"]), _figure(a["mrr"]))
        for name, b, a in told.by_index
    ]
    return _rows(("index", "F1@20 before", "after", "MRR before", "after"), rows) + "\n\n"


def _probabilities(calibrations: Mapping[Variant, Calibration]) -> str:
    if not calibrations:
        return "It has none: too few papers of the dev lists are cited to fit them."
    rows = [(str(v), f"{c.scale:.3f}", f"{c.offset:.3f}") for v, c in calibrations.items()]
    return (
        f"sigmoid(scale * (score - mean of the list's best {TOP} scores) + offset), fitted on the best {TOP} papers\n"
        f"of each dev query's whole list.\n\n{_rows(('variant', 'scale', 'offset'), rows)}"
    )


def _features(full: Trees) -> list[tuple[str, ...]]:
    meaning = {feature.name: feature.meaning for feature in FEATURES}
    return [(name, f"{share:.1%}", meaning[name]) for name, share in full.gains.items()]


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(value: float) -> str:
    return f"{value:.4f}"
