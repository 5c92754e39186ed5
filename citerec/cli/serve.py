"""`citerec serve`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, Heap, Quiet, Verbose
from citerec.errors import extra


def serve(
    index: Annotated[
        list[Path] | None,
        typer.Option(help="An index folder; may be repeated. The first one is the default."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000,
    heap: Heap = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Serve recommendations over HTTP: a page for authors, an API for programs."""
    with extra("serve"):
        from citerec.serve.run import serve as run
        from citerec.serve.service import Service
    from citerec.folder import find_index
    from citerec.java import start_jvm
    from citerec.serve.settings import ServeConfig

    console = ConsoleOutput(quiet, verbose)
    settings = ServeConfig(host=host, port=port)
    folders = [find_index(path) for path in index or [None]]
    start_jvm(heap)
    service = Service({folder.name: folder for folder in folders}, settings=settings)
    console.log(f"serving {', '.join(service.names)} at http://{host}:{port}/")
    run(service, settings)
