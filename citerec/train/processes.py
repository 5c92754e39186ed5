"""Several processes that train one model, one per device: what the first process does for all of them."""

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def from_first(make: Callable[[], Value]) -> Value:
    """Call `make` in the first process and return its result in every process."""
    group = _process_group()
    if group is None:
        return make()
    values: list[Any] = [make() if group.get_rank() == 0 else None]
    group.broadcast_object_list(values, src=0)
    return values[0]


def is_first() -> bool:
    """Whether this is the first process, which writes and logs for all."""
    group = _process_group()
    return group is None or group.get_rank() == 0


def wait_for_all() -> None:
    """Wait until every process reaches this point."""
    if group := _process_group():
        group.barrier()


def _process_group() -> Any:
    """Return torch's module for distributed processes; None in a single process."""
    from torch import distributed

    initialized: bool = distributed.is_available() and distributed.is_initialized()
    return distributed if initialized else None
