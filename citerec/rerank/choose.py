"""Chooses the reranker of an index, in one place for all commands, and opens it.

`auto` is the index's own reranker, else the default one of the package where it counts: it improves a fused list, but
hardly one that a learning-to-rank model has ordered without it, and takes most of the time.
"""

from pathlib import Path
from typing import TypeVar

from citerec.config import RerankConfig
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.encode.source import DEFAULT_RERANKER, SHIPPED, is_shipped
from citerec.errors import ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.rerank.reranker import OpenReranker
from citerec.rules.held_out import (
    RERANKER,
    own_model,
    own_name,
    trained_on_other_data,
    trained_on_other_splits,
)
from citerec.tuned import read_rerank_weight
from citerec.types import Log

AUTO, NONE = "auto", "none"

Option = TypeVar("Option", Precision, Backend)


def choose_reranker(
    requested: str | RerankConfig,
    index: IndexFolder,
    *,
    default: bool,
    same_data: bool = False,
    warn: Log | None = None,
) -> RerankConfig | None:
    """Return the configuration of the reranker that a request means on an index, with its model; None for none.

    Args:
        requested: auto, none, a model, or a configuration whose model is one of these.
        index: The index.
        default: Whether `auto` may be the default reranker of the package. In `recommend` it is where no
            learning-to-rank model is used, or one that was trained with a reranker.
        same_data: Whether a model that may know queries of the index does not count: an evaluation and the training
            of a ranker need one that does not. That is an own model of other papers or splits, and the default one if
            it was trained on these papers by other splits.
        warn: Receives a warning for each model that is left out.

    Raises:
        ConfigError: If depth, weight or tokens are given and there is no reranker.
        IndexDamagedError: If the folder of the index's own reranker has no model in it.
    """
    config = RerankConfig(model=requested) if isinstance(requested, str) else requested
    if config.model == NONE:
        model = None
    elif config.model == AUTO:
        model = auto_reranker(index, default=default, same_data=same_data, warn=warn)
    else:
        model = config.model
    if model is not None:
        return config.replace(model=model)
    given = (
        config.weight is not None or config.depth or config.query_tokens or config.candidate_tokens
    )
    if given and not (index.models / RERANKER).exists():  # one that is left out has its own warning
        raise ConfigError(
            f"depth, weight and tokens of a reranker have no effect: {index.path} has none; name one: --reranker MODEL"
        )
    return None


def auto_reranker(
    index: IndexFolder, *, default: bool, same_data: bool = False, warn: Log | None = None
) -> str | None:
    """Return the model that `auto` means, None for none; see `choose_reranker`."""
    own = own_model(index, RERANKER, "config.json")
    if own and not (
        same_data and (trained_on_other_data(own, index) or trained_on_other_splits(own, index))
    ):
        return str(own.absolute())  # a relative path could also name a folder in the working folder
    if own and warn:
        name = own_name(index, RERANKER)
        warn(
            f"{name} is not used: it, its base or its teacher was trained on other papers or splits, which may include "
            f"test queries; train it again: citerec train-reranker --index {index.path} --force, or use it anyway: "
            f"--reranker {name}"
        )
    if not (default and is_shipped(DEFAULT_RERANKER)):
        return None
    if not (same_data and trained_on_other_splits(SHIPPED[DEFAULT_RERANKER], index)):
        return DEFAULT_RERANKER
    if warn:
        warn(
            f"{DEFAULT_RERANKER} is not used: it was trained on these papers by other splits, which may include test "
            f"queries; use it anyway: --reranker {DEFAULT_RERANKER}"
        )
    return None


def open_reranker(
    index: IndexFolder,
    config: RerankConfig,
    log: Log | None = None,
    *,
    depth: int = 0,
    few_queries: bool = False,
) -> OpenReranker:
    """Open the reranker of a configuration.

    Args:
        index: The index of the candidates; a relative folder is also searched in it.
        config: Which model, and how to run it; `auto` may be the default of the package.
        log: Receives what is fetched from the hub, before the download starts, and other messages for the user.
        depth: The depth of a model whose folder states none; 0 for what suits model and device.
        few_queries: Whether to prefer what opens faster.

    Raises:
        ModelError: If there is no such model, or it is not a cross-encoder.
        MissingExtraError: If a required package is not installed.
        ConfigError: If a setting is not possible.
    """
    # imported here, because runs without a reranker do not need it
    from citerec.rerank.cross_encoder import open_cross_encoder

    chosen = choose_reranker(config, index, default=True)
    if chosen is None:
        raise ModelError(
            f"{index.path} has no reranker; train one: citerec train-reranker --index {index.path}, or name a model: "
            "--reranker MODEL"
        )
    run_config = EncodeConfig(
        device=config.device,
        precision=_option(Precision, config.precision),
        backend=_option(Backend, config.backend),
        threads=config.threads,
        few_texts=few_queries,
    )
    model = open_cross_encoder(
        chosen.model,
        index,
        run_config,
        query_tokens=config.query_tokens,
        candidate_tokens=config.candidate_tokens,
        pairs=config.depth,
        log=log,
    )
    shown, spec = shown_reranker(model.name, index), model.spec
    is_own = model.source.resolve().is_relative_to(index.models.resolve())
    if log and is_own and trained_on_other_data(model.source, index):
        log(
            f"{shown} was not trained on these papers and splits; train it anew: "
            f"citerec train-reranker --index {index.path} --force"
        )
    depth = config.depth or spec.depth or depth or model.default_depth
    weight = config.weight
    if weight is None:
        tuned = read_rerank_weight(index, model.fingerprint)
        settings = depth, spec.query_tokens, spec.candidate_tokens
        if log and tuned and tuned.settings != settings:
            log(
                f"the reranker's weight {tuned.weight:g} was tuned with {tuned.settings} (depth, tokens of query and "
                f"candidate), not with {settings}; run citerec tune to find the weight for that"
            )
        weight = tuned.weight if tuned else spec.weight
    return OpenReranker(
        index=index,
        name=shown,
        scorer=model,
        depth=depth,
        weight=weight,
        default_weight=spec.weight,
        calibrated=spec.is_calibrated,
        settings={
            "weights": model.fingerprint,
            "query_tokens": spec.query_tokens,
            "candidate_tokens": spec.candidate_tokens,
            "backend": model.backend,
            "precision": model.precision,
            "device": model.device,
        },
    )


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
