"""Writes the folder of a word-vector encoder: model, training record, model card."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from citerec.encode.spec import Similarity
from citerec.folder import IndexFolder
from citerec.lab.train_words.config import WordRecipe, WordsTraining
from citerec.lab.train_words.dev import TrainedModel
from citerec.lab.words.folder import write_words
from citerec.train.record import (
    corpus_facts,
    data_section,
    finish_folder,
    model_card,
    table,
    training_record,
)

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
    facts = {
        "recipe": str(config.recipe),
        "weights": trained.weights,
        "index": index.manifest.name,
        **corpus_facts(index),
        "counts": dict(trained.counts),
        "history": [asdict(tried) for tried in trained.tried],
        "chosen": asdict(trained.best),
    }
    record = training_record(facts, settings, PACKAGES)
    finish_folder(folder, record, _card(trained, config.recipe, record))


def _card(trained: TrainedModel, recipe: WordRecipe, record: dict[str, Any]) -> str:
    by = "cosine" if trained.model.similarity is Similarity.COSINE else "Euclidean distance"
    rows = [
        (
            ", ".join(f"{k} = {_short(v)}" for k, v in trial.setting.items()) or "–",
            trial.mrr,
            trial.f1,
        )
        for trial in trained.tried
    ]
    measures = table(("setting", "dev MRR", "dev F1@20"), rows)
    return model_card(
        TITLES[recipe],
        f"It maps title and abstract to a vector of {trained.model.dim} numbers, compared by {by}; only citerec opens "
        "it.",
        {
            "Use": "`citerec index CORPUS --encoder FOLDER`, or `citerec encode --index DIR --encoder FOLDER`.",
            "Data": data_section(record),
            "Measures": f"On a sample of the dev queries; the model is that with the highest MRR.\n\n{measures}",
        },
        record["provenance"]["settings"],
    )


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
