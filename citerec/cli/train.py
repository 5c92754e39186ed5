"""`citerec train-encoder`, `citerec train-reranker` and `citerec train-ranker`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citerec.cli.console import ConsoleOutput, Quiet, Threads, Verbose, write_lines
from citerec.cli.interrupts import interruptible
from citerec.cli.train_summaries import (
    ranker_summary,
    reranker_summary,
    summary,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citerec.train.joined import TrainingIndex

ENCODER, RERANKER = Path("models") / "encoder", Path("models") / "reranker"  # inside the index
RANKER = Path("models") / "ranker"

Base = Annotated[str | None, typer.Option(help="The base model: a name, a folder or a hub id.")]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted training.")]
Config = Annotated[Path | None, typer.Option(help="A TOML file of settings.")]
Seed = Annotated[int | None, typer.Option(help="Random seed.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]
Indexes = Annotated[
    list[Path] | None,
    typer.Option("--index", help="The index folder; may be repeated to train on several."),
]
DevIndexes = Annotated[
    list[Path] | None,
    typer.Option(
        "--dev-index",
        help="An index whose dev queries select the weights, in place of those trained on; may be repeated.",
    ),
]


def train_encoder(
    ctx: typer.Context,
    index: Indexes = None,
    dev_index: DevIndexes = None,
    model: Base = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The model folder to create; <index>/models/encoder of the first index by default."
        ),
    ] = None,
    resume: Resume = False,
    recipe: Annotated[
        str | None,
        typer.Option(help="specter, modern, memory or linear."),
    ] = None,
    config: Config = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.")] = None,
    batch: Annotated[int | None, typer.Option(help="Examples per update.")] = None,
    seed: Seed = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train an encoder on the citations of one or several indexes."""
    from citerec.train.encoder.config import EncoderTraining
    from citerec.train.encoder.train import train_encoder as train
    from citerec.train.loop import is_first

    console = ConsoleOutput(quiet, verbose)
    options = {
        "recipe": recipe,
        "model": model,
        "epochs": epochs,
        "batch": batch,
        "seed": seed,
        "threads": threads or None,
    }
    training = EncoderTraining.read(config, options)
    opened = _open(index or [None])
    target = output or opened.path / ENCODER
    with interruptible(target, console, ctx), console.progress() as progress:
        report = train(
            opened,
            target,
            training,
            dev_index=_open(dev_index) if dev_index else None,
            resume=resume,
            force=force,
            progress=progress,
            log=console.log,
        )
    if not quiet and is_first():
        write_lines(*summary(report).split("\n"))
    _warn_of_old_vectors(opened, target, console)


def train_reranker(
    ctx: typer.Context,
    index: Indexes = None,
    dev_index: DevIndexes = None,
    model: Base = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The model folder to create; <index>/models/reranker of the first index by default."
        ),
    ] = None,
    resume: Resume = False,
    recipe: Annotated[str | None, typer.Option(help="paper, paper-small or strong.")] = None,
    config: Config = None,
    epochs: Annotated[int | None, typer.Option(help="Number of epochs.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of updates, in place of --epochs.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Pairs per update; lists with a recipe of lists.")
    ] = None,
    seed: Seed = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a reranker on the citations of one or several indexes."""
    from citerec.train.loop import is_first
    from citerec.train.reranker.config import RerankerTraining
    from citerec.train.reranker.train import train_reranker as train

    console = ConsoleOutput(quiet, verbose)
    options = {
        "recipe": recipe,
        "model": model,
        "epochs": epochs,
        "steps": steps,
        "batch": batch,
        "seed": seed,
        "threads": threads or None,
    }
    training = RerankerTraining.read(config, options)
    opened = _open(index or [None])
    target = output or opened.path / RERANKER
    with interruptible(target, console, ctx), console.progress() as progress:
        report = train(
            opened,
            target,
            training,
            dev_index=_open(dev_index) if dev_index else None,
            resume=resume,
            force=force,
            progress=progress,
            log=console.log,
        )
    if not quiet and is_first():
        write_lines(*reranker_summary(report).split("\n"))


def train_ranker(
    ctx: typer.Context,
    index: Indexes = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The model folder to create; <index>/models/ranker of the first index by default."
        ),
    ] = None,
    resume: Resume = False,
    config: Config = None,
    seed: Seed = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train the learning-to-rank model on the citations of one or several indexes."""
    from citerec.folder import find_index, open_index
    from citerec.java import start_jvm
    from citerec.train.ranker.config import RankerTraining
    from citerec.train.ranker.train import train_ranker as train

    console = ConsoleOutput(quiet, verbose)
    options = {"seed": seed, "threads": threads or None}
    training = RankerTraining.read(config, options)
    folders = [find_index(one) for one in index or [None]]
    target = output or folders[0] / RANKER
    start_jvm(None)
    with interruptible(target, console, ctx), console.progress() as progress:
        indexes = [open_index(folder) for folder in folders]
        report = train(
            indexes,
            target,
            training,
            resume=resume,
            force=force,
            progress=progress,
            log=console.log,
        )
    if not quiet:
        write_lines(*ranker_summary(report).split("\n"))


def _open(folders: "Sequence[Path | None]") -> "TrainingIndex":
    """Open the indexes to train on, as one."""
    from citerec.folder import find_index, open_index
    from citerec.train.joined import join

    return join([open_index(find_index(folder)) for folder in folders])


def _warn_of_old_vectors(opened: "TrainingIndex", model: Path, console: ConsoleOutput) -> None:
    """Say how to go on with an index that was embedded by the model which the new one replaced."""
    from citerec.train.joined import parts_of
    from citerec.train.record import encoder_folder

    for index in parts_of(opened):
        folder = encoder_folder(index)
        if folder and folder.resolve() == model.resolve():
            console.warn(
                f"{index.path} was embedded by the model that this one replaced, and cannot be searched before it is "
                f"embedded again: citerec encode --index {index.path} --encoder {model}"
            )
