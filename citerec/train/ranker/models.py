"""The models that are run on the queries of an index, and whether these queries were their training data.

A model must not be run on train queries that it was trained on: its scores there are better than on any draft. Such a
model is run on dev queries only, which then are training data of the ranker, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from citerec.cache import sha256_of_files
from citerec.encode.files import weights_files
from citerec.encode.source import find_model
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rerank.choose import auto_reranker
from citerec.rerank.spec import read_reranker_spec
from citerec.rules.held_out import HeldOut, held_out, may_know_queries
from citerec.train.data import TrainingData
from citerec.train.lists import Flags
from citerec.train.ranker.config import RankerTraining
from citerec.train.record import corpus_facts, encoder_folder, encoder_of, read_training
from citerec.types import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexModels:
    """The models that are run on queries of an index."""

    encoder: bool = True  # whether the vectors of the index are searched
    reranker: str | None = None  # its folder, or a name of `find_model`

    @classmethod
    def of_train_queries(cls, index: IndexFolder, reranker: str | None) -> "IndexModels":
        """Return the models of an index without those that may have been trained on its train queries.

        An encoder without a training record of citerec was trained elsewhere, and is run. A reranker without one is
        not.
        """
        encoder = encoder_folder(index)
        return cls(
            encoder=not (encoder and read_training(encoder) and may_know_queries(encoder, index)),
            reranker=reranker if reranker and not _may_know(reranker, index, index) else None,
        )


def reranker_of(index: IndexFolder, config: RankerTraining, position: int = 0) -> str | None:
    """Return the reranker for the candidates of an index; None for none.

    Args:
        index: The index.
        config: The settings.
        position: The position of the index among those of the training.
    """
    name = config.rerankers(position + 1)[position]
    if name == "auto":
        return auto_reranker(index, default=False, same_data=True)
    return None if name == "none" else name


def rerankers_of(indexes: Sequence[IndexFolder], config: RankerTraining) -> list[str | None]:
    """Return the reranker of each index; None for none.

    Raises:
        ConfigError: If the settings name rerankers for another number of indexes.
    """
    named = len(config.rerankers(len(indexes)))
    if named != len(indexes):
        raise ConfigError(
            f"reranker names {named} models, expected one per index, {len(indexes)}; give one model for all, or a "
            "list in the order of --index"
        )
    return [reranker_of(index, config, position) for position, index in enumerate(indexes)]


def check_rerankers(
    indexes: Sequence[IndexFolder], rerankers: Sequence[str | None], log: Log
) -> None:
    """Check that all rerankers exist, and that the probabilities of several can be compared.

    Raises:
        ConfigError: If there are several and one of them is not calibrated.
        ModelError: If one does not exist.
    """
    folders = {
        find_model(name, base=index.path, log=log).folder.resolve(): name
        for index, name in zip(indexes, rerankers, strict=True)
        if name
    }
    for folder, name in folders.items():
        if len(folders) > 1 and not read_reranker_spec(folder).is_calibrated:
            raise ConfigError(
                f"{name} is not calibrated: the probabilities of several rerankers must be comparable; train it with "
                "dev queries: citerec train-reranker"
            )


def weights_of(name: str | None, index: IndexFolder) -> str | None:
    """Return the sha256 of the weights of a reranker; None for none."""
    if name is None:
        return None
    return sha256_of_files(weights_files(find_model(name, base=index.path).folder))


def identity(index: IndexFolder, reranker: str | None) -> dict[str, Any]:
    """Return what a training on an index depends on: the sha256 of its papers, splits, encoder and reranker."""
    models = {"encoder": encoder_of(index), "reranker": weights_of(reranker, index)}
    return corpus_facts(index) | models


def recorded_settings(config: RankerTraining, indexes: Sequence[IndexFolder]) -> dict[str, Any]:
    """Return the settings as they are recorded: only the names of rerankers in folders."""

    def short(name: str) -> str:
        folders = (Path(name), *(index.path / name for index in indexes))
        return Path(name).name if any(folder.is_dir() for folder in folders) else name

    settings = config.to_json()
    if isinstance(config.reranker, str):
        return settings | {"reranker": short(config.reranker)}
    return settings | {"reranker": [*map(short, config.reranker)]}


def rerankable(
    index: IndexFolder, data: TrainingData, reranker: str | None, others: Sequence[IndexFolder]
) -> Flags:
    """Return a mask of the train queries of an index that a reranker was not trained on, shape (queries,).

    It may have been trained on another index that shares papers with this one.

    Args:
        index: The index.
        data: Its train queries.
        reranker: The reranker; None for none.
        others: The other indexes of the training of the ranker.
    """
    known = [other for other in others if reranker and _may_know(reranker, index, other)]
    if not known:
        return np.ones(len(data.queries), np.bool_)
    return allowed(held_out(known, ("train",)), index, data)


def allowed(held: HeldOut, index: IndexFolder, data: TrainingData) -> Flags:
    """Return a mask of the train queries that are not held out, by id and by title, shape (queries,)."""
    titles = index.papers.texts("title", data.queries).to_pylist()
    return held.allowed_mask(index.papers.ids_at(data.queries.tolist()), titles)


def _may_know(reranker: str, index: IndexFolder, other: IndexFolder) -> bool:
    """Return whether a reranker that is found from `index` may have been trained on queries of `other`."""
    return may_know_queries(find_model(reranker, base=index.path).folder, other)
