"""`citerec recommend` by a running `citerec serve`, which has the index and the models open: the same results, sooner.

| module | what it does |
|---|---|
| `same` | decides whether a server has the same program, environment and index |
| `wire` | requests and results as JSON |
| `client` | sends a request, and works in this process where no server can |
| `server` | works on the requests, with the code that a command without a server runs |

A command reads its options and files itself, and writes the results itself. So a server gets no path to read or write
but that of an index that it serves, and every format is written by the same code. What a server cannot do in the very
same way, and what it fails in, is done in the process of the command.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from citerec.cli.console import ConsoleOutput
from citerec.cli.request import RecommendRequest
from citerec.serve.local import ADDRESS, socket_path
from citerec.types import Progress

if TYPE_CHECKING:
    from citerec.export import Result

NoServerOption = Annotated[
    bool, typer.Option("--no-server", help="Do not use a running citerec serve.")
]


class OpenRequest(Protocol):
    """A request with its index and its models open, here or in a server."""

    def results(self, progress: Progress) -> "Iterator[Result]":
        """Yield the result of each query; `progress` receives the number of queries and of reranked pairs."""
        ...


def open_request(
    path: Path, request: RecommendRequest, console: ConsoleOutput, *, use_server: bool
) -> OpenRequest:
    """Open the index and the models of a request: in a running server if there is one, else in this process.

    Args:
        path: The folder of the index.
        request: The request.
        console: Receives the messages of the work.
        use_server: Whether a server may be used.

    Raises:
        CiterecError: If the request is wrong, or the server that CITEREC_SERVER names does not answer.
    """
    named = os.environ.get(ADDRESS, "").strip()
    if use_server and (named or socket_path().exists()):
        from citerec.cli.remote.client import open_remote

        opened = open_remote(named, path, request, console)
        if opened is not None:
            return opened
    from citerec.cli.work import open_work

    return open_work(path, request, console)


@contextmanager
def opened_request(
    path: Path,
    request: RecommendRequest,
    console: ConsoleOutput,
    ray: str | None,
    *,
    use_server: bool,
) -> Generator[OpenRequest]:
    """Open a request as `open_request` does; with the address of a Ray cluster, its workers rank the queries.

    Raises:
        MissingExtraError: If Ray is needed and not installed.
        ClusterError: If there is no cluster at the address.
        CiterecError: As for `open_request`.
    """
    if ray is None:
        yield open_request(path, request, console, use_server=use_server)
        return
    from citerec.cli.work import open_work
    from citerec.distributed.cluster import connected
    from citerec.distributed.recommending import RayRecommender
    from citerec.folder import open_index

    options = request.options
    # A folder that is no index is refused before a cluster starts, which takes seconds.
    open_index(path)
    with connected(ray) as cluster:
        work = open_work(path, request, console)
        threads = options.bm25.threads
        workers = RayRecommender(cluster, threads, options.heap, console.log)
        yield replace(work, ranking=workers.stream)
