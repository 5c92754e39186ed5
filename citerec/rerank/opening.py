"""Opens the rerankers of an index: which are meant, how deep each reads, and how much it counts."""

from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from citerec.config import RerankConfig, RerankStage
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.rerank.cascade import NAME, Cascade, Stage
from citerec.rerank.cross_encoder import CrossEncoder, open_reranker
from citerec.tuned import read_rerank_weight
from citerec.types import Note

OWN = "reranker"  # the folder of an index's own, under models/

Option = TypeVar("Option", Precision, Backend)


def wanted(
    reranker: Literal["auto", "none"] | RerankConfig, index: IndexFolder
) -> RerankConfig | None:
    """Return what is to rerank on an index; None for nothing."""
    if isinstance(reranker, RerankConfig):
        return reranker
    return RerankConfig() if reranker == "auto" and own_reranker(index) else None


def own_reranker(index: IndexFolder) -> Path | None:
    """Return the folder of the reranker that was trained on an index; None if there is none."""
    folder = index.models / OWN
    return folder if (folder / "config.json").is_file() else None


def open_cascade(index: IndexFolder, config: RerankConfig, tell: Note | None = None) -> Cascade:
    """Open the rerankers that a configuration names.

    Args:
        index: Whose papers they read; a relative folder may lie in it, too.
        config: Which, and how.
        tell: Is told what is fetched from the hub, before.

    Raises:
        ModelError: If one is not there, or is no cross-encoder.
        MissingExtraError: If what is to run it is not installed.
        ConfigError: If a setting cannot be: no such device, depths that do not fall, a stop that proves nothing.
    """
    how = EncodeConfig(
        device=config.device,
        precision=_option(Precision, config.precision),
        backend=_option(Backend, config.backend),
        threads=config.threads,
    )
    stages: list[Stage] = []
    for number, asked in enumerate(config.stages, start=1):
        above = stages[-1].depth if stages else None
        stage = _open(index, asked, how, config.weight, above, tell)
        is_last = number == len(config.stages)
        stages.append(replace(stage, name=NAME if is_last else f"{NAME}-{number}"))
    if config.early_stop and any(stage.weight == 1 for stage in stages):
        raise ConfigError(
            "stopping early needs a weight below 1, and none was tuned; give one, such as --rerank-weight 0.5, or "
            f"find the best: citerec tune --index {index.path}"
        )
    return Cascade(index, tuple(stages), config.early_stop)


def _open(
    index: IndexFolder,
    asked: RerankStage,
    how: EncodeConfig,
    weight: float | None,
    above: int | None,
    tell: Note | None,
) -> Stage:
    model = _open_model(index, asked, how, tell)
    depth = asked.depth or _suiting(model.default_depth, above)
    if above is not None and depth >= above:
        raise ConfigError(
            f"the depths of the rerankers must fall, cheapest first, got {above:,}, {depth:,}"
        )
    if weight is None:
        weight = read_rerank_weight(index, model.fingerprint)
    return Stage(
        name=NAME,
        shown=_shown(asked.model, index),
        scorer=model,
        depth=depth,
        weight=1.0 if weight is None else weight,
        how={
            "weights": model.fingerprint,
            "query_tokens": model.spec.query_tokens,
            "candidate_tokens": model.spec.candidate_tokens,
            "backend": model.backend,
            "precision": model.precision,
            "device": model.place,
        },
    )


def _open_model(
    index: IndexFolder, asked: RerankStage, how: EncodeConfig, tell: Note | None
) -> CrossEncoder:
    name = asked.model
    if name == "auto":
        folder = own_reranker(index)
        if folder is None:
            raise ModelError(
                f"{index.path} has no reranker; train one: citerec train-reranker --index {index.path}, or name a "
                "model: --reranker MODEL"
            )
        name = str(folder.resolve())  # what lies under the folder one stands in does not count
    return open_reranker(
        name,
        index,
        how,
        query_tokens=asked.query_tokens,
        candidate_tokens=asked.candidate_tokens,
        tell=tell,
    )


def _suiting(depth: int, above: int | None) -> int:
    """Return a default depth that is well below that of the stage before."""
    return depth if above is None or depth < above else max(1, above // 10)


def _shown(model: str, index: IndexFolder) -> str:
    """Name a model as people know it: one inside the index by its place there."""
    if model == "auto":
        return f"{index.models.name}/{OWN}"
    folder, base = Path(model).absolute(), index.path.absolute()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else model


def _option(kind: type[Option], value: str) -> Option:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise ConfigError(
            f"{kind.__name__.lower()} must be one of {known}, got {value!r}"
        ) from None
