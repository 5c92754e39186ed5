"""What was tuned on an index: how BM25 and dense retrieval are weighed, and the reranker against both.

It lies beside the models trained on the index.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import building
from citerec.config import FuseConfig, FuseMethod, RecommendConfig, RerankConfig
from citerec.entries import read_record
from citerec.errors import BadInputError, ConfigError, ModelDamagedError
from citerec.folder import IndexFolder
from citerec.manifest import check_model, seal_model

FOLDER, FILE = "fusion", "fusion.json"


@dataclass(frozen=True, slots=True)
class RerankWeight:
    """How much a reranker counts against the first stages."""

    weight: float  # in [0, 1]
    reranker: str  # sha256 of its weights
    depth: int  # that it was tuned at, candidates per query
    query_tokens: int  # that it read meanwhile, special tokens within
    candidate_tokens: int  # likewise

    def __post_init__(self) -> None:
        RerankConfig(weight=self.weight)  # which checks it

    @property
    def how(self) -> tuple[int, int, int]:
        """At what depth, and with how many tokens of each side it was tuned."""
        return self.depth, self.query_tokens, self.candidate_tokens


def write_tuned(
    index: IndexFolder,
    config: FuseConfig | None,
    how: Mapping[str, Any],
    rerank: RerankWeight | None = None,
) -> Path:
    """Write how the stages of an index are to be put together, and how that was found; return the file.

    Args:
        index: For which it was found.
        config: How the first stages are fused; None for the default.
        how: What is worth knowing of the tuning.
        rerank: How much the reranker counts; None for the default.

    Raises:
        OutputError: If it cannot be written.
    """
    fuse = None if config is None else asdict(config)
    content = {"fuse": fuse, "for": _of(index), "how": dict(how)}
    if rerank:
        content["rerank_weight"] = asdict(rerank)
    target = index.models / FOLDER
    with building(target) as folder:
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / FILE).write_bytes(orjson.dumps(content, option=options))
        seal_model(folder)
    return target / FILE


def read_tuned(index: IndexFolder) -> FuseConfig | None:
    """Return how the stages of an index are to be fused; None if tuning with its papers and encoder kept nothing.

    Raises:
        BadInputError: If it cannot be made out.
    """
    with _reading(index):
        content = _content(index)
        if content and (settings := content["fuse"]):
            return replace(FuseConfig(**settings), method=FuseMethod(settings["method"]))
    return None


def read_rerank_weight(index: IndexFolder, reranker: str) -> RerankWeight | None:
    """Return how much a reranker counts against the first stages; None if it was not tuned so.

    Args:
        index: With whose papers and encoder it was tuned.
        reranker: The sha256 of the weights of the one in use.

    Raises:
        BadInputError: If it cannot be made out.
    """
    with _reading(index):
        found: Any = (_content(index) or {}).get("rerank_weight")
        if found and found["reranker"] == reranker:
            return RerankWeight(**found)
    return None


def fusion_in_force(index: IndexFolder, config: RecommendConfig | None = None) -> str:
    """Return how the first stages are fused, and where that comes from: `rrf, k 60 (default)`.

    Args:
        index: That may have been tuned.
        config: What its user wants; None for nothing in particular.

    Raises:
        BadInputError: If what was tuned cannot be made out.
    """
    tuned, config = read_tuned(index), config or RecommendConfig()
    fuse = config.fuse_with(tuned)
    if config.fuse is not None:
        origin = "option"
        if tuned and isinstance(config.fuse, FuseMethod) and fuse != FuseConfig():
            origin += ", with the tuned settings"
    else:
        origin = f"tuned on {_queries(index)}" if tuned else f"default{_rejected(index, 'fusion')}"
    return f"{shown_fusion(fuse)} ({origin})"


def weight_in_force(
    index: IndexFolder, weight: float, reranker: str, *, is_option: bool, has_ranker: bool
) -> str:
    """Return the weight of a reranker, and where it comes from: `1 (default)`.

    Args:
        index: That may have been tuned.
        weight: With which it is mixed in.
        reranker: The sha256 of its weights.
        is_option: Whether its user gave the weight.
        has_ranker: Whether it is mixed in after a learned ranker, for which no weight is tuned.

    Raises:
        BadInputError: If what was tuned cannot be made out.
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
    """Return a way to fuse in a few words."""
    if fuse.method is FuseMethod.RRF:
        return f"rrf, k {fuse.k0}"
    return f"weighted, bm25 {fuse.bm25_weight:g} + dense {fuse.dense_weight:g}"


def _settings(index: IndexFolder) -> dict[str, Any]:
    """Return what was written of the tuning itself; nothing if there was none."""
    with _reading(index):
        told: Any = (_content(index) or {}).get("how", {})
        return dict(told.get("settings", {}))
    return {}


def _queries(index: IndexFolder) -> str:
    told = _settings(index)
    return f"{told['queries']:,} {told['split']} queries" if "queries" in told else "dev queries"


def _rejected(index: IndexFolder, what: str) -> str:
    """Return that tuning found nothing better than a default, if that was tried."""
    check = (_settings(index).get("checks") or {}).get(what)
    if not check:
        return ""
    return f"; tuning on {_queries(index)} found nothing better, p {check['p']:.2g}"


def kept_rerank_weight(index: IndexFolder) -> RerankWeight | None:
    """Return the weight that stands there, of whatever reranker; None if there is none, or it cannot be made out."""
    with suppress(BadInputError), _reading(index):
        found: Any = (_content(index) or {}).get("rerank_weight")
        return RerankWeight(**found) if found else None
    return None


def _content(index: IndexFolder) -> dict[str, Any] | None:
    """Return what was written for these papers and that encoder."""
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
        raise BadInputError(file, f"cannot be made out; make it again: {advice}") from error


def _of(index: IndexFolder) -> dict[str, str | None]:
    """Return what a tuning is good for: these papers, that encoder."""
    recorded = index.manifest.settings.get("encoder")
    encoder = recorded["weights"] if recorded else None
    return {"corpus": index.manifest.corpus["sha256"], "encoder": encoder}
