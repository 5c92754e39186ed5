"""`citerec mcp`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput
from citerec.cli.options import Heap, Index, Quiet, Verbose
from citerec.cli.serve import TOKENS, bearer_tokens, check_open
from citerec.errors import ConfigError, extra


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
        Path | None,
        typer.Option(help=f"http: a file of bearer tokens, one per line; or set {TOKENS}."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="http: let other machines in without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="http: a name by which clients address the server; * for any."),
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
        from citerec.serve.app import address, bound, serve
        from citerec.serve.guard import ServeConfig
        from citerec.serve.mcp import http_app, run_stdio
        from citerec.serve.service import Service
    from citerec.config import RecommendConfig
    from citerec.folder import find_index, open_index
    from citerec.java import check_heap, start_jvm

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    tokens = bearer_tokens(token_file) if transport is Transport.HTTP else ()
    settings = ServeConfig(host=host, port=port, hosts=tuple(allow_host or ()), tokens=tokens)
    if transport is Transport.HTTP:
        check_open(settings.is_local or bool(tokens), no_token, host)
    elif token_file or no_token or allow_host:
        raise ConfigError("--token-file, --no-token and --allow-host are for --transport http")
    if heap:
        check_heap(heap)
    path = find_index(index)
    open_index(path)  # a wrong one is an error at once, not of the first call
    config = RecommendConfig(reranker=reranker.value, few_queries=True)

    def open_service() -> Service:
        start_jvm(heap)
        return Service({path.name: path}, {path.name: config}, settings)

    if transport is Transport.STDIO:
        console.detail(f"serving {path} on stdin and stdout")
        run_stdio(open_service)
        return
    listening = bound(settings)
    shown, number = address(listening)
    service = open_service()
    console.log(f"serving MCP at http://{shown}:{number}/mcp (Ctrl-C to stop)")
    serve(http_app(service), service, listening)
