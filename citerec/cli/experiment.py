"""`citerec experiment run` and `citerec experiment table`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import Quiet, Talk, Verbose, write_result

EXPERIMENTS = Path("experiments")

experiment = typer.Typer(no_args_is_help=True, help="Run rows of a results table; write the table.")


@experiment.command()
def run(
    files: Annotated[list[Path], typer.Argument(help="Rows: TOML files.")],
    results: Annotated[Path, typer.Option(help="Where results are written.")] = EXPERIMENTS
    / "results",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run rows of a table and say for each whether it gives what it should."""
    from citerec.experiment.row import read_experiment
    from citerec.experiment.run import Verdict, run_experiment
    from citerec.experiment.run import write_result as write
    from citerec.folder import INDEXES

    talk = Talk(quiet, verbose)
    rows = [read_experiment(file) for file in files]
    failed = False
    for row in rows:
        talk.detail(f"{row.path}: {row.claim} ({row.cost})")
        with talk.progress() as tell:
            outcome = run_experiment(row, INDEXES, tell)
        failed |= outcome.verdict is Verdict.FAIL
        if outcome.result:
            write(outcome, results)
        figures = "  ".join(
            f"{name} {outcome.metrics[name]:.4f}" for name in row.expect if outcome.metrics
        )
        typer.echo(f"{outcome.verdict:<12} {row.path}  {figures}  {outcome.why}".rstrip())
    if failed:
        raise typer.Exit(1)


@experiment.command()
def table(
    output: Annotated[
        Path | None, typer.Option(help="The file; experiments/TABLES.md by default.")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write the tables from the rows' files and their results."""
    from citerec.experiment.table import tables

    target = output or EXPERIMENTS / "TABLES.md"
    write_result(tables(EXPERIMENTS), target)
    Talk(quiet, verbose).note(f"the tables are in {target}")
