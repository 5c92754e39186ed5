"""Several processes that train one model, one for each device: what the first does for all of them."""

from collections.abc import Callable
from typing import Any, TypeVar

Made = TypeVar("Made")


def from_first(make: Callable[[], Made]) -> Made:
    """Make something in the first process, and give it to all of them."""
    together = _together()
    if together is None:
        return make()
    made: list[Any] = [make() if together.get_rank() == 0 else None]
    together.broadcast_object_list(made, src=0)
    return made[0]


def is_first() -> bool:
    """Whether this is the first process, which speaks for all."""
    together = _together()
    return together is None or together.get_rank() == 0


def wait_for_all() -> None:
    """Wait until every process is as far."""
    if together := _together():
        together.barrier()


def _together() -> Any:
    """Return torch's module of processes that work together; None where this one works alone."""
    from torch import distributed

    begun: bool = distributed.is_available() and distributed.is_initialized()
    return distributed if begun else None
