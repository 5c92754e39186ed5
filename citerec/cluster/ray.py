"""Runs long work on a Ray cluster: `citerec encode|index|recommend --ray ADDRESS|local`.

Ray Data gives items (shards of papers, blocks of queries) to actors, starts more of them where there is room, and
repeats the items of lost ones. Results equal those of one process, bit by bit, on machines of one kind: actors run the
code of the plain path. The process of the command writes vectors and results, so that a killed command leaves nothing
half-written. Every node that ranks needs the folder of the index, and the models, at the same path.
"""

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import catch_warnings, simplefilter

from citerec.encode.spec import Precision
from citerec.errors import CiterecError, ClusterError, extra
from citerec.files.arrays import Vectors, batched
from citerec.index.folder import open_index
from citerec.recommend import AT_ONCE, Recommender
from citerec.recommendations import Recommendations
from citerec.request import ListedPapers, Request
from citerec.types import Paper, Progress, Query, no_progress

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

LOCAL = "local"
CONNECT_SECONDS = 10
RETRIES = 3  # of an item whose actor was lost
# shared memory of a local cluster; a shard of vectors takes some megabytes
STORE_BYTES = 2**28
SETTINGS = {  # environment variables that ray reads when it is imported or started
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage data is sent
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # actors without a GPU see those of their node
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # no stacks of C++ at SIGTERM
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}
LOG = logging.getLogger(__name__)
# for an address, Ray looks for a token only if this is `token`
AUTH_MODE = "RAY_AUTH_MODE"

Item = TypeVar("Item")
Result = TypeVar("Result")


def _library(name: str) -> Any:
    """Import Ray or a part of it; by name, so that type checkers do not need the package."""
    for variable, value in SETTINGS.items():
        os.environ.setdefault(variable, value)
    with extra("ray"):
        return import_module(name)


