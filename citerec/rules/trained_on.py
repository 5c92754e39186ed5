"""Which models are an index's own, and whether a model was trained on the papers and splits of an index.

A rebuilt index keeps its models: papers that they were trained on may be its test queries now.
"""

import os
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.splits import splits_sha256
from citerec.entries import is_regular, read_record
from citerec.errors import IndexDamagedError
from citerec.folder import IndexFolder
from citerec.manifest import TRAINING

RERANKER, RANKER = "reranker", "ranker"  # the folders of an index's own models, under models/


def own_model(index: IndexFolder, name: str, required: str) -> Path | None:
    """Return the folder of a model that was trained on an index; None if there is none.

    Args:
        index: The index.
        name: `RERANKER` or `RANKER`.
        required: The name of a file that every such model has.

    Raises:
        IndexDamagedError: If the folder exists, but has no model in it.
    """
    folder = index.models / name
    if os.path.lexists(folder) and not is_regular(folder / required):
        raise IndexDamagedError(index.path, [f"{own_name(index, name)}/{required} is missing"])
    return folder if folder.is_dir() else None


def own_name(index: IndexFolder, name: str) -> str:
    """Return the name of an index's own model in messages: its path in the index."""
    return f"{index.models.name}/{name}"


def data_of(index: IndexFolder) -> tuple[str, str]:
    """Return what identifies the training data of an index: the sha256 of its corpus and that of its splits.

    Updates of the index keep both.

    Raises:
        OSError: If a split is missing.
    """
    return index.manifest.lineage, splits_sha256(index.splits)


def trained_on_other_data(model: Path, index: IndexFolder) -> bool:
    """Return whether a model records that it was trained on other papers or splits than an index has.

    The record of a reranker names one index, that of a ranker a list of them. A model without a record counts as
    trained on the data of the index.
    """
    try:
        return data_of(index) not in _recorded_data(model)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False  # nothing is recorded


def may_know_queries(model: Path, index: IndexFolder) -> bool:
    """Return whether a model may have been trained on queries of an index: it records the same corpus, or no data.

    The splits are not compared: other splits of a corpus have other train queries, but the same papers.
    """
    try:
        return index.manifest.lineage in {corpus for corpus, _ in _recorded_data(model)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return True  # nothing is recorded


def _recorded_data(model: Path) -> list[tuple[str, str]]:
    """Return the training data in the record of a model, each as `data_of` returns it."""
    record: Any = orjson.loads(read_record(model / TRAINING))
    trained = record.get("indexes", [record])
    return [(one["corpus_sha256"], one["splits_sha256"]) for one in trained]
