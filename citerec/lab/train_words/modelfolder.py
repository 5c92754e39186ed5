"""Writes the folder of a word-vector encoder: model, training record, model card."""

from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from citerec.encode.spec import Similarity
from citerec.folder import IndexFolder
from citerec.lab.train_words.config import WordRecipe, WordsTraining
from citerec.lab.train_words.made import TrainedModel
from citerec.lab.words.folder import write_words
from citerec.manifest import seal_model
from citerec.provenance import provenance, versions
from citerec.train.data import splits_sha256
from citerec.train.modelfolder import cell, finish_folder

PACKAGES = ("gensim", "numpy", "scikit-learn", "scipy", "torch")
TITLES = {
    WordRecipe.RANDOM: "Random vectors",
    WordRecipe.TFIDF: "TF-IDF with singular value decomposition",
    WordRecipe.DOC2VEC: "Doc2Vec (DBOW)",
    WordRecipe.FASTTEXT: "A weighted sum of word vectors",
    WordRecipe.SIF: "SIF: a weighted average of word vectors without its first principal component",
    WordRecipe.SGC: "SGC: SIF vectors propagated along citations",
    WordRecipe.CITEOMATIC: "Citeomatic's embedding: a weighted sum of word vectors, trained on citations",
}


def write_model(
    folder: Path, trained: TrainedModel, index: IndexFolder, config: WordsTraining
) -> None:
    """Write a model, its training record and its model card into a folder."""
    write_words(folder, trained.model)
    settings = config.to_json()
    if config.vectors:
        settings["vectors"] = Path(config.vectors).name  # without the local path
    record = {
        "recipe": str(config.recipe),
        "weights": trained.weights,
        "index": index.manifest.name,
        "corpus_sha256": index.manifest.corpus["sha256"],
        "splits_sha256": splits_sha256(index),
        "counts": dict(trained.counts),
        "history": [asdict(tried) for tried in trained.tried],
        "chosen": asdict(trained.best),
        "packages": versions(PACKAGES),
        "provenance": provenance(settings),
    }
    finish_folder(folder, record, model_card(trained, index, config, settings))
    seal_model(folder)


def model_card(
    trained: TrainedModel, index: IndexFolder, config: WordsTraining, settings: dict[str, Any]
) -> str:
    """Return README.md: the model, its use, its data, its measures and its settings."""
    by = "cosine" if trained.model.similarity is Similarity.COSINE else "Euclidean distance"
    counted = [f"- {count:,} {name.replace('_', ' ')}" for name, count in trained.counts.items()]
    rows = [
        f"| {', '.join(f'{k} = {_short(v)}' for k, v in one.setting.items()) or '–'} "
        f"| {cell(one.mrr)} | {cell(one.f1)} |"
        for one in trained.tried
    ]
    set_to = [f"{name} = {value}" for name, value in settings.items()]
    return f"""# {TITLES[config.recipe]}

It maps title and abstract to a vector of {trained.model.dim} numbers, compared by {by}.
Trained by citerec {version("citerec")}; only citerec opens it.

## Use

`citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

## Data

Index {index.manifest.name}, corpus sha256 {index.manifest.corpus["sha256"]}.

{_lines(counted) or "None."}

The training papers contain no dev or test query of the index.

## Measures

On a sample of the dev queries; the model is that with the highest MRR.

| setting | dev MRR | dev F1@20 |
|---|---|---|
{_lines(rows)}

## Settings

```
{_lines(set_to)}
```
"""


def _lines(lines: list[str]) -> str:
    return "\n".join(lines)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
