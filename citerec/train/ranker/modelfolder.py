"""Writes the folder of a trained learning-to-rank model: small text files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from citerec.rank.calibrate import TOP, Calibration
from citerec.rank.features import FEATURES
from citerec.rank.ltr import Variant, write_spec
from citerec.train.ranker.ablation import Ablation
from citerec.train.ranker.boost import Trees
from citerec.train.ranker.gather import CITATION_LAG, EXPAND
from citerec.train.ranker.variants import COPIES
from citerec.train.record import finish_folder, model_card, table, training_record

PACKAGES = ("lightgbm", "numpy", "scipy")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankerResult:
    """The variants of a model and their measures."""

    indexes: Sequence[Mapping[str, Any]]  # facts of each training index
    before: Mapping[str, float]  # of the dev queries in first-stage order
    after: Mapping[str, Mapping[str, float]]  # by variant
    by_index: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]]  # before and after
    ablations: Sequence[Ablation]  # of the variant with all features
    models: Mapping[Variant, Trees]
    calibrations: Mapping[Variant, Calibration]  # of the variants that have one


def write_ranker(folder: Path, result: RankerResult, settings: Mapping[str, Any]) -> None:
    """Write the variants of a model, their training record and the model card into a folder.

    Args:
        folder: The folder.
        result: The model and its measures.
        settings: The settings of the training, without local paths.
    """
    for variant, trees in result.models.items():
        (folder / f"{variant}.txt").write_text(trees.text, encoding="utf-8")
    features = {variant: trees.features for variant, trees in result.models.items()}
    names = [facts["name"] for facts in result.indexes]
    origin = {
        "citerec": version("citerec"),
        "learned_from": names,
        "rerankers": sorted({facts["reranker"] for facts in result.indexes} - {None}),
        "cross_fitted": any(facts["train_queries_reranked"] for facts in result.indexes),
    }
    write_spec(folder, features, EXPAND, origin, result.calibrations)
    facts = {
        "indexes": [dict(facts) for facts in result.indexes],
        "before": dict(result.before),
        "after": dict(result.after),
        "ablations": [asdict(row) for row in result.ablations],
        "gains": {str(variant): trees.gains for variant, trees in result.models.items()},
    }
    record = training_record(facts, settings, PACKAGES)
    finish_folder(folder, record, _card(result, settings))


def _card(result: RankerResult, settings: Mapping[str, Any]) -> str:
    full = result.models[Variant.FULL]
    meaning = {feature.name: feature.meaning for feature in FEATURES}
    features = [(name, f"{share:.1%}", meaning[name]) for name, share in full.gains.items()]
    ablation_rows = [(row.label, row.f1, row.mrr) for row in result.ablations]
    return model_card(
        "A learning-to-rank model for citations, trained on "
        + ", ".join(str(facts["name"]) for facts in result.indexes),
        f"""It ranks the candidates of a draft by lexical and semantic similarity, the references of neighbours,
citations, age, authors and venue: LambdaMART of LightGBM, {full.rounds} trees.
If an index has no vectors, authors, citation graph or reranker, these features are disabled, as in training copies.""",
        {
            "Use": """`citerec recommend --query FILE --ranker FOLDER`; `--no-popularity` and `--no-authors` select
the variants that were trained without citation counts and age, and without authors.""",
            "Data": _data(result),
            "Measures": _measures(result),
            "Probabilities": _probabilities(result.calibrations),
            "Ablations": "On the dev queries, with disabled feature groups; nothing is trained again.\n\n"
            + table(("feature groups", "F1@20", "MRR"), ablation_rows),
            "Features": table(("feature", "share of the gain", "what it is"), features),
        },
        settings,
    )


def _data(result: RankerResult) -> str:
    rows = [
        (
            str(facts["name"]),
            f"{facts['papers']:,}",
            f"{facts['train_queries']:,}",
            f"{facts['dev_queries']:,}" + (", training data" if facts["dev_queries_teach"] else ""),
        )
        for facts in result.indexes
    ]
    reranked = [str(facts["name"]) for facts in result.indexes if facts["train_queries_reranked"]]
    by_others = (
        f"Train queries of {', '.join(reranked)} were reranked, by a model that was not trained on them.\n"
        if reranked
        else ""
    )
    return f"""{table(("index", "papers", "train queries", "dev queries"), rows)}

{by_others}It was not trained on test queries. It was trained on dev queries only of an index whose encoder or reranker
was trained on the citations of its train queries; such dev queries are measured by cross-validation. Half of the train
queries did not know the newest citations, of up to {CITATION_LAG} years. Each train query has
{COPIES} copies with disabled feature groups."""


def _measures(result: RankerResult) -> str:
    variants = [
        (name, measured["f1@20"], measured["mrr"])
        for name, measured in {"first stage": result.before, **result.after}.items()
    ]
    text = f"On the dev queries:\n\n{table(('variant', 'F1@20', 'MRR'), variants)}"
    if len(result.by_index) < 2:
        return text
    rows = [
        (name, before["f1@20"], after["f1@20"], before["mrr"], after["mrr"])
        for name, before, after in result.by_index
    ]
    heading = ("index", "F1@20 before", "after", "MRR before", "after")
    return f"{text}\n\n{table(heading, rows)}"


def _probabilities(calibrations: Mapping[Variant, Calibration]) -> str:
    if not calibrations:
        return "None: the dev lists have too few cited papers to fit them."
    rows = [(str(v), f"{c.scale:.3f}", f"{c.offset:.3f}") for v, c in calibrations.items()]
    return (
        f"sigmoid(scale * (score - mean of the list's best {TOP} scores) + offset), fitted on the best {TOP} papers\n"
        f"of each dev query's complete list.\n\n{table(('variant', 'scale', 'offset'), rows)}"
    )
