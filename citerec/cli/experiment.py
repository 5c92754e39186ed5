"""`citerec experiment run` and `citerec experiment table`."""

from pathlib import Path
from typing import Annotated

import typer

from citerec.cli.console import ConsoleOutput, write_lines, write_result
from citerec.cli.options import settings_options
from citerec.errors import CiterecError

EXPERIMENTS = Path("experiments")
SHOWN = 3  # metrics printed of a row without expected values

experiment = typer.Typer(no_args_is_help=True, help="Run rows of a results table; write the table.")


@experiment.command()
@settings_options
def run(
    files: Annotated[list[Path], typer.Argument(help="Rows: TOML files; table.toml is skipped.")],
    results: Annotated[Path, typer.Option(help="Folder of the results.")] = EXPERIMENTS / "results",
    *,
    console: ConsoleOutput,
) -> None:
    """Run rows of a table and compare their metrics with the expected values."""
    from citerec.folder import INDEXES
    from citerec.lab.experiment.row import format_measure, read_experiment
    from citerec.lab.experiment.run import Verdict, run_experiment
    from citerec.lab.experiment.run import write_result as write
    from citerec.lab.experiment.table import ABOUT

    failed, errors = False, list[CiterecError]()
    for row in [read_experiment(file) for file in files if file.name != ABOUT]:
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
    if errors:
        raise errors[0]
    if failed:
        raise typer.Exit(1)


@experiment.command()
@settings_options
def table(
    output: Annotated[
        Path, typer.Option(help="The Markdown file; the LaTeX file has the suffix .tex.")
    ] = EXPERIMENTS / "TABLES.md",
    *,
    console: ConsoleOutput,
) -> None:
    """Write the tables of all rows: their committed results and the published values."""
    from citerec.lab.experiment.table import tables, tables_as_latex

    latex = output.with_suffix(".tex")
    write_result(tables(EXPERIMENTS), output)
    write_result(tables_as_latex(EXPERIMENTS), latex)
    console.log(f"the tables are in {output} and {latex}")
