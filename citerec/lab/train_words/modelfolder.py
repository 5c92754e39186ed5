"""The folder that the training of an encoder of words leaves: model, story, model card."""

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
    WordRecipe.CITEOMATIC: "Citeomatic's embedding: a weighted sum of word vectors, taught by citations",
}


def write_model(
    folder: Path, made: TrainedModel, index: IndexFolder, config: WordsTraining
) -> None:
    """Write a model and all that is said of it into a folder."""
    write_words(folder, made.model)
    settings = config.to_json()
    if config.vectors:
        settings["vectors"] = Path(config.vectors).name  # where it lies is nobody else's matter
    record = {
        "recipe": str(config.recipe),
        "weights": made.weights,
        "index": index.manifest.name,
        "corpus_sha256": index.manifest.corpus["sha256"],
        "splits_sha256": splits_sha256(index),
        "counts": dict(made.counts),
        "history": [asdict(tried) for tried in made.tried],
        "chosen": asdict(made.best),
        "packages": versions(PACKAGES),
        "provenance": provenance(settings),
    }
    finish_folder(folder, record, model_card(made, index, config, settings))
    seal_model(folder)


def model_card(
    made: TrainedModel, index: IndexFolder, config: WordsTraining, settings: dict[str, Any]
) -> str:
    """Return README.md: what the model is, what it learned from, how good it is, how to use it."""
    by = "cosine" if made.model.similarity is Similarity.COSINE else "Euclidean distance"
    counted = [f"- {count:,} {name.replace('_', ' ')}" for name, count in made.counts.items()]
    rows = [
        f"| {', '.join(f'{k} = {_short(v)}' for k, v in one.setting.items()) or '–'} "
        f"| {cell(one.mrr)} | {cell(one.f1)} |"
        for one in made.tried
    ]
    set_to = [f"{name} = {value}" for name, value in settings.items()]
    return f"""# {TITLES[config.recipe]}

Turns the title and abstract of a paper into {made.model.dim} numbers, compared by {by}.
Trained by citerec {version("citerec")}; it opens in citerec alone.

## Use

`citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.

## Data

Index {index.manifest.name}, corpus sha256 {index.manifest.corpus["sha256"]}.

{_lines(counted) or "Nothing is learned."}

Neither dev nor test queries of the index are among the papers that it was trained on.

## Measures

On a sample of the dev queries; the model is the one of the highest MRR.

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
