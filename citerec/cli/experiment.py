"""`citerec experiment run` and `citerec experiment table`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, write_lines, write_result
from citerec.cli.options import Quiet, Verbose
from citerec.errors import CiterecError

EXPERIMENTS = Path("experiments")
SHOWN = 3  # metrics printed of a row without expected values

experiment = typer.Typer(no_args_is_help=True, help="Run rows of a results table; write the table.")


@experiment.command()
def run(
    files: Annotated[list[Path], typer.Argument(help="Rows: TOML files; table.toml is skipped.")],
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = EXPERIMENTS / "results",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run rows of a table and compare their metrics with the expected values."""
    from citerec.folder import INDEXES
    from citerec.lab.experiment.row import format_measure, read_experiment
    from citerec.lab.experiment.run import Outcome, Verdict, run_experiment
    from citerec.lab.experiment.run import write_result as write
    from citerec.lab.experiment.table import ABOUT

    console = ConsoleOutput(quiet=quiet, verbose=verbose)
    rows = [read_experiment(file) for file in files if file.name != ABOUT]
    outcomes: list[Outcome] = []
    first_error: CiterecError | None = None
    for row in rows:
        console.detail(f"{row.path}: {row.claim} ({row.cost})")
        try:
            with console.progress() as progress:
                outcome = run_experiment(row, INDEXES, progress)
        except CiterecError as error:  # run the other rows
            if len(rows) == 1:
                raise
            first_error = first_error or error
            console.warn(f"{row.path}: {error}")
            continue
        outcomes.append(outcome)
        if outcome.result:
            file = write(outcome, results)
            if outcome.draw:
                outcome.draw(file.with_suffix(".svg"))
        names = row.expect or [*outcome.metrics][:SHOWN]
        figures = "  ".join(
            f"{name} {format_measure(name, outcome.metrics[name])}"
            for name in names
            if name in outcome.metrics
        )
        write_lines(f"{outcome.verdict:<12} {row.path}  {figures}  {outcome.why}".rstrip())
    if first_error:
        raise first_error
    if any(outcome.verdict is Verdict.FAIL for outcome in outcomes):
        raise typer.Exit(1)


@experiment.command()
def table(
    output: Annotated[
        Path | None,
        typer.Option(
            help="The Markdown file; the LaTeX file has the suffix .tex. experiments/TABLES.md by default."
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write the tables of all rows: their committed results and the published values."""
    from citerec.lab.experiment.table import tables, tables_as_latex

    target = output or EXPERIMENTS / "TABLES.md"
    write_result(tables(EXPERIMENTS), target)
    write_result(tables_as_latex(EXPERIMENTS), target.with_suffix(".tex"))
    ConsoleOutput(quiet=quiet, verbose=verbose).log(
        f"the tables are in {target} and {target.with_suffix('.tex')}"
    )
