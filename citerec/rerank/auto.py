"""What `auto` means is decided here alone: the index's own reranker, else the default one of the package, else none.

The default one improves a fused list, but hardly one that a learning-to-rank model has ordered without it, and takes
most of the time: callers say whether it counts.
"""

from pathlib import Path
from typing import Literal

from citerec.config import RerankConfig
from citerec.encode.source import DEFAULT_RERANKER, SHIPPED, is_shipped
from citerec.folder import IndexFolder
from citerec.rules.held_out import (
    RERANKER,
    own_model,
    own_name,
    trained_on_other_data,
    trained_on_other_splits,
)
from citerec.types import Log

AUTO = "auto"


def requested_reranking(
    reranker: Literal["auto", "none"] | RerankConfig, index: IndexFolder, *, default: bool
) -> RerankConfig | None:
    """Return the configuration of reranking on an index; None for no reranking.

    Args:
        reranker: The request.
        index: The index.
        default: As for `auto_reranker`.
    """
    if isinstance(reranker, RerankConfig):
        return reranker
    used = reranker == AUTO and auto_reranker(index, default=default)
    return RerankConfig() if used else None


def resolved(
    config: RerankConfig,
    index: IndexFolder,
    *,
    default: bool = True,
    same_data: bool = False,
    warn: Log | None = None,
) -> RerankConfig | None:
    """Return a configuration with the model that `auto` means on an index; None if it means none.

    Args:
        config: The configuration; returned as it is if it names all of its models.
        index: The index.
        default: As for `auto_reranker`.
        same_data: As for `auto_reranker`.
        warn: As for `auto_reranker`.

    Raises:
        IndexDamagedError: As `own_reranker` raises.
    """
    if all(one.model != AUTO for one in config.cross_encoders):
        return config
    model = auto_reranker(index, default=default, same_data=same_data, warn=warn)
    if model is None:
        return None
    named = (
        one.replace(model=model) if one.model == AUTO else one for one in config.cross_encoders
    )
    return config.replace(cross_encoders=(*named,))


def own_reranker(index: IndexFolder) -> Path | None:
    """Return the folder of the reranker that was trained on an index; None if there is none.

    Raises:
        IndexDamagedError: If the folder exists, but has no model in it.
    """
    return own_model(index, RERANKER, "config.json")


def auto_reranker(
    index: IndexFolder,
    *,
    default: bool = True,
    same_data: bool = False,
    warn: Log | None = None,
) -> str | None:
    """Return the reranker that `auto` means: the index's own, else the default one of the package; None for none.

    Args:
        index: The index.
        default: Whether the default one counts.
        same_data: Whether a model that may know queries of the index counts as none: an evaluation and the training of
            a ranker need one that does not. That is an own model of other papers or splits, and any model that was
            trained on these papers by other splits, or whose base model or teacher was.
        warn: Receives a warning for each model that is left out.

    Raises:
        IndexDamagedError: As `own_reranker` raises.
    """
    own = own_reranker(index)
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
