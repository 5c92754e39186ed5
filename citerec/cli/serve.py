"""`citerec serve` and `citerec mcp`."""

import os
from pathlib import Path
from typing import Annotated, Literal

from citerec.bibliography.paper_list import decode
from citerec.cli.console import ConsoleOutput
from citerec.cli.options import MODEL, Index, open_named, settings_options, under
from citerec.config import RecommendConfig, Settings, setting
from citerec.corpus.contents import stated_lines
from citerec.errors import BadInputError, ConfigError, extra
from citerec.files.reading import read_whole
from citerec.serve import Port, ServeConfig

# environment variable: bearer tokens, separated by white space
TOKENS = "CITEREC_TOKENS"
HTTP = {"--host": "host", "--port": "port", "--allow-host": "hosts"}
SERVE = HTTP | {
    "--allow-origin": "origins",
    "--queue-size": "queue_size",
    "--timeout": "timeout_seconds",
}
MODELS = {
    "--ranker": "ranker",
    **under("reranker", MODEL),
    "--threads": "bm25.threads dense.threads reranker.threads",
}


class McpConfig(ServeConfig):
    """A server of the Model Context Protocol, which may run at the same time as `citerec serve`."""

    port: Port = 8765


class Access(Settings):
    """Who may use a server."""

    token_file: Path | None = setting(
        None, f"A file of bearer tokens, one per line; or set {TOKENS}."
    )
    no_token: bool = setting(False, "Let other machines in without a token.")

    def checked(self, settings: ServeConfig) -> ServeConfig:
        """Return the settings with the bearer tokens of the file and of the environment; # starts a comment there."""
        tokens = os.environ.get(TOKENS, "").split()
        if self.token_file is not None:
            data = read_whole(self.token_file)
            reads = "expected one token per line"
            read = stated_lines(decode(data, self.token_file, reads=reads))
            if not read:
                raise BadInputError(
                    self.token_file, "there is no token; expected one per line"
                )
            tokens += read
        if not (settings.is_local or tokens or self.no_token):
            raise ConfigError(
                f"--host {settings.host} lets other machines in, and there is no token; give --token-file FILE or set "
                f"{TOKENS}, or let everybody in: --no-token"
            )
        return settings.replace(tokens=tuple(dict.fromkeys(tokens)))


@settings_options
def serve(
    *,
    index: Annotated[
        list[Path] | None,
        "An index folder; may be repeated: requests choose by the folder's name, the first is the default.",
    ] = None,
    settings: Annotated[ServeConfig, SERVE],
    access: Access,
    desk: Annotated[
        Path | None,
        "A folder for the drafts of the page, as files; it opens by the address that is printed.",
    ] = None,
    collect: Annotated[
        Path | None,
        "A folder for corpora that the page collects around references; those in it are served, too.",
    ] = None,
    reranker: Annotated[
        list[str] | None,
        "auto, none, a folder or hub id; if repeated, requests choose, the first is the default.",
    ] = None,
    config: Annotated[RecommendConfig, MODELS],
    console: ConsoleOutput,
) -> None:
    """Serve recommendations over HTTP: a page for authors, an API for programs."""
    with extra("serve"):
        from citerec.serve.app import bound, create_app, url
        from citerec.serve.app import serve as run
        from citerec.serve.desk import Desk
        from citerec.serve.guard import log_to_stderr
        from citerec.serve.service import Service
    from citerec.index.folder import NAME, find_index
    from citerec.rank.trees import load

    settings = access.checked(settings)
    if collect and not (settings.is_local or settings.tokens):
        raise ConfigError("--collect needs tokens where other machines are let in")
    paths = [find_index(folder) for folder in index or ([] if collect else [None])]
    if collect:
        paths += sorted(path.parent for path in collect.glob(f"indexes/[!.]*/{NAME}"))
    indexes = {path.resolve().name: path for path in paths}
    if len(indexes) < len(paths):
        raise ConfigError(
            "two indexes have one name; requests could not name one of them"
        )
    config = config.replace(few_queries=True)
    if reranker:
        config = config.replace(reranker=config.rerank.replace(model=reranker[0]))
    drafts = None if desk is None else Desk(desk)
    listening = bound(settings)
    load(hide_optional=True)  # before any thread imports a library that it hides
    offered = tuple(name for name in reranker or () if name not in ("auto", "none"))
    service = Service(indexes, dict.fromkeys(indexes, config), settings, offered)
    service.warm_up()
    log_to_stderr(quiet=console.quiet)
    opened = "" if drafts is None else f"#desk={drafts.key}"
    console.log(
        f"serving {', '.join(indexes) or 'no corpus yet'} at {url(listening)}/{opened} (Ctrl-C to stop)"
    )
    run(create_app(service, drafts, collect), service, listening)


@settings_options
def mcp(
    *,
    index: Index = None,
    transport: Annotated[
        Literal["stdio", "http"],
        "stdio for one assistant, which starts it, or http.",
    ] = "stdio",
    settings: Annotated[McpConfig, HTTP],
    access: Access,
    config: Annotated[RecommendConfig, {"--reranker": "reranker.model"}],
    console: ConsoleOutput,
) -> None:
    """Serve an index to assistants as tools, by the Model Context Protocol."""
    with extra("serve"):
        from citerec.serve.app import bound, url
        from citerec.serve.app import serve as run
        from citerec.serve.mcp import http_app, run_stdio
        from citerec.serve.service import Service

    is_http = transport == "http"
    if not is_http and (settings.model_fields_set or access.model_fields_set):
        raise ConfigError("options of host, port and tokens are for --transport http")
    checked = access.checked(settings) if is_http else settings
    path = open_named(index).path  # a wrong one is an error now, not of the first call
    configs = {path.name: config.replace(few_queries=True)}

    def open_service() -> Service:
        return Service({path.name: path}, configs, checked)

    if not is_http:
        console.detail(f"serving {path} on stdin and stdout")
        run_stdio(open_service)
        return
    listening = bound(checked)
    service = open_service()
    console.log(f"serving MCP at {url(listening)}/mcp (Ctrl-C to stop)")
    run(http_app(service), service, listening)
