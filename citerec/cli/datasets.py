"""`citerec datasets list`, `citerec datasets info` and `citerec datasets fetch`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, write_lines
from citerec.cli.corpus import LABELS
from citerec.cli.options import Force, settings_options

if TYPE_CHECKING:
    from citerec.lab.datasets.fetch import DatasetRecord

datasets = typer.Typer(
    no_args_is_help=True, help="The datasets of the literature: list, describe and fetch them."
)
Name = Annotated[str, typer.Argument(help="A name from `citerec datasets list`.")]


@datasets.command(name="list")
@settings_options
def list_(*, console: ConsoleOutput) -> None:
    """List the known datasets and the folders of those that were fetched."""
    from citerec.lab.datasets.catalogue import DATASETS, is_fetched, where

    width = max(map(len, DATASETS))
    write_lines(
        *(
            f"{name:<{width}}  {f'in {where(name)}' if is_fetched(name) else '-':<24}  {about.title}"
            for name, about in DATASETS.items()
        )
    )


@datasets.command()
@settings_options
def info(name: Name, *, console: ConsoleOutput) -> None:
    """Show URL, size, checksum, licence and citation of a dataset."""
    from citerec.lab.datasets.catalogue import find_dataset, where
    from citerec.lab.datasets.fetch import read_record

    dataset = find_dataset(name)
    facts = {"dataset": f"{dataset.name}: {dataset.title}", **dataset.facts}
    if record := read_record(where(name)):
        facts["here"] = f"{where(name)}, fetched {record.fetched[:10]}"
        for file, fetched in record.files.items():
            facts[f"  {file}"] = f"{fetched['bytes']:,} bytes, sha256 {fetched['sha256']}"
        facts["holds"] = _counted(record)
    write_lines(*(f"{f'{what}:':<13} {fact}" for what, fact in facts.items()))


@datasets.command()
@settings_options
def fetch(
    name: Name,
    output: Annotated[
        Path | None, typer.Option(help="The folder to create; datasets/NAME by default.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder that contains the files.")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A dataset whose dev and test queries (scidocs: all papers) are dropped from the train queries."
        ),
    ] = None,
    archive: Annotated[
        bool,
        typer.Option(
            "--archive", help="Fetch the complete archive if the single file is not available."
        ),
    ] = False,
    force: Force = False,
    *,
    console: ConsoleOutput,
) -> None:
    """Fetch a dataset and convert it to the input of `citerec index`; an interrupted download is resumed."""
    from citerec.lab.datasets.catalogue import find_dataset, where
    from citerec.lab.datasets.fetch import FetchConfig, read_record
    from citerec.lab.datasets.fetch import fetch as get
    from citerec.lab.datasets.without import drop_train_queries, fetched

    dataset, folder = find_dataset(name), output or where(name)
    others = [where(other) for other in without or []]
    for other in others:
        fetched(other)  # not after hours of fetching
    exists = read_record(folder) is not None and not force
    config = FetchConfig(source=source, force=force, archive=archive)
    with console.progress(in_bytes="fetching") as progress:
        record = get(dataset, folder, config, progress, console.log)
    if exists:
        console.log(f"{folder} exists; use --force to replace it")
    for other in others:
        with console.progress() as progress:
            dropped = drop_train_queries(folder, other, progress)
        console.log(f"{dropped:,} train queries dropped: held-out papers of {other}")
    if not console.quiet:
        write_lines(f"{folder}  {_counted(record)}")


def _counted(record: "DatasetRecord") -> str:
    """Return the counts of a dataset and of what was left out of it, in one line."""
    return ", ".join(
        f"{count:,} {LABELS.get(name, name.replace('_', ' '))}"
        for name, count in record.counts.items()
        if count or name == "papers"
    )
