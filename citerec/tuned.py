"""Reads and writes what was tuned on an index: the fusion of BM25 and dense retrieval, and the rerank weight.

The file is stored next to the models that were trained on the index.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.config import FuseConfig, FuseMethod, RecommendConfig, RerankConfig
from citerec.errors import BadInputError, ConfigError, ModelDamagedError
from citerec.folder import IndexFolder
from citerec.io import building, check_model, read_record, seal_model
from citerec.settings import settings_from

FOLDER, FILE = "fusion", "fusion.json"


@dataclass(frozen=True, slots=True)
class RerankWeight:
    """The weight of a reranker against the previous order."""

    weight: float  # in [0, 1]
    reranker: str  # sha256 of its weights
    depth: int  # candidates per query in the tuning
    query_tokens: int  # tokens of the query in the tuning, including special tokens
    candidate_tokens: int  # likewise for the candidate

    def __post_init__(self) -> None:
        RerankConfig(weight=self.weight)  # validates it

    @property
    def settings(self) -> tuple[int, int, int]:
        """Depth, query tokens and candidate tokens of the tuning."""
        return self.depth, self.query_tokens, self.candidate_tokens


def write_tuned(
    index: IndexFolder,
    config: FuseConfig | None,
    record: Mapping[str, Any],
    rerank: RerankWeight | None = None,
) -> Path:
    """Write the tuned fusion and rerank weight of an index, with a record of the tuning; return the file.

    Args:
        index: The index.
        config: The fusion of the first stages; None for the default.
        record: The record of the tuning, as JSON values.
        rerank: The weight of the reranker; None for the default.

    Raises:
        OutputError: If it cannot be written.
    """
    fuse = None if config is None else config.model_dump()
    content = {"fuse": fuse, "for": _of(index), "how": dict(record)}
    if rerank:
        content["rerank_weight"] = asdict(rerank)
    target = index.models / FOLDER
    with building(target) as folder:
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / FILE).write_bytes(orjson.dumps(content, option=options))
        seal_model(folder)
    return target / FILE


def read_tuned(index: IndexFolder) -> FuseConfig | None:
    """Return the tuned fusion of an index; None if its papers and encoder have none.

    Raises:
        BadInputError: If the file cannot be read.
    """
    with _reading(index):
        content = _content(index)
        if content and (settings := content["fuse"]):
            return settings_from(FuseConfig, settings)
    return None


def tuned_fusion(index: IndexFolder, config: RecommendConfig) -> FuseConfig | None:
    """Return the tuned fusion for a configuration; None if there is none, or other retrievers are fused, too.

    Raises:
        BadInputError: If the file cannot be read.
    """
    return None if config.retrievers else read_tuned(index)


def read_rerank_weight(index: IndexFolder, reranker: str) -> RerankWeight | None:
    """Return the tuned weight of a reranker; None if there is none for it.

    Args:
        index: The index; a weight that was tuned with other papers or another encoder does not count.
        reranker: The sha256 of the reranker's weights.

    Raises:
        BadInputError: If the file cannot be read.
    """
    with _reading(index):
        stored: Any = (_content(index) or {}).get("rerank_weight")
        if stored and stored["reranker"] == reranker:
            return settings_from(RerankWeight, stored)
    return None


def fusion_in_use(index: IndexFolder, config: RecommendConfig | None = None) -> str:
    """Return how the first stages are fused, and the origin of that setting: `rrf, k 60 (default)`.

    Args:
        index: The index, which may have been tuned.
        config: The configuration in use; None for the default.

    Raises:
        BadInputError: If the tuned settings cannot be read.
    """
    config = config or RecommendConfig()
    tuned = tuned_fusion(index, config)
    fuse = config.fuse_with(tuned)
    if config.fuse is not None:
        origin = "option"
        if tuned and isinstance(config.fuse, FuseMethod) and fuse != FuseConfig():
            origin += ", with the tuned settings"
    else:
        origin = f"tuned on {_queries(index)}" if tuned else f"default{_rejected(index, 'fusion')}"
    return f"{shown_fusion(fuse)} ({origin})"


def rerank_weight_in_use(
    index: IndexFolder, weight: float, reranker: str, *, is_option: bool, has_ranker: bool
) -> str:
    """Return the weight of a reranker, and its origin: `1 (default)`.

    Args:
        index: The index, which may have been tuned.
        weight: The weight in use.
        reranker: The sha256 of the reranker's weights.
        is_option: Whether the user gave the weight.
        has_ranker: Whether it is applied after a learning-to-rank model, for which no weight is tuned.

    Raises:
        BadInputError: If the tuned settings cannot be read.
    """
    if is_option:
        origin = "option"
    elif has_ranker:
        origin = "default after a ranker"
    elif read_rerank_weight(index, reranker):
        origin = f"tuned on {_queries(index)}"
    else:
        origin = f"default{_rejected(index, 'weight')}"
    return f"{weight:g} ({origin})"


def shown_fusion(fuse: FuseConfig) -> str:
    """Describe a fusion in a few words."""
    if fuse.method is FuseMethod.RRF:
        return f"rrf, k {fuse.k0}"
    return f"weighted, bm25 {fuse.bm25_weight:g} + dense {fuse.dense_weight:g}"


def _settings(index: IndexFolder) -> dict[str, Any]:
    """Return the settings of the tuning itself; empty if there was none."""
    with _reading(index):
        record: Any = (_content(index) or {}).get("how", {})
        return dict(record.get("settings", {}))
    return {}


def _queries(index: IndexFolder) -> str:
    record = _settings(index)
    return (
        f"{record['queries']:,} {record['split']} queries" if "queries" in record else "dev queries"
    )


def _rejected(index: IndexFolder, setting: str) -> str:
    """Return a note that tuning found nothing better than a default, if it was tried; else empty."""
    check = (_settings(index).get("checks") or {}).get(setting)
    if not check:
        return ""
    return f"; tuning on {_queries(index)} found nothing better, p {check['p']:.2g}"


def kept_rerank_weight(index: IndexFolder) -> RerankWeight | None:
    """Return the stored weight, of any reranker; None if there is none, or it cannot be read."""
    with suppress(BadInputError), _reading(index):
        stored: Any = (_content(index) or {}).get("rerank_weight")
        return settings_from(RerankWeight, stored) if stored else None
    return None


def _content(index: IndexFolder) -> dict[str, Any] | None:
    """Return the content of the file; None if it is missing or was tuned for other papers or another encoder."""
    file = index.models / FOLDER / FILE
    if not os.path.lexists(file.parent):
        return None
    check_model(file.parent)
    content: Any = orjson.loads(read_record(file))
    return content if content["for"] == _of(index) else None


@contextmanager
def _reading(index: IndexFolder) -> Generator[None]:
    try:
        yield
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError),
        *(ConfigError, ModelDamagedError),
    ) as error:
        advice = f"citerec tune --index {index.path}"
        file = index.models / FOLDER / FILE
        raise BadInputError(file, f"cannot be read; tune again: {advice}") from error


def _of(index: IndexFolder) -> dict[str, str | None]:
    """Return what a tuning is valid for: the corpus (updates keep it valid) and the encoder's weights, as sha256."""
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return {"corpus": index.manifest.lineage, "encoder": encoder}
