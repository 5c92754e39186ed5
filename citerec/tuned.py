"""Reads and writes the fusion of BM25 and dense retrieval that was tuned on an index.

The file is stored next to the models that were trained on the index.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field

from citerec.config import FuseConfig, FuseMethod, Settings, read_settings
from citerec.errors import BadInputError, ConfigError, ModelDamagedError
from citerec.folder import IndexFolder
from citerec.io import building, check_model, indented_json, read_record, seal_model

FOLDER = "fusion"
FILE = "fusion.json"


class _Tuned(Settings):
    """The content of the file."""

    fuse: FuseConfig | None = None  # None for the default
    retrievers: tuple[str, ...] = ()  # registered ones that were fused, too
    valid_for: Mapping[str, str | None] = Field(default_factory=dict, alias="for")
    how: Mapping[str, Any] = Field(default_factory=dict)  # the record of the tuning


def write_tuned(
    index: IndexFolder,
    config: FuseConfig | None,
    record: Mapping[str, Any],
    retrievers: Sequence[str] = (),
) -> Path:
    """Write the tuned fusion of an index, None for the default; return the file.

    `record` is the record of the tuning, as JSON values. The fusion is used with these further retrievers alone.
    """
    content = {
        "fuse": config and config.model_dump(),
        "retrievers": [*retrievers],
        "for": _of(index),
        "how": dict(record),
    }
    target = index.models / FOLDER
    with building(target) as folder:
        (folder / FILE).write_bytes(indented_json(content))
        seal_model(folder)
    return target / FILE


def tuned_fusion(index: IndexFolder, retrievers: Sequence[str] = ()) -> FuseConfig | None:
    """Return the tuned fusion of an index; None if its papers, encoder and further retrievers have none."""
    tuned = _read(index)
    return tuned.fuse if tuned.retrievers == (*retrievers,) else None


def fusion_in_use(index: IndexFolder) -> str:
    """Return how BM25 and vectors are fused, and the origin of it: `rrf, k 60 (default)`."""
    tuned = tuned_fusion(index)
    how = _read(index).how.get("settings", {})
    queries = f"{how.get('queries', 0):,} {how.get('split', 'dev')} queries"
    origin = f"tuned on {queries}" if tuned else "default"
    return f"{shown_fusion(tuned or FuseConfig())} ({origin})"


def shown_fusion(fuse: FuseConfig) -> str:
    """Describe a fusion in a few words."""
    if fuse.method is FuseMethod.RRF:
        return f"rrf, k {fuse.k0}"
    return f"weighted, bm25 {fuse.bm25_weight:g} + dense {fuse.dense_weight:g}"


def _read(index: IndexFolder) -> _Tuned:
    """Return what was tuned; empty if there is no file, or it was tuned for other papers or another encoder.

    BadInputError if the file cannot be read.
    """
    file = index.models / FOLDER / FILE
    if not os.path.lexists(file.parent):
        return _Tuned()
    try:
        check_model(file.parent)
        tuned = read_settings(_Tuned, orjson.loads(read_record(file)))
        return tuned if tuned.valid_for == _of(index) else _Tuned()
    except (OSError, ValueError, ConfigError, ModelDamagedError) as error:
        advice = f"tune again: citerec tune --index {index.path}, or delete its folder"
        raise BadInputError(file, f"cannot be read; {advice}") from error


def _of(index: IndexFolder) -> dict[str, str | None]:
    """Return what a tuning is valid for: the corpus (updates keep it valid) and the encoder's weights, as sha256."""
    return {"corpus": index.manifest.lineage, "encoder": index.encoder_weights}
