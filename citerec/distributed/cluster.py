"""Connects to a Ray cluster, or starts one on this machine; the only module that imports ray."""

import logging
import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from citerec.errors import ClusterError, extra

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
