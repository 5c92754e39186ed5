"""Connects to a Ray cluster, or starts one on this machine, and runs items in its actors.

The only module that imports ray. Plain actors are used, not Ray Data: an item is a whole shard or block, results are
written by the process of the command, and this small loop decides itself when an item is given to another actor.
"""

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, Generic, Self, TypeVar

from citerec.errors import CiterecError, ClusterError, extra
from citerec.types import Log, no_log

LOCAL = "local"
CONNECT_SECONDS = 10
MAX_PORT = 2**16 - 1
STORE_BYTES = 2**28  # shared memory of a local cluster; a shard of vectors takes some megabytes
SETTINGS = {  # environment variables that ray reads when it is imported or started
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage data is sent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # actors without a GPU see those of their node
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # no stacks of C++ at SIGTERM
}
AUTH_MODE = "RAY_AUTH_MODE"  # for an address, Ray looks for a token only if this is `token`
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster that this process is connected to."""

    ray: Any  # the package
    address: str  # as the user named it

    @property
    def nodes(self) -> int:
        """The number of machines that are alive."""
        return sum(bool(node["Alive"]) for node in self.ray.nodes())

    def slots(self, cpus: float, gpus: float) -> int:
        """Return how many actors of a size fit into the cluster, if it has no other work."""
        total: dict[str, float] = self.ray.cluster_resources()
        fitting = [total.get("CPU", 0) // cpus] if cpus else []
        fitting += [total.get("GPU", 0) // gpus] if gpus else []
        return int(min(fitting, default=1))


@contextmanager
def connected(address: str) -> Generator[Cluster]:
    """Connect to a cluster until the block ends; a local one is started before and ended after it.

    A program that is connected already keeps its connection.

    Args:
        address: `local` to start a cluster on this machine, of all of its processors; else the address of one, such as
            `10.0.0.1:6379` or `ray://10.0.0.1:10001`.

    Raises:
        MissingExtraError: If Ray is not installed.
        ClusterError: If there is no cluster at the address, or it does not start.
    """
    ray = _library()
    if ray.is_initialized():
        yield Cluster(ray, address)
        return
    _connect(ray, address)
    try:
        yield Cluster(ray, address)
    finally:
        ray.shutdown()


def _library() -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    with extra("ray"):
        # by name, so that type checkers do not need the package
        ray = import_module("ray")
    _keep_off_stdout()
    return ray


@cache
def _keep_off_stdout() -> None:
    """Log what Ray would print to stdout of lost workers, among the results; it has no setting for that."""
    worker: Any = import_module("ray._private.worker")
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = _log_lines


def _log_lines(data: Mapping[str, Any], *_: Any, **__: Any) -> None:
    for line in data["lines"]:
        LOG.info("Ray: %s", line)


def check_reachable(address: str) -> None:
    """Refuse an address with host and port where nothing listens: ray itself would try for minutes.

    Raises:
        ClusterError: If nothing listens there.
    """
    scheme, _, rest = address.rpartition("://")
    host, separator, port = rest.rpartition(":")
    if not address or scheme not in ("", "ray") or (port.isdigit() and int(port) > MAX_PORT):
        raise ClusterError(
            f"{address!r} is no address of a Ray cluster; expected local, auto, or one such as 10.0.0.1:6379"
        )
    if not (separator and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, getattr(error, "strerror", None) or str(error)) from error


def _no_cluster(address: str, reason: str) -> ClusterError:
    return ClusterError(
        f"no Ray cluster at {address}: {reason}; start one: ray start --head, or work on this machine: --ray local"
    )


def _connect(ray: Any, address: str) -> None:
    check_reachable(address)
    common = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == LOCAL:
            cpus = os.cpu_count() or 1
            ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                **common,
            )
        else:
            ray.init(address=address, **common)
    except Exception as error:  # ConnectionError, RuntimeError, ValueError or Exception
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if address != LOCAL and not os.environ.get(AUTH_MODE):
            reason += f" (if it has a token, as in ~/.ray/auth_token, set {AUTH_MODE}=token)"
        raise _no_cluster(address, reason) from error


ATTEMPTS = 4  # actors that may be lost while they work on one item
LOOK_SECONDS = 5  # how often the pool looks for new nodes
WAIT_SECONDS = 60  # after which a message says that no actor can start

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Item], Result]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of citerec in an actor: its message, as the error itself may not survive the way back."""

    message: str


