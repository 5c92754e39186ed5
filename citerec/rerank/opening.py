"""Opens the rerankers of an index: how many candidates each scores, and the weight of the last."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from citerec.config import CrossEncoderConfig, RerankConfig
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.rerank.auto import AUTO, auto_reranker
from citerec.rerank.cascade import NAME, Cascade, CascadeReranker
from citerec.rules.held_out import trained_on_other_data
from citerec.tuned import RerankWeight, read_rerank_weight
from citerec.types import Log

if TYPE_CHECKING:
    from citerec.rerank.cross_encoder import CrossEncoder

LEAST = 10  # candidates of a later stage if no depth is given

Option = TypeVar("Option", Precision, Backend)


def open_cascade(
    index: IndexFolder,
    config: RerankConfig,
    log: Log | None = None,
    *,
    depth: int = 0,
    few_queries: bool = False,
) -> Cascade:
    """Open the rerankers of a configuration.

    Args:
        index: The index of the candidates; a relative folder is also searched in it.
        config: Which models, and how to run them.
        log: Receives what is fetched from the hub, before the download starts, and other messages for the user.
        depth: The depth of rerankers whose folder states none; 0 for what suits model and device.
        few_queries: Whether to prefer what opens faster; NumPy then scores pairs that are few per query.

    Raises:
        ModelError: If a model does not exist, or is not a cross-encoder.
        MissingExtraError: If a required package is not installed.
        ConfigError: If a setting is not possible: no such device, depths that do not fall, an early stop at weight 1.
    """
    run_config = EncodeConfig(
        device=config.device,
        precision=_option(Precision, config.precision),
        backend=_option(Backend, config.backend),
        threads=config.threads,
        few_texts=few_queries,
    )
    rerankers: list[CascadeReranker] = []
    for number, reranker_config in enumerate(config.cross_encoders, start=1):
        above = rerankers[-1].depth if rerankers else None
        is_last = number == len(config.cross_encoders)
        name, weight = (NAME, config.weight) if is_last else (f"{NAME}-{number}", None)
        reranker = _open(index, reranker_config, run_config, weight, depth, above, log)
        rerankers.append(replace(reranker, name=name))
    if config.early_stop and all(reranker.weight == 1 for reranker in rerankers):
        raise ConfigError(_cannot_stop(index, config, rerankers[-1]))
    return Cascade(index, tuple(rerankers), config.early_stop)


def _cannot_stop(index: IndexFolder, config: RerankConfig, last: CascadeReranker) -> str:
    """Return the message for an early stop that could not skip any candidate."""
    start = "stopping early needs a weight below 1, and"
    if config.weight == 1:
        return f"{start} --rerank-weight is 1; use a lower one, such as --rerank-weight 0.5"
    if read_rerank_weight(index, str(last.settings["weights"])):
        return (
            f"{start} tuning found that 1 is the best; omit --early-stop, or accept a worse list for speed: "
            "--rerank-weight 0.5"
        )
    return (
        f"{start} none was tuned; give one, such as --rerank-weight 0.5, or find the best: "
        f"citerec tune --index {index.path}"
    )


def _open(
    index: IndexFolder,
    reranker_config: CrossEncoderConfig,
    run_config: EncodeConfig,
    weight: float | None,
    default: int,
    above: int | None,
    log: Log | None,
) -> CascadeReranker:
    model = _open_model(index, reranker_config, run_config, log)
    shown = shown_reranker(model.name, index)
    if (
        log
        and _is_inside(model.source, index.models)
        and trained_on_other_data(model.source, index)
    ):
        log(
            f"{shown} was not trained on these papers and splits; train it anew: "
            f"citerec train-reranker --index {index.path} --force"
        )
    usual = model.spec.depth or default or model.default_depth
    depth = reranker_config.depth or _default_depth(usual, above)
    if above is not None and depth >= above:
        raise ConfigError(
            f"the depths of the rerankers must fall, cheapest first, got {above:,}, {depth:,}"
        )
    if weight is None:
        tuned = read_rerank_weight(index, model.fingerprint)
        settings = depth, model.spec.query_tokens, model.spec.candidate_tokens
        weight = model.spec.weight if tuned is None else _as_tuned(tuned, settings, log)
    return CascadeReranker(
        name=NAME,
        shown=shown,
        scorer=model,
        depth=depth,
        weight=weight,
        default_weight=model.spec.weight,
        calibrated=model.spec.is_calibrated,
        settings={
            "weights": model.fingerprint,
            "query_tokens": model.spec.query_tokens,
            "candidate_tokens": model.spec.candidate_tokens,
            "backend": model.backend,
            "precision": model.precision,
            "device": model.device,
        },
    )


def _open_model(
    index: IndexFolder,
    reranker_config: CrossEncoderConfig,
    run_config: EncodeConfig,
    log: Log | None,
) -> "CrossEncoder":
    name = reranker_config.model
    if name == AUTO:
        found = auto_reranker(index)
        if found is None:
            raise ModelError(
                f"{index.path} has no reranker; train one: citerec train-reranker --index {index.path}, or name a "
                "model: --reranker MODEL"
            )
        name = found
    # imported here, because runs without a reranker do not need it
    from citerec.rerank.cross_encoder import open_reranker

    return open_reranker(
        name,
        index,
        run_config,
        query_tokens=reranker_config.query_tokens,
        candidate_tokens=reranker_config.candidate_tokens,
        pairs=reranker_config.depth,
        log=log,
    )


def _as_tuned(tuned: RerankWeight, settings: tuple[int, int, int], log: Log | None) -> float:
    """Return the tuned weight; log if it was tuned for another depth or token split."""
    if log and tuned.settings != settings:
        log(
            f"the reranker's weight {tuned.weight:g} was tuned at {_described(tuned.settings)}, not at "
            f"{_described(settings)}; run citerec tune to find the weight for that"
        )
    return tuned.weight


def _described(settings: Sequence[int]) -> str:
    depth, query, candidate = settings
    return f"depth {depth:,} with {query}+{candidate} tokens"


def _default_depth(depth: int, above: int | None) -> int:
    """Return a default depth that is well below that of the stage before, but not less than `LEAST`."""
    if above is None or depth < above:
        return depth
    return max(1, min(LEAST, above - 1), above // 10)


def _is_inside(folder: Path, base: Path) -> bool:
    return folder.resolve().is_relative_to(base.resolve())


def shown_reranker(model: str, index: IndexFolder) -> str:
    """Return the name of a reranker for users: one inside the index by its path there."""
    folder, base = Path(model).absolute(), index.path.absolute()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else model


def _option(kind: type[Option], value: str) -> Option:
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(member.value for member in kind)
        raise ConfigError(
            f"{kind.__name__.lower()} must be one of {choices}, got {value!r}"
        ) from None
