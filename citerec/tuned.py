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
from citerec.config import FuseConfig, FuseMethod, RerankConfig
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
    config: FuseConfig,
    how: Mapping[str, Any],
    rerank: RerankWeight | None = None,
) -> Path:
    """Write how the stages of an index are to be put together, and how that was found; return the file.

    Args:
        index: For which it was found.
        config: How the first stages are fused.
        how: What is worth knowing of the tuning.
        rerank: How much the reranker counts, if there is one.

    Raises:
        OutputError: If it cannot be written.
    """
    content = {"fuse": asdict(config), "for": _of(index), "how": dict(how)}
    if rerank:
        content["rerank_weight"] = asdict(rerank)
    target = index.models / FOLDER
    with building(target) as folder:
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        (folder / FILE).write_bytes(orjson.dumps(content, option=options))
        seal_model(folder)
    return target / FILE


def read_tuned(index: IndexFolder) -> FuseConfig | None:
    """Return how the stages of an index are to be fused; None if it was not tuned with its papers and encoder.

    Raises:
        BadInputError: If it cannot be made out.
    """
    with _reading(index):
        if content := _content(index):
            settings: Any = content["fuse"]
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
