"""`citerec train-encoder`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import Index, Quiet, Talk, Threads, Verbose

if TYPE_CHECKING:
    from citerec.train.encoder.train import TrainingReport

ENCODER = Path("models") / "encoder"  # inside the index


def train_encoder(
    index: Index = None,
    model: Annotated[
        str | None, typer.Option(help="What training begins with: a name, a folder or a hub id.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The model folder to make; <index>/models/encoder by default."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was cut short.")
    ] = False,
    recipe: Annotated[str | None, typer.Option(help="specter, modern or memory.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings, a TOML file.")] = None,
    epochs: Annotated[int | None, typer.Option(help="How often each query is seen.")] = None,
    batch: Annotated[int | None, typer.Option(help="Examples in an update.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of chance.")] = None,
    threads: Threads = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train an encoder on the citations of an index."""
    from citerec.folder import find_index, open_index
    from citerec.train.encoder.config import read_training
    from citerec.train.encoder.train import train_encoder as train
    from citerec.train.encoder.workspace import Workspace

    talk = Talk(quiet, verbose)
    options = {
        "recipe": recipe,
        "model": model,
        "epochs": epochs,
        "batch": batch,
        "learning_rate": learning_rate,
        "seed": seed,
        "threads": threads or None,
    }
    training = read_training(config, options)
    folder = find_index(index)
    target = output or folder / ENCODER
    try:
        with talk.progress() as tell:
            report = train(
                open_index(folder),
                target,
                training,
                resume=resume,
                force=force,
                tell=tell,
                say=talk.note,
            )
    except KeyboardInterrupt:
        if Workspace.beside(target).checkpoint():
            talk.note("the last checkpoint is kept; the same command with --resume goes on from it")
        raise
    if not quiet:
        typer.echo(summary(report))


def summary(report: "TrainingReport") -> str:
    """Return what a training made."""
    lines = [
        f"{report.output}",
        f"{report.queries:>12,}  train queries",
        f"{report.examples:>12,}  examples an epoch",
    ]
    measured = {e.epoch: e.dev_mrr for e in report.history if e.dev_mrr is not None}
    if 0 in measured and report.best in measured:
        lines.append(
            f"{measured[report.best]:>12.4f}  dev MRR (epoch {report.best}); {measured[0]:.4f} before training"
        )
    return "\n".join(lines)
