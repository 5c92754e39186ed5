"""`citerec train`: encoder, vectors, reranker and ranker of one index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import (
    ConsoleOutput,
    Index,
    Quiet,
    Threads,
    Verbose,
    show,
    write_lines,
)
from citerec.cli.interrupts import resuming_command
from citerec.train.budget.name import Budget

if TYPE_CHECKING:
    from rich.table import Table

    from citerec.folder import IndexFolder
    from citerec.train.budget.plan import TrainPlan
    from citerec.train.budget.steps import BudgetReport


def train(
    ctx: typer.Context,
    index: Index = None,
    budget: Annotated[
        Budget,
        typer.Option(
            help="minutes: the ranker; hour: small models on a CPU; night: the models of the papers on a GPU."
        ),
    ] = Budget.MINUTES,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with the tables [encoder], [reranker] and [ranker]."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the steps, and train nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted training.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Use new models that are not better on dev, too.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    threads: Threads = 0,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train all models of an index in order, and use those that are better on dev."""
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm
    from citerec.train.budget.plan import TrainPlan
    from citerec.train.budget.steps import IndexTraining

    console = ConsoleOutput(quiet, verbose)
    plan = TrainPlan.read(budget, config, {"seed": seed, "threads": threads or None})
    folder = find_index(index)
    if dry_run:
        write_lines(*planned(open_index(folder), plan))
        return
    start_jvm(None)
    try:
        with console.progress() as progress:
            report = IndexTraining(
                path=folder,
                plan=plan,
                resume=resume,
                force=force,
                progress=progress,
                log=console.log,
            ).run()
    except KeyboardInterrupt:
        console.log(f"finished steps are kept; resume: {resuming_command(ctx)}")
        raise
    if report.queries:
        show(measures_table(report))


def planned(index: "IndexFolder", plan: "TrainPlan") -> list[str]:
    """Return the description of a plan for an index, and of the device here."""
    from citerec.train.budget.device import device_line
    from citerec.train.data import load_training_data

    queries = len(load_training_data(index).queries)
    return [
        f"{index.path}: {len(index.papers):,} papers, {queries:,} train queries; budget {plan.budget}",
        *plan.lines(),
        device_line(plan),
    ]


def measures_table(report: "BudgetReport") -> "Table":
    """Return the measures before and after the training as a table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=None)
    table.add_column(f"{report.queries:,} dev queries")
    for name in ("F1@20 before", "after", "MRR before", "after"):
        table.add_column(name, justify="right")
    for system in dict.fromkeys([*report.before, *report.after]):
        pair = [report.before.get(system, {}), report.after.get(system, {})]
        cells = [one.get(metric) for metric in ("f1@20", "mrr") for one in pair]
        table.add_row(system, *("" if cell is None else f"{cell:.3f}" for cell in cells))
    return table
