"""Opens the rerankers of an index: which are meant, how deep each reads, and how much it counts."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import orjson

from citerec.config import RerankConfig, RerankStage
from citerec.corpus.splits import splits_sha256
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.entries import is_regular, read_record
from citerec.errors import ConfigError, IndexDamagedError, ModelError
from citerec.folder import IndexFolder
from citerec.rerank.cascade import NAME, Cascade, Stage
from citerec.tuned import RerankWeight, read_rerank_weight
from citerec.types import Log

if TYPE_CHECKING:
    from citerec.rerank.cross_encoder import CrossEncoder

OWN = "reranker"  # the folder of an index's own, under models/
TRAINING = "training.json"  # in which our trainers tell what a model was trained on
LEAST = 10  # candidates that a later stage reads unless told otherwise

Option = TypeVar("Option", Precision, Backend)


def wanted(
    reranker: Literal["auto", "none"] | RerankConfig, index: IndexFolder
) -> RerankConfig | None:
    """Return what is to rerank on an index; None for nothing."""
    if isinstance(reranker, RerankConfig):
        return reranker
    return RerankConfig() if reranker == "auto" and own_reranker(index) else None


def own_reranker(index: IndexFolder) -> Path | None:
    """Return the folder of the reranker that was trained on an index; None if there is none.

    Raises:
        IndexDamagedError: If there is a folder for it, and no model in it.
    """
    folder = index.models / OWN
    if os.path.lexists(folder) and not is_regular(folder / "config.json"):
        fault = f"{index.models.name}/{OWN}/config.json is missing"
        raise IndexDamagedError(index.path, [fault])
    return folder if folder.is_dir() else None


def trained_on_other_data(model: Path, index: IndexFolder) -> bool:
    """Whether a model tells that it was trained on other papers or other splits than an index has.

    An index that is built anew takes its models along: what they learned from may be its test queries now.
    """
    try:
        told: Any = orjson.loads(read_record(model / TRAINING))
        trained_on = told["corpus_sha256"], told["splits_sha256"]
        here = index.manifest.corpus["sha256"], splits_sha256(index.splits)
    except (OSError, ValueError, KeyError, TypeError):
        return False  # nothing is told
    return trained_on != here


def open_cascade(
    index: IndexFolder, config: RerankConfig, log: Log | None = None, *, depth: int = 0
) -> Cascade:
    """Open the rerankers that a configuration names.

    Args:
        index: Whose papers they read; a relative folder may lie in it, too.
        config: Which, and how.
        log: Receives what is fetched from the hub, before, and what else its user should know.
        depth: Of stages that have none; 0 for what suits model and device.

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
        is_last = number == len(config.stages)
        name, weight = (NAME, config.weight) if is_last else (f"{NAME}-{number}", None)
        stage = _open(index, asked, how, weight, depth, above, log)
        stages.append(replace(stage, name=name))
    if config.early_stop and all(stage.weight == 1 for stage in stages):
        raise ConfigError(_cannot_stop(index, config, stages[-1]))
    return Cascade(index, tuple(stages), config.early_stop)


def _cannot_stop(index: IndexFolder, config: RerankConfig, last: Stage) -> str:
    """Say why nothing can be proved before all is read."""
    start = "stopping early needs a weight below 1, and"
    if config.weight == 1:
        return f"{start} --rerank-weight is 1; give another, such as --rerank-weight 0.5"
    if read_rerank_weight(index, str(last.how["weights"])):
        return (
            f"{start} tuning found 1 to be the best; leave --early-stop out, or trade quality for speed, such as by "
            "--rerank-weight 0.5"
        )
    return (
        f"{start} none was tuned; give one, such as --rerank-weight 0.5, or find the best: "
        f"citerec tune --index {index.path}"
    )


def _open(
    index: IndexFolder,
    asked: RerankStage,
    how: EncodeConfig,
    weight: float | None,
    default: int,
    above: int | None,
    log: Log | None,
) -> Stage:
    model = _open_model(index, asked, how, log)
    shown = _shown(asked.model, index)
    if log and _lies_in(model.source, index.models) and trained_on_other_data(model.source, index):
        log(
            f"{shown} was not trained on these papers and splits; train it anew: "
            f"citerec train-reranker --index {index.path} --force"
        )
    depth = asked.depth or _suiting(default or model.default_depth, above)
    if above is not None and depth >= above:
        raise ConfigError(
            f"the depths of the rerankers must fall, cheapest first, got {above:,}, {depth:,}"
        )
    if weight is None:
        tuned = read_rerank_weight(index, model.fingerprint)
        how_read = depth, model.spec.query_tokens, model.spec.candidate_tokens
        weight = _as_tuned(tuned, how_read, log)
    return Stage(
        name=NAME,
        shown=shown,
        scorer=model,
        depth=depth,
        weight=weight,
        calibrated=model.spec.is_calibrated,
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
    index: IndexFolder, asked: RerankStage, how: EncodeConfig, log: Log | None
) -> "CrossEncoder":
    name = asked.model
    if name == "auto":
        folder = own_reranker(index)
        if folder is None:
            raise ModelError(
                f"{index.path} has no reranker; train one: citerec train-reranker --index {index.path}, or name a "
                "model: --reranker MODEL"
            )
        name = str(folder.resolve())  # what lies under the folder one stands in does not count
    from citerec.rerank.cross_encoder import (
        open_reranker,
    )  # what does not rerank starts sooner without

    return open_reranker(
        name,
        index,
        how,
        query_tokens=asked.query_tokens,
        candidate_tokens=asked.candidate_tokens,
        log=log,
    )


def _as_tuned(tuned: RerankWeight | None, how_read: tuple[int, int, int], log: Log | None) -> float:
    """Return the weight that was tuned, else 1; say so if it was tuned for another depth or token split."""
    if tuned is None:
        return 1.0
    if log and tuned.how != how_read:
        log(
            f"the reranker's weight {tuned.weight:g} was tuned at {_said(tuned.how)}, not at {_said(how_read)}; "
            "citerec tune finds the one for that"
        )
    return tuned.weight


def _said(how_read: Sequence[int]) -> str:
    depth, query, candidate = how_read
    return f"depth {depth:,} with {query}+{candidate} tokens"


def _suiting(depth: int, above: int | None) -> int:
    """Return a default depth that is well below that of the stage before, but no less than is of use."""
    if above is None or depth < above:
        return depth
    return max(1, min(LEAST, above - 1), above // 10)


def _lies_in(folder: Path, base: Path) -> bool:
    return folder.resolve().is_relative_to(base.resolve())


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
