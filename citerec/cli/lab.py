"""`citerec experiment`, `citerec datasets` and `citerec scidocs`: what reproduces papers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import (
    ConsoleOutput,
    check_output,
    show,
    write_lines,
    write_result,
)
from citerec.cli.corpus import LABELS
from citerec.cli.options import (
    MODEL,
    AsFormat,
    Force,
    Index,
    open_named,
    settings_options,
)
from citerec.encode.spec import EncodeConfig
from citerec.errors import CiterecError, ConfigError

if TYPE_CHECKING:
    from citerec.lab.datasets.fetch import DatasetRecord

EXPERIMENTS = Path("experiments")
STORE = ".scidocs.encoding"  # folder of finished vectors during a run

experiment = typer.Typer(
    no_args_is_help=True, help="Run rows of a results table; write the table."
)


@experiment.command()
@settings_options
def run(
    files: Annotated[list[Path], "Rows: TOML files; table.toml is skipped."],
    *,
    results: Annotated[Path, "Folder of the results."] = EXPERIMENTS / "results",
    console: ConsoleOutput,
) -> None:
    """Run rows of a table and compare their metrics with the expected values."""
    from citerec.index.folder import INDEXES
    from citerec.lab.experiment.row import read_experiment
    from citerec.lab.experiment.run import Verdict, run_experiment
    from citerec.lab.experiment.run import write_result as write
    from citerec.lab.experiment.table import ABOUT

    failed = False
    errors = list[CiterecError]()
    rows = [read_experiment(file) for file in files if file.name != ABOUT]
    ran = 0
    for row in rows:
        console.detail(f"{row.path}: {row.claim} ({row.cost})")
        try:
            with console.progress() as progress:
                outcome = run_experiment(row, INDEXES, progress)
        except CiterecError as error:  # run the other rows
            errors.append(error)
            if len(files) > 1:
                console.warn(f"{row.path}: {error}")
            continue
        failed = failed or outcome.verdict is Verdict.FAIL
        ran += outcome.verdict is not Verdict.NOT_RUN
        if outcome.result:
            write(outcome, results)
        write_lines(str(outcome))
    if len(errors) < len(rows):
        console.log(f"{ran} of {len(rows)} rows ran")
    if errors:
        raise errors[0]
    if failed or (rows and not ran):
        raise typer.Exit(1)


@experiment.command()
@settings_options
def table(
    *,
    output: Annotated[
        Path,
        "The Markdown file; the LaTeX file has the suffix .tex.",
    ] = EXPERIMENTS / "TABLES.md",
    console: ConsoleOutput,
) -> None:
    """Write the tables of all rows: their committed results and the published values."""
    from citerec.lab.experiment.table import tables, tables_as_latex

    latex = output.with_suffix(".tex")
    write_result(tables(EXPERIMENTS), output)
    latex.unlink(missing_ok=True)  # a link is not followed
    write_result(tables_as_latex(EXPERIMENTS), latex)
    console.log(f"the tables are in {output} and {latex}")


datasets = typer.Typer(
    no_args_is_help=True,
    help="The datasets of the literature: list, describe and fetch them.",
)
Name = Annotated[str, "A name from `citerec datasets list`."]


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


@datasets.command(name="info")
@settings_options
def describe(name: Name, *, console: ConsoleOutput) -> None:
    """Show URL, size, checksum, licence and citation of a dataset."""
    from citerec.lab.datasets.catalogue import find_dataset, where
    from citerec.lab.datasets.fetch import read_record

    dataset = find_dataset(name)
    facts = {"dataset": f"{dataset.name}: {dataset.title}", **dataset.facts}
    if record := read_record(where(name)):
        facts["here"] = f"{where(name)}, fetched {record.fetched[:10]}"
        for file, fetched in record.files.items():
            facts[f"  {file}"] = (
                f"{fetched['bytes']:,} bytes, sha256 {fetched['sha256']}"
            )
        facts["holds"] = _counted(record)
    write_lines(*(f"{f'{what}:':<13} {fact}" for what, fact in facts.items()))


@datasets.command()
@settings_options
def fetch(
    name: Name,
    *,
    output: Annotated[
        Path | None,
        "The folder to create; datasets/NAME by default.",
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder that contains the files.")
    ] = None,
    without: Annotated[
        list[str] | None,
        "A dataset whose dev and test queries (scidocs: all papers) are dropped from the train queries.",
    ] = None,
    archive: Annotated[
        bool,
        "Fetch the complete archive if the single file is not available.",
    ] = False,
    force: Force = False,
    console: ConsoleOutput,
) -> None:
    """Fetch a dataset and convert it to the input of `citerec index`; an interrupted download is resumed."""
    from citerec.lab.datasets.catalogue import find_dataset, where
    from citerec.lab.datasets.fetch import FetchConfig, read_record
    from citerec.lab.datasets.fetch import fetch as get
    from citerec.lab.datasets.without import drop_train_queries, fetched

    dataset = find_dataset(name)
    folder = output or where(name)
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
    console.summary(f"{folder}  {_counted(record)}")


def _counted(record: "DatasetRecord") -> str:
    """Return the counts of a dataset and of what was left out of it, in one line."""
    return ", ".join(
        f"{count:,} {LABELS.get(name, name.replace('_', ' '))}"
        for name, count in record.counts.items()
        if count or name == "papers"
    )


@settings_options
def scidocs(
    *,
    data: Annotated[Path | None, "The folder of the published SciDocs data."] = None,
    index: Index = None,
    encoder: Annotated[
        list[str] | None,
        "A model: a name, a hub id or a folder; may be repeated. With --index, default is the encoder of the "
        "index. With --data, a folder of cls.jsonl, user-citation.jsonl and recomm.jsonl is read as precomputed "
        "vectors.",
    ] = None,
    tasks: Annotated[str | None, "Comma-separated; all by default."] = None,
    output: Annotated[Path | None, "A JSON file of all results."] = None,
    format: AsFormat = "table",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of all samples and trainings.")
    ] = 0,
    how: Annotated[EncodeConfig, {**MODEL, "--threads": "threads"}],
    console: ConsoleOutput,
) -> None:
    """Evaluate encoders by SciDocs: on its published data, or on tasks of the same kinds built from an index."""
    from citerec.evaluation.tables import terminal
    from citerec.lab.scidocs.results import as_json, results_table
    from citerec.lab.scidocs.run import Running, on_index, on_published
    from citerec.lab.scidocs.vectors import CachedVectors

    names = list(dict.fromkeys(encoder or ()))
    wanted = [task.strip() for task in tasks.split(",")] if tasks else None
    store = (output.parent if output else Path()) / STORE
    check_output(output)
    if data and index:
        raise ConfigError("--data and --index are two suites; use one")
    if data and not names:
        raise ConfigError("--data needs a model: --encoder MODEL")
    with console.progress() as progress:
        cached = partial(
            CachedVectors, folder=store, progress=progress, log=console.log
        )
        run = Running(
            how=how, cached=cached, seed=seed, progress=progress, log=console.log
        )
        if data:
            of = str(data)
            results = on_published(data, names, wanted, run)
        else:
            folder = open_named(index)
            of = folder.manifest.name
            results = on_index(folder, names, wanted, run)
    settings = {"tasks": wanted, "precision": how.precision.value}
    record = as_json(of, results, seed, settings, published=data is not None)
    if format == "json":
        write_result(record)
    else:
        show(terminal(results_table(results, published=data is not None)))
    if output:
        write_result(record, output)
    for each in results:
        for notice in each.notices():
            console.warn(notice)
