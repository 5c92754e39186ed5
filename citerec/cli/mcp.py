"""`citerec mcp`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, Heap, Index, Quiet, Verbose
from citerec.errors import ConfigError, extra

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Transport(StrEnum):
    """How an assistant reaches the server."""

    STDIO = "stdio"
    HTTP = "http"


class ListReranker(StrEnum):
    """Whether the best candidates are reranked."""

    AUTO = "auto"
    NONE = "none"


def mcp(
    index: Index = None,
    transport: Annotated[
        Transport, typer.Option(help="stdio for one assistant, which starts it, or http.")
    ] = Transport.STDIO,
    host: Annotated[str, typer.Option(help="http: the address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="http: the port; 0 for a free one.")
    ] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(help="http: a file of bearer tokens, one a line.")
    ] = None,
    reranker: Annotated[
        ListReranker, typer.Option(help="auto as for recommend, or none.")
    ] = ListReranker.AUTO,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve an index to assistants as tools, by the Model Context Protocol."""
    with extra("serve"):
        from citerec.serve.mcp.run import run_http, run_stdio
        from citerec.serve.mcp.worker import Worker
    from citerec.api.recommender import Recommender
    from citerec.config import RecommendConfig
    from citerec.folder import find_index, open_index
    from citerec.java import check_heap, start_jvm
    from citerec.serve.tokens import read_tokens

    console = ConsoleOutput(quiet, verbose)
    if transport is Transport.STDIO and token_file:
        raise ConfigError("--token-file is for --transport http; leave it out")
    tokens = read_tokens(token_file) if token_file else ()
    if heap:
        check_heap(heap)
    folder = open_index(find_index(index))
    config = RecommendConfig(reranker=reranker.value, few_queries=True)

    def open_recommender() -> Recommender:
        start_jvm(heap)
        return Recommender(folder, config, console.detail)

    worker = Worker(open_recommender)
    if transport is Transport.STDIO:
        console.detail(f"serving {folder.path} on stdin and stdout")
        run_stdio(worker)
        return
    if host not in LOOPBACK and not tokens:
        console.warn(f"everyone who reaches {host}:{port} can search; --token-file restricts it")
    run_http(worker, host, port, tokens=tokens, log=console.log)
