"""`citerec experiment run` and `citerec experiment table`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, Quiet, Verbose, write_lines, write_result
from citerec.errors import CiterecError

EXPERIMENTS = Path("experiments")
SHOWN = 3  # figures of a row that expects none

experiment = typer.Typer(no_args_is_help=True, help="Run rows of a results table; write the table.")


@experiment.command()
def run(
    files: Annotated[
        list[Path], typer.Argument(help="Rows: TOML files; a table.toml among them is passed over.")
    ],
    results: Annotated[Path, typer.Option(help="Where results are written.")] = EXPERIMENTS
    / "results",
    report: Annotated[
        Path | None,
        typer.Option(help="Where a report on these rows is written: a page, Markdown and LaTeX."),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run rows of a table and say for each whether it gives what it should."""
    from citerec.folder import INDEXES
    from citerec.lab.experiment.kind import told
    from citerec.lab.experiment.outcome import Outcome, Verdict
    from citerec.lab.experiment.outcome import write_result as write
    from citerec.lab.experiment.page import refuse_others_files, write_page
    from citerec.lab.experiment.row import read_experiment
    from citerec.lab.experiment.run import run_experiment
    from citerec.lab.experiment.shown import shown
    from citerec.lab.experiment.table import ABOUT

    console = ConsoleOutput(quiet, verbose)
    rows = [read_experiment(file) for file in files if file.name != ABOUT]
    if report:
        refuse_others_files(report)  # before the work, and not after it
    done: list[Outcome] = []
    broken: CiterecError | None = None
    for row in rows:
        console.detail(f"{row.path}: {row.claim} ({row.cost})")
        try:
            with console.progress() as progress:
                outcome = run_experiment(row, INDEXES, progress)
        except CiterecError as error:  # the other rows are worth running
            if len(rows) == 1:
                raise
            broken = broken or error
            console.warn(f"{row.path}: {error}")
            continue
        done.append(outcome)
        if outcome.result:
            file = write(outcome, results)
            if outcome.draw:
                outcome.draw(file.with_suffix(".svg"))
        names = row.expect or [*outcome.metrics][:SHOWN]
        figures = "  ".join(
            f"{name} {told(name, outcome.metrics[name])}"
            for name in names
            if name in outcome.metrics
        )
        write_lines(f"{outcome.verdict:<12} {row.path}  {figures}  {outcome.why}".rstrip())
    if report and done:
        write_page([shown(outcome) for outcome in done], report)
        console.log(f"the report is in {report / 'report.html'}")
    if broken:
        raise broken
    if any(outcome.verdict is Verdict.FAIL for outcome in done):
        raise typer.Exit(1)


@experiment.command()
def table(
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file, Markdown, and beside it the same as LaTeX; experiments/TABLES.md by default."
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write the tables from the rows' files and their results, others' figures beside."""
    from citerec.lab.experiment.table import tables, tables_as_latex

    target = output or EXPERIMENTS / "TABLES.md"
    write_result(tables(EXPERIMENTS), target)
    write_result(tables_as_latex(EXPERIMENTS), target.with_suffix(".tex"))
    ConsoleOutput(quiet, verbose).log(
        f"the tables are in {target} and {target.with_suffix('.tex')}"
    )
