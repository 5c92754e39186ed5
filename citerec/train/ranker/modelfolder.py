"""Writes the folder of a trained learning-to-rank model: small text files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from citerec.config import ExpandConfig
from citerec.manifest import TRAINING, seal_model
from citerec.rank.features import FEATURES
from citerec.rank.probability import TOP, Calibration
from citerec.rank.ranker import Variant, write_spec
from citerec.train.modelfolder import write_json
from citerec.train.ranker.ablation import Ablation
from citerec.train.ranker.boost import Trees

PACKAGES = ("lightgbm", "numpy", "scipy")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerRecord:
    """The record of a training: complete in training.json, summarised in the model card."""

    settings: Mapping[str, Any]
    expand: ExpandConfig
    indexes: Sequence[Mapping[str, Any]]  # facts of each training index
    before: Mapping[str, float]  # of the dev queries in first-stage order
    after: Mapping[str, Mapping[str, float]]  # by variant
    by_index: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]  # before and after
    ablations: Sequence[Ablation]  # of the variant with all features
    provenance: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {
            "settings": dict(self.settings),
            "indexes": [dict(one) for one in self.indexes],
            "before": dict(self.before),
            "after": {name: dict(measures) for name, measures in self.after.items()},
            "ablations": [asdict(row) for row in self.ablations],
            "packages": {name: version(name) for name in PACKAGES},
            "provenance": dict(self.provenance),
        }


def write_ranker(
    folder: Path,
    models: Mapping[Variant, Trees],
    calibrations: Mapping[Variant, Calibration],
    record: RankerRecord,
) -> None:
    """Write the variants of a model, their training record and the model card into a folder.

    Args:
        folder: The folder.
        models: The variants.
        calibrations: Of the variants that have one.
        record: The training record.
    """
    for variant, trees in models.items():
        (folder / f"{variant}.txt").write_text(trees.text, encoding="utf-8")
    features = {variant: trees.features for variant, trees in models.items()}
    names = [one["name"] for one in record.indexes]
    origin = {"citerec": version("citerec"), "learned_from": names}
    write_spec(folder, features, record.expand, origin, calibrations)
    gains = {str(variant): trees.gains for variant, trees in models.items()}
    write_json(folder / TRAINING, record.to_json() | {"gains": gains})
    card = model_card(record, models[Variant.FULL], calibrations)
    (folder / "README.md").write_text(card, encoding="utf-8")
    seal_model(folder)


def model_card(
    record: RankerRecord, full: Trees, calibrations: Mapping[Variant, Calibration]
) -> str:
    """Return README.md: the model, its use, its data, its measures, its features and its settings."""
    names = ", ".join(str(one["name"]) for one in record.indexes)
    return f"""# A learning-to-rank model for citations, trained on {names}

It ranks the candidates of a draft by lexical and semantic similarity, the references of neighbours,
citations, age, authors and venue. LambdaMART of LightGBM, by citerec {version("citerec")}; {full.rounds} trees.
If an index has no vectors, authors, citation graph or reranker, these features are disabled, as in training copies.

## Use

`citerec recommend --query FILE --ranker FOLDER`; `--no-popularity` and `--no-authors` select the variants that
were trained without citation counts and age, and without authors.

## Data

{_rows(("index", "papers", "train queries", "dev queries"), _indexes(record))}

It was not trained on test queries. It was trained on dev queries only of an index whose encoder or reranker was
trained on the citations of its train queries; such dev queries are measured by cross-validation. Half of the train
queries did not know the newest citations, of up to {record.settings["citation_lag"]} years. Each train query has
{record.settings["copies"]} copies with disabled feature groups.

## Measures

On the dev queries:

{_rows(("variant", "F1@20", "MRR"), _variants(record))}

{_by_index(record)}## Probabilities

{_probabilities(calibrations)}

## Ablations

On the dev queries, with disabled feature groups; nothing is trained again.

{_rows(("feature groups", "F1@20", "MRR"), [(a.label, _figure(a.f1), _figure(a.mrr)) for a in record.ablations])}

## Features

{_rows(("feature", "share of the gain", "what it is"), _features(full))}

## Settings

```
{chr(10).join(f"{name} = {value}" for name, value in record.settings.items())}
```
"""


def _indexes(record: RankerRecord) -> list[tuple[str, ...]]:
    return [
        (
            str(one["name"]),
            f"{one['papers']:,}",
            f"{one['train_queries']:,}",
            f"{one['dev_queries']:,}" + (", training data" if one["dev_queries_teach"] else ""),
        )
        for one in record.indexes
    ]


def _variants(record: RankerRecord) -> list[tuple[str, ...]]:
    rows = {"first stage": record.before, **record.after}
    return [(name, _figure(m["f1@20"]), _figure(m["mrr"])) for name, m in rows.items()]


def _by_index(record: RankerRecord) -> str:
    if len(record.by_index) < 2:
        return ""
    rows = [
        (name, _figure(b["f1@20"]), _figure(a["f1@20"]), _figure(b["mrr"]), _figure(a["mrr"]))
        for name, b, a in record.by_index
    ]
    return _rows(("index", "F1@20 before", "after", "MRR before", "after"), rows) + "\n\n"


def _probabilities(calibrations: Mapping[Variant, Calibration]) -> str:
    if not calibrations:
        return "None: the dev lists have too few cited papers to fit them."
    rows = [(str(v), f"{c.scale:.3f}", f"{c.offset:.3f}") for v, c in calibrations.items()]
    return (
        f"sigmoid(scale * (score - mean of the list's best {TOP} scores) + offset), fitted on the best {TOP} papers\n"
        f"of each dev query's complete list.\n\n{_rows(('variant', 'scale', 'offset'), rows)}"
    )


def _features(full: Trees) -> list[tuple[str, ...]]:
    meaning = {feature.name: feature.meaning for feature in FEATURES}
    return [(name, f"{share:.1%}", meaning[name]) for name, share in full.gains.items()]


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(value: float) -> str:
    return f"{value:.4f}"
