"""`citerec train`, `citerec train-encoder`, `citerec train-reranker` and `citerec train-ranker`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from citerec.cli.interrupts import interruptible

if TYPE_CHECKING:
    from citerec.folder import IndexFolder
    from citerec.train.trainer import TrainingReport

Base = Annotated[str | None, typer.Option(help="The base model: a name, a folder or a hub id.")]
Output = Annotated[
    Path | None, typer.Option(help="The model folder to create; inside the index by default.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted training.")]
Config = Annotated[Path | None, typer.Option(help="A TOML file of settings.")]
Epochs = Annotated[int | None, typer.Option(help="Number of epochs.")]
Steps = Annotated[int | None, typer.Option(help="Number of updates, in place of --epochs.")]
Batch = Annotated[int | None, typer.Option(help="Examples per update.")]
Rate = Annotated[float | None, typer.Option(help="Learning rate.")]
Queries = Annotated[int | None, typer.Option(help="Train queries at most; 0 for all.")]
Loss = Annotated[str | None, typer.Option(help="triplet or in-batch; reranker: bce or softmax.")]
Negatives = Annotated[str | None, typer.Option(help="The source of negatives.")]
Seed = Annotated[int | None, typer.Option(help="Random seed.")]
Device = Annotated[str | None, typer.Option(help="auto or cpu.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing model.")]


def train_encoder(
    ctx: typer.Context,
    index: Index = None,
    model: Base = None,
    output: Output = None,
    resume: Resume = False,
    recipe: Annotated[str | None, typer.Option(help="specter or strong.")] = None,
    config: Config = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch: Batch = None,
    learning_rate: Rate = None,
    loss: Loss = None,
    negatives: Negatives = None,
    queries: Queries = None,
    seed: Seed = None,
    device: Device = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train an encoder on the citations of an index."""
    from citerec.train.encoder import train_encoder as train
    from citerec.train.record import encoder_folder
    from citerec.train.settings import EncoderTraining

    console = ConsoleOutput(quiet, verbose)
    training = EncoderTraining.read(config, _given(EncoderTraining.model_fields, ctx))
    opened = _open(index)
    target = output or opened.models / "encoder"
    with interruptible(target, console, ctx), console.progress() as progress:
        report = train(
            opened, target, training, resume=resume, force=force, progress=progress, log=console.log
        )
    _summarise(report, console)
    folder = encoder_folder(opened)
    if folder and folder.resolve() == target.resolve():
        console.warn(
            f"{opened.path} was embedded by the model that this one replaced, and cannot be searched before it is "
            f"embedded again: citerec encode --index {opened.path} --encoder {target}"
        )


def train_reranker(
    ctx: typer.Context,
    index: Index = None,
    model: Base = None,
    output: Output = None,
    resume: Resume = False,
    recipe: Annotated[str | None, typer.Option(help="paper or strong.")] = None,
    config: Config = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch: Batch = None,
    learning_rate: Rate = None,
    loss: Loss = None,
    negatives: Negatives = None,
    queries: Queries = None,
    seed: Seed = None,
    device: Device = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train a reranker on the citations of an index."""
    from citerec.java import start_jvm
    from citerec.train.reranker import train_reranker as train
    from citerec.train.settings import RerankerTraining

    console = ConsoleOutput(quiet, verbose)
    training = RerankerTraining.read(config, _given(RerankerTraining.model_fields, ctx))
    start_jvm(None)
    opened = _open(index)
    target = output or opened.models / "reranker"
    with interruptible(target, console, ctx), console.progress() as progress:
        report = train(
            opened, target, training, resume=resume, force=force, progress=progress, log=console.log
        )
    _summarise(report, console)


def train_ranker(
    ctx: typer.Context,
    index: Index = None,
    output: Output = None,
    resume: Resume = False,
    config: Config = None,
    queries: Queries = None,
    seed: Seed = None,
    threads: Threads = 0,
    force: Force = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train the learning-to-rank model on the citations of an index."""
    from citerec.java import start_jvm
    from citerec.train.ranker import train_ranker as train
    from citerec.train.settings import RankerTraining

    console = ConsoleOutput(quiet, verbose)
    training = RankerTraining.read(config, _given(RankerTraining.model_fields, ctx))
    start_jvm(None)
    opened = _open(index)
    target = output or opened.models / "ranker"
    with interruptible(target, console, ctx), console.progress() as progress:
        report = train(
            [opened],
            target,
            training,
            resume=resume,
            force=force,
            progress=progress,
            log=console.log,
        )
    if not quiet:
        after = next(iter(report.after.values()))
        write_lines(f"{target}", f"{report.queries:>12,}  training queries")
        for name, shown in (("f1@20", "dev F1@20"), ("mrr", "dev MRR")):
            write_lines(
                f"{after[name]:>12.4f}  {shown}; {report.before[name]:.4f} of the first stage"
            )


def train(
    ctx: typer.Context,
    index: Index = None,
    budget: Annotated[
        str,
        typer.Option(
            help="minutes: the ranker; hour: small models on a CPU; night: the models of the papers on a GPU."
        ),
    ] = "minutes",
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with the tables [encoder], [reranker] and [ranker]."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the steps, and train nothing.")
    ] = False,
    resume: Resume = False,
    force: Annotated[
        bool, typer.Option("--force", help="Use new models that are not better on dev, too.")
    ] = False,
    seed: Seed = None,
    threads: Threads = 0,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Train the models of an index in order, and use those that are better on dev."""
    from rich.table import Table

    from citerec.java import start_jvm
    from citerec.train.all import Budget, IndexTraining, TrainPlan
    from citerec.train.data import load_training_data

    console = ConsoleOutput(quiet, verbose)
    if budget not in [*Budget]:
        raise typer.BadParameter(f"expected {', '.join(Budget)}", param_hint="--budget")
    plan = TrainPlan.read(Budget(budget), config, {"seed": seed, "threads": threads or None})
    start_jvm(None)
    opened = _open(index)
    if dry_run:
        queries = len(load_training_data(opened).queries)
        write_lines(f"{opened.path}: {queries:,} train queries; budget {budget}", *plan.lines())
        return
    with interruptible(opened.models / "all", console, ctx), console.progress() as progress:
        reports = IndexTraining(
            path=opened.path,
            plan=plan,
            resume=resume,
            force=force,
            progress=progress,
            log=console.log,
        ).run()
    if quiet:
        return
    table = Table("model", "on dev", "before", "after", "", box=None, pad_edge=False)
    for one in reports:
        cells = ["" if value is None else f"{value:.4f}" for value in (one.before, one.after)]
        table.add_row(one.model, one.metric, *cells, "used" if one.is_used else "not used")
    show(table)


def _open(index: Path | None) -> "IndexFolder":
    from citerec.folder import find_index, open_index

    return open_index(find_index(index))


def _given(names: Mapping[str, Any], ctx: typer.Context) -> dict[str, Any]:
    """Return the options that are settings of a trainer, by name; None for those that are not given."""
    values = {name: value for name, value in ctx.params.items() if name in names}
    return values | {"threads": values.get("threads") or None}


def _summarise(report: "TrainingReport", console: ConsoleOutput) -> None:
    """Print what a training of a transformer gave."""
    from citerec.train.trainer import is_first

    if console.quiet or not is_first():
        return
    write_lines(
        f"{report.output}",
        f"{report.queries:>12,}  train queries",
        f"{report.examples:>12,}  examples an epoch",
    )
    for name, value in report.after.items():
        write_lines(
            f"{value:>12.4f}  dev {name} (update {report.step:,}); {report.before[name]:.4f} before"
        )
