"""`citerec serve`."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput
from citerec.cli.options import Heap, Quiet, Threads, Verbose
from citerec.cli.rerank import BackendOption, DeviceOption, DtypeOption, RerankOptions
from citerec.config import Bm25Config, DenseConfig, RecommendConfig
from citerec.encode.config import Backend, Precision
from citerec.errors import BadInputError, ConfigError, extra

TOKENS = "CITEREC_TOKENS"  # environment variable: bearer tokens, separated by white space


def serve(
    index: Annotated[
        list[Path] | None,
        typer.Option(
            help="An index folder; may be repeated: requests choose by the folder's name, the first is the default."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; other machines reach 0.0.0.0.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file of bearer tokens, one per line; or set {TOKENS}."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let other machines in without a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which clients address the server; may be repeated; * for any."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="The origin of a web page that may call the API; may be repeated."),
    ] = None,
    reranker: Annotated[
        list[str] | None,
        typer.Option(
            help="auto, none, a folder or hub id; if repeated, requests choose, the first is the default."
        ),
    ] = None,
    ranker: Annotated[str, typer.Option(help="auto, none, or a folder.")] = "auto",
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    backend: BackendOption = Backend.AUTO,
    threads: Threads = 0,
    heap: Heap = None,
    queue_size: Annotated[
        int, typer.Option(min=1, help="Requests in flight; more are answered by 429.")
    ] = 128,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds until an answer.")] = 60.0,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve recommendations over HTTP: a page for authors, an API for programs."""
    with extra("serve"):
        from citerec.serve.app import address, bound, create_app
        from citerec.serve.app import serve as run
        from citerec.serve.guard import ServeConfig, log_to_stderr
        from citerec.serve.service import Service
    from citerec.folder import open_index
    from citerec.java import set_heap
    from citerec.rank.ltr import suits_default_reranker
    from citerec.rank.trees import load

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    settings = ServeConfig(
        host=host,
        port=port,
        tokens=bearer_tokens(token_file),
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        queue_size=queue_size,
        timeout_seconds=timeout,
    )
    check_open(settings.is_local or bool(settings.tokens), no_token, host)
    indexes = named_indexes(index)
    config = RecommendConfig(
        few_queries=True,
        bm25=Bm25Config(threads=threads),
        dense=DenseConfig(threads=threads),
        ranker=ranker,
    )
    configs = dict.fromkeys(indexes, config)
    how = RerankOptions(
        model=reranker[0] if reranker else None, device=device, precision=dtype, backend=backend
    )
    if how != RerankOptions():
        for name, path in indexes.items():
            folder, how = open_index(path), replace(how, threads=threads)
            suits = suits_default_reranker(ranker, folder)
            chosen = how.config(folder, console, default=suits) or "none"
            configs[name] = config.replace(reranker=chosen)
    listening = bound(settings)
    set_heap(heap)
    load(hide_optional=True)  # before any thread imports a library that it hides
    offered = tuple(name for name in reranker or () if name not in ("auto", "none"))
    service = Service(indexes, configs, settings, offered)
    service.warm_up()
    log_to_stderr(quiet=quiet)
    shown, number = address(listening)
    console.log(f"serving {', '.join(indexes)} at http://{shown}:{number}/ (Ctrl-C to stop)")
    run(create_app(service), service, listening)


def named_indexes(folders: list[Path] | None) -> dict[str, Path]:
    """Return index folders by their names; by default the only one under `indexes/`.

    Raises:
        ConfigError: If two have the same name.
        IndexNotFoundError: If one is not there.
    """
    from citerec.folder import find_index

    indexes: dict[str, Path] = {}
    for folder in folders or [None]:
        path = find_index(folder)
        name = path.resolve().name
        if name in indexes:
            raise ConfigError(
                f"two indexes are named {name!r}; requests could not name one of them"
            )
        indexes[name] = path
    return indexes


def bearer_tokens(file: Path | None) -> tuple[str, ...]:
    """Return the bearer tokens of a file and of the environment; a line that starts with # is none."""
    lines = os.environ.get(TOKENS, "").split()
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(file, f"the tokens cannot be read: {error}") from error
        found = [line.strip() for line in text.splitlines()]
        found = [line for line in found if line and not line.startswith("#")]
        if not found:
            raise BadInputError(file, "there is no token; expected one per line")
        lines += found
    return tuple(dict.fromkeys(lines))


def check_open(is_guarded: bool, no_token: bool, host: str) -> None:
    if not is_guarded and not no_token:
        raise ConfigError(
            f"--host {host} lets other machines in, and there is no token; give --token-file FILE or set {TOKENS}, "
            "or let everybody in: --no-token"
        )
