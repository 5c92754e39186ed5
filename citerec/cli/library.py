"""`citerec library add` and `update`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.collect import CORPORA
from citerec.cli.console import ConsoleOutput, write_lines
from citerec.cli.corpus import report_faults
from citerec.cli.index import (
    IndexOptions,
    default_index,
    show_report,
)
from citerec.cli.options import settings_options
from citerec.encode.spec import EncodeConfig

library = typer.Typer(
    no_args_is_help=True,
    help="Make an index of your own library, and keep it as the library is.",
)
ZOTERO = "zotero"
ADD = {
    "--encoder": "encoder",
    "--add-cited": "add_cited",
    "--retracted": "retracted",
    "--force": "force",
}


@library.command()
@settings_options
def add(
    source: Annotated[
        Path,
        "zotero, for a Zotero that runs; its data folder; a .bib, .ris or CSL-JSON file; a folder of PDFs.",
    ],
    *,
    name: Annotated[
        str | None,
        "The name of its index under indexes/; that of the source by default.",
    ] = None,
    config: Annotated[IndexOptions, ADD],
    console: ConsoleOutput,
) -> None:
    """Make an index of a library; `citerec library update` follows what changes in it."""
    from citerec.build.index import build_index, check_target
    from citerec.collect.zotero import fetch_library
    from citerec.index.folder import INDEXES

    index = INDEXES / name if name else default_index(source)
    check_target(index, force=config.force)
    with console.progress(in_bytes="reading") as progress:
        if str(source) == ZOTERO and not source.exists():
            source = CORPORA / index.name
            fetch_library(source, progress)
        config = config.replace(skip_bad=True)
        if source.is_dir():  # PDFs are read beside records, too
            config = config.replace(format="library")
        report = build_index(source, index, config, progress, console.log)
    show_report(report, console)


@library.command()
@settings_options
def update(
    name: Annotated[
        Path | None,
        "The index of the library; optional if indexes/ contains only one.",
    ] = None,
    *,
    console: ConsoleOutput,
) -> None:
    """Follow what is new, changed and deleted in a library; the index is then that of a new build."""
    from citerec.build.index import BuildConfig, update_index
    from citerec.collect.zotero import ITEMS, fetch_library
    from citerec.index.folder import find_index, read_manifest

    index = find_index(name)
    corpus = Path(read_manifest(index).corpus["path"])
    # an update has few new texts
    config = BuildConfig(skip_bad=True, encode=EncodeConfig(few_texts=True))
    with console.progress(in_bytes="reading") as progress:
        if (corpus / ITEMS).exists():
            fetch_library(corpus, progress)
        report = update_index(index, config, progress, console.log)
    format_name = report.manifest.corpus["format"]
    report_faults(report.examples, report.ignored, console, format_name)
    counts = [f"{count:,} {kind}" for kind, count in report.changes.items()]
    write_lines(f"{index}: {', '.join(counts)}")
