"""Reads and writes what was tuned on an index: the fusion of BM25 and dense retrieval, and the rerank weight.

The file is stored next to the models that were trained on the index.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field

from citerec.config import FuseConfig, FuseMethod, Settings, read_settings
from citerec.errors import BadInputError, ConfigError, ModelDamagedError
from citerec.folder import IndexFolder
from citerec.io import building, check_model, indented_json, read_record, seal_model

FOLDER, FILE = "fusion", "fusion.json"


@dataclass(frozen=True, slots=True)
class RerankWeight:
    """The weight of a reranker against the previous order."""

    weight: float  # in [0, 1]
    reranker: str  # sha256 of its weights
    depth: int  # candidates per query in the tuning
    query_tokens: int  # tokens of the query in the tuning, including special tokens
    candidate_tokens: int  # likewise for the candidate

    @property
    def settings(self) -> tuple[int, int, int]:
        """Depth, query tokens and candidate tokens of the tuning."""
        return self.depth, self.query_tokens, self.candidate_tokens


class _Tuned(Settings):
    """The content of the file."""

    fuse: FuseConfig | None = None  # None for the default, here and below
    retrievers: tuple[str, ...] = ()  # registered ones that were fused, too
    valid_for: Mapping[str, str | None] = Field(default_factory=dict, alias="for")
    how: Mapping[str, Any] = Field(default_factory=dict)  # the record of the tuning
    rerank_weight: RerankWeight | None = None


def write_tuned(
    index: IndexFolder,
    config: FuseConfig | None,
    record: Mapping[str, Any],
    rerank: RerankWeight | None = None,
    retrievers: Sequence[str] = (),
) -> Path:
    """Write the tuned fusion and rerank weight of an index, None for the defaults; return the file.

    `record` is the record of the tuning, as JSON values. The fusion is used with these further retrievers alone.
    """
    content: dict[str, Any] = {
        "fuse": config and config.model_dump(),
        "retrievers": [*retrievers],
        "for": _of(index),
        "how": dict(record),
        **({"rerank_weight": asdict(rerank)} if rerank else {}),
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


def read_rerank_weight(index: IndexFolder, reranker: str) -> RerankWeight | None:
    """Return the tuned weight of a reranker, by the sha256 of its weights; None if there is none for it."""
    stored = _read(index).rerank_weight
    return stored if stored and stored.reranker == reranker else None


def kept_rerank_weight(index: IndexFolder) -> RerankWeight | None:
    """Return the stored weight, of any reranker; None if there is none, or it cannot be read."""
    with suppress(BadInputError):
        return _read(index).rerank_weight
    return None


def fusion_in_use(index: IndexFolder) -> str:
    """Return how BM25 and vectors are fused, and the origin of it: `rrf, k 60 (default)`."""
    tuned, how = tuned_fusion(index), _read(index).how.get("settings", {})
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
        advice = f"citerec tune --index {index.path}"
        raise BadInputError(file, f"cannot be read; tune again: {advice}") from error


def _of(index: IndexFolder) -> dict[str, str | None]:
    """Return what a tuning is valid for: the corpus (updates keep it valid) and the encoder's weights, as sha256."""
    return {"corpus": index.manifest.lineage, "encoder": index.encoder_weights}