@contextmanager
def connected(address: str) -> Generator[None]:
    """Connect to a cluster until the block ends; a local one is started before and ended after it.

    The address is `local` for one on this machine, of all of its processors, else such as `10.0.0.1:6379` or
    `ray://10.0.0.1:10001`. A program that is connected already keeps its connection. MissingExtraError if Ray is not
    installed; ClusterError if there is no cluster at the address, or it does not start.
    """
    ray = _library("ray")
    if ray.is_initialized():
        yield
        return
    # Ray would print messages about lost workers to stdout, among the results; it has no setting for that
    _library("ray._private.worker").print_to_stdstream = _log_lines
    options: dict[str, Any] = {"address": address}
    if address == LOCAL:
        options |= {"num_cpus": os.cpu_count(), "include_dashboard": False}
        options |= {"object_store_memory": STORE_BYTES}
    try:
        host, _, port = address.rpartition("://")[2].rpartition(":")
        if host and port.isdigit():  # ray itself would try for minutes
            socket.create_connection(
                (host.strip("[]"), int(port)), CONNECT_SECONDS
            ).close()
        ray.init(**options, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # ConnectionError, RuntimeError, ValueError or Exception
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if address != LOCAL and not os.environ.get(AUTH_MODE):
            reason += (
                f" (if it has a token, as in ~/.ray/auth_token, set {AUTH_MODE}=token)"
            )
        raise ClusterError(
            f"no Ray cluster at {address}: {reason}; start one: ray start --head, or work on this machine: --ray local"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _log_lines(data: Mapping[str, Any], *_: Any, **__: Any) -> None:
    for line in data["lines"]:
        LOG.info("Ray: %s", line)


class Worker:
    """What runs in an actor; results and errors of citerec go back as bytes and text."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = cache(make)  # what it opens is opened at the first item

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Work on a batch of one item."""
        pickle = _library("ray.cloudpickle")
        result = b""
        fault = ""
        try:
            [item] = batch["item"]
            result = pickle.dumps(self._make()(pickle.loads(item)))
        except CiterecError as error:
            fault = str(error)
        except Exception as error:
            LOG.exception("a defect of citerec")  # in the log of the worker
            fault = f"{type(error).__name__}: {error}"
        return {"result": [result], "error": [fault]}


def map_in_actors(
    items: Iterable[Item],
    make: Callable[[], Callable[[Item], Result]],
    *,
    cpus: int = 1,
    gpus: int = 0,
) -> Iterator[Result]:
    """Yield the result of each item, in their order, from actors of the cluster that is connected.

    Items are copied into the memory of the cluster, which writes to disk what it has no room for. `make` is called once
    in each actor, of so many processors and GPUs, and returns what works on items. A ClusterError if the work fails, or
    the actors of one item were lost `RETRIES` + 1 times.
    """
    ray = _library("ray")
    data = _library("ray.data")
    pickle = _library("ray.cloudpickle")
    context = data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    rows = [{"item": pickle.dumps(item)} for item in items]
    if not rows:
        return
    pool = data.ActorPoolStrategy(
        min_size=1, max_size=len(rows), max_tasks_in_flight_per_actor=1
    )
    with catch_warnings():
        # the only way to bound the retries of Ray Data, which are endless by default
        simplefilter("ignore", DeprecationWarning)
        dataset = data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Worker,
            fn_constructor_args=(make,),
            batch_size=1,
            compute=pool,
            num_cpus=cpus,
            num_gpus=gpus,
            max_restarts=RETRIES,
            max_task_retries=RETRIES,
        )
    try:
        for row in dataset.iter_rows():
            if row["error"]:
                raise ClusterError(f"a worker failed: {row['error']}")
            yield pickle.loads(row["result"])
    except ray.exceptions.RayError as error:
        reason = str(error).strip().split("\n")[0]
        raise ClusterError(f"workers were lost with one item: {reason}") from error


# --- encoding


def encode_in_actors(
    encoder: "Encoder", base: Path, batches: Iterable[list[Paper]]
) -> Iterator[Vectors]:
    """Yield the vectors of each batch, as the encoder gives them here; see `embed.EncodeElsewhere`."""
    config = encoder.config
    config = config.replace(
        precision=Precision(encoder.precision),  # as this process resolved it
        device="cpu" if config.device == "auto" else config.device,
        threads=config.threads or 1,
    )
    fingerprint = encoder.fingerprint
    folder = base.absolute()

    def opened() -> Callable[[list[Paper]], Vectors]:  # in each actor
        from citerec.encode.encoder import reopen

        return reopen(fingerprint, folder, config).encode

    return map_in_actors(
        batches,
        opened,
        cpus=config.thread_count,
        gpus=int(config.device.startswith("cuda")),
    )


# --- recommending


def recommend_in_actors(
    recommender: Recommender,
    request: Request,
    listed: ListedPapers,
    progress: Progress = no_progress,
    *,
    threads: int = 1,
) -> Iterator[Recommendations]:
    """Yield what `Recommender.recommend_many` yields, from actors of `threads` processors; `progress` is not called."""
    config = recommender.config
    index = recommender.index
    reranker = config.rerank
    opened = recommender.open_reranker
    if opened:
        # the depth as this process resolved it
        reranker = reranker.replace(depth=opened.depth, threads=threads)
        if reranker.device == "auto" and not config.few_queries:
            reranker = reranker.replace(device="cpu")
    gpus = int(reranker.device.startswith("cuda"))
    config = config.replace(
        reranker=reranker,
        bm25=config.bm25.replace(threads=threads),
        dense=config.dense.replace(threads=threads),
    )
    path = index.path.absolute()
    created = index.manifest.created

    def ranking() -> Callable[
        [Sequence[Query]], list[Recommendations]
    ]:  # in each actor
        there = open_index(path)
        if there.manifest.created != created:
            raise ClusterError(
                f"{path} on a worker's machine was built at {there.manifest.created}, here at {created}; "
                "copy the index to all nodes, or put it into a folder that they share"
            )
        own = Recommender(there, config)
        return lambda queries: [
            *own.recommend_many(request.with_queries(queries), listed)
        ]

    blocks = batched(request.drafts.queries, AT_ONCE)
    for results in map_in_actors(blocks, ranking, cpus=threads, gpus=gpus):
        yield from results
