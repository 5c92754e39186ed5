"""Holds open shards, each in an actor of a cluster or all in this process, and calls a method of all of them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from citerec.distributed.cluster import Cluster
from citerec.errors import ClusterError

RESTARTS = 3  # of the actor of a shard

Ask = Callable[..., list[Any]]  # the name of a method of a shard, and its arguments


@contextmanager
def asking(opens: Sequence[Callable[[], Any]], cluster: Cluster | None) -> Generator[Ask]:
    """Open shards; yield what calls a method of all of them.

    Args:
        opens: Each opens a shard, where it is held.
        cluster: Where the actors run; None to open all shards in this process.
    """
    if cluster is None:
        shards = [open_shard() for open_shard in opens]

        def ask_here(method: str, *arguments: Any) -> list[Any]:
            return [getattr(shard, method)(*arguments) for shard in shards]

        yield ask_here
        return
    ray = cluster.ray
    holder = ray.remote(num_cpus=0, max_restarts=RESTARTS, max_task_retries=RESTARTS)(_Holder)
    actors = [holder.options(scheduling_strategy="SPREAD").remote(one) for one in opens]

    def ask(method: str, *arguments: Any) -> list[Any]:
        try:
            return ray.get([actor.call.remote(method, *arguments) for actor in actors])
        except ray.exceptions.RayError as error:
            reason = str(error).strip().split("\n")[0]
            raise ClusterError(f"a shard was lost while it was searched: {reason}") from error

    try:
        yield ask
    finally:
        for actor in actors:
            ray.kill(actor)


class _Holder:
    """An actor with an open shard."""

    def __init__(self, open_shard: Callable[[], Any]) -> None:
        self._shard = open_shard()

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._shard, method)(*arguments)