class Worker:
    """What runs in an actor."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = make
        self._work: Callable[[Any], Any] | None = None

    def ready(self) -> str:
        """Return the version of citerec here."""
        return version("citerec")

    def run(self, item: Any) -> Any:
        """Return the result of an item, or a `Failure`; what `make` opens is opened at the first one."""
        try:
            self._work = self._work or self._make()
            return self._work(item)
        except CiterecError as error:
            return Failure(str(error))


@dataclass(slots=True)
class _Task(Generic[Item]):
    number: int
    item: Item
    attempts: int = 0


class Pool(Generic[Item, Result]):
    """Runs items on as many actors as there are items and the cluster has room for."""

    def __init__(
        self,
        cluster: Cluster,
        make: Callable[[], Work[Item, Result]],
        *,
        cpus: int = 1,
        gpus: int = 0,
        log: Log | None = None,
    ) -> None:
        """Prepare; actors start with the first item, and end with the block of the pool.

        Args:
            cluster: Where they run.
            make: Called once in each actor; returns what works on items.
            cpus: Processors of an actor, at least 1.
            gpus: GPUs of an actor.
            log: Receives a message for each lost actor.
        """
        self._cluster, self._make, self._log = cluster, make, log or no_log
        self._ray = cluster.ray
        self._actor_class = self._ray.remote(num_cpus=cpus, num_gpus=gpus)(Worker)
        self._size = (cpus, gpus)
        self._lost_at_start = 0  # actors, since the last one that started
        self._waited = 0  # seconds in which no actor could start
        self._idle: list[Any] = []
        self._starting: dict[Any, Any] = {}  # by the reference to its first answer
        self._running: dict[Any, tuple[Any, _Task[Item]]] = {}  # by the reference to the result

    def results(self, items: Iterable[Item]) -> Iterator[tuple[int, Result]]:
        """Yield the number of each item and its result, as they come; few items are in memory at once.

        Raises:
            ClusterError: If the work fails, or `ATTEMPTS` actors were lost with one item.
        """
        waiting, again = enumerate(items), deque[_Task[Item]]()
        following = _next(waiting)
        try:
            while following or again or self._running:
                left = len(again) + bool(following) * self._slots()
                self._start(len(self._running) + left)
                while self._idle and (again or following):
                    if again:
                        task = again.popleft()
                    else:
                        assert following
                        task, following = following, _next(waiting)
                    self._give(self._idle.pop(), task)
                for reference in self._wait():
                    if reference in self._starting:
                        self._started(reference)
                        continue
                    actor, task = self._running.pop(reference)
                    try:
                        result = self._result(reference)
                    except _LostError as error:
                        again.append(self._retried(task, str(error)))
                        continue
                    self._idle.append(actor)
                    yield task.number, result
        finally:
            self._drop_running()

    def in_order(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results of `results` in the order of the items; results that are ahead are held in memory."""
        ahead: dict[int, Result] = {}
        number = 0
        for found, result in self.results(items):
            ahead[found] = result
            while number in ahead:
                yield ahead.pop(number)
                number += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all actors."""
        self._drop_running()
        for actor in (*self._idle, *self._starting.values()):
            self._ray.kill(actor)
        self._idle, self._starting = [], {}

    def _drop_running(self) -> None:
        """End the actors whose results are not needed any more."""
        for actor, _ in self._running.values():
            self._ray.kill(actor)
        self._running = {}

    def _slots(self) -> int:
        return max(1, self._cluster.slots(*self._size))

    def _start(self, wanted: int) -> None:
        """Start actors until there are as many as items, or as the cluster has room for."""
        there = len(self._idle) + len(self._starting) + len(self._running)
        for _ in range(min(wanted, self._slots()) - there):
            actor = self._actor_class.remote(self._make)
            self._starting[actor.ready.remote()] = actor

    def _started(self, reference: Any) -> None:
        """Use an actor that has started.

        Raises:
            ClusterError: If it runs another version of citerec.
        """
        actor = self._starting.pop(reference)
        try:
            found = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise ClusterError(f"a worker does not start: {_reason(error)}") from error
        except self._ray.exceptions.RayError as error:
            self._lost_at_start += 1
            if self._lost_at_start >= ATTEMPTS:
                raise ClusterError(
                    f"{ATTEMPTS} workers were lost at their start, the last one: {_reason(error)}; is citerec "
                    "installed on all nodes?"
                ) from error
            self._log(f"a worker was lost at its start ({_reason(error)}); another one is started")
            return
        self._lost_at_start = 0
        if found != version("citerec"):
            raise ClusterError(
                f"a worker runs citerec {found}, this command runs {version('citerec')}; "
                "install one version on all nodes"
            )
        self._idle.append(actor)

    def _give(self, actor: Any, task: _Task[Item]) -> None:
        task.attempts += 1
        self._running[actor.run.remote(task.item)] = actor, task

    def _wait(self) -> list[Any]:
        """Return the references of what is done; an empty list after some seconds, to look for new nodes."""
        pending = [*self._running, *self._starting]
        if not pending:  # the last one was lost at its start
            return []
        done, _ = self._ray.wait(pending, num_returns=1, timeout=LOOK_SECONDS)
        is_waiting = not done and not self._running
        self._waited = self._waited + LOOK_SECONDS if is_waiting else 0
        if self._waited == WAIT_SECONDS:
            cpus, gpus = self._size
            self._log(
                f"no worker could start for {WAIT_SECONDS} seconds; each needs {cpus} free processors and {gpus} GPUs "
                "on one node: wait until others end their work, or give workers fewer: --threads"
            )
        return done

    def _result(self, reference: Any) -> Result:
        try:
            result = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise ClusterError(f"a worker failed: {_reason(error)}") from error
        except self._ray.exceptions.RayError as error:
            raise _LostError(_reason(error)) from error
        if isinstance(result, Failure):
            raise ClusterError(f"a worker failed: {result.message}")
        return result

    def _retried(self, task: _Task[Item], reason: str) -> _Task[Item]:
        if task.attempts >= ATTEMPTS:
            raise ClusterError(
                f"{task.attempts} workers were lost with the same item, the last one: {reason}; "
                "see the logs of Ray, and give each worker more memory or run fewer of them: --threads"
            )
        self._log(f"a worker was lost ({reason}); its work is given to another one")
        return task


class _LostError(Exception):
    """An actor was lost, with its node or alone, or its result was."""


def _next(waiting: Iterator[tuple[int, Item]]) -> _Task[Item] | None:
    return next((_Task(number, item) for number, item in waiting), None)


def _reason(error: Exception) -> str:
    """Return what an error of Ray says, in one line."""
    cause = getattr(error, "cause", None)
    text = f"{type(cause).__name__}: {cause}" if cause else str(error)
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    return lines[0] if lines else type(error).__name__
