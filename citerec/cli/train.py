"""`citerec train`, `citerec train-encoder`, `citerec train-reranker` and `citerec train-ranker`."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citerec.cli.console import ConsoleOutput, show
from citerec.cli.options import Index, open_named, settings_options
from citerec.config import Settings, setting
from citerec.train.settings import (
    EncoderTraining,
    RankerTraining,
    RerankerTraining,
    TrainPlan,
)

if TYPE_CHECKING:
    from citerec.index.folder import IndexFolder
    from citerec.train.trainer import TrainingReport

COMMON = {f"--{name}": name for name in ("queries", "seed", "threads")}
FLAGS = {
    f"--{name}": name
    for name in ("model", "recipe", "epochs", "steps", "batch", "device")
} | COMMON
PLAN_FLAGS = {
    f"--{name}": " ".join(f"{step}.{name}" for step in TrainPlan.model_fields)
    for name in ("seed", "threads")
}
RANKER_FLAGS = COMMON | {
    "--retriever": "retrievers",
    "--reranker": "reranker",
    "--feature": "features",
}


NOT_BETTER = "not used by itself: it is not better on dev queries than {}"
NOT_MEASURED = "not used by itself: there are no dev queries to measure it on"


class RunOptions(Settings):
    """What becomes of earlier runs."""

    resume: bool = setting(False, "Resume an interrupted run.")
    force: bool = setting(False, "Use new models that are not better on dev, too.")


class ModelOptions(RunOptions):
    """Where a model goes."""

    output: Path | None = setting(
        None, "The model folder to create; inside the index by default."
    )
    force: bool = setting(False, "Replace what exists.")


@settings_options
def train_encoder(
    ctx: typer.Context,
    *,
    index: Index = None,
    options: ModelOptions,
    training: Annotated[EncoderTraining, FLAGS],
    console: ConsoleOutput,
) -> None:
    """Train an encoder on the citations of an index."""
    from citerec.train.encoder import train_encoder as train
    from citerec.train.trainer import encoder_folder

    with _training(index, "encoder", options, console, ctx) as (opened, how):
        report = train(opened, options.output, training, **how)
    folder = encoder_folder(opened)
    if folder and folder.resolve() == report.output.resolve():
        console.warn(
            f"{opened.path} was embedded by the model that this one replaced, and cannot be searched before it is "
            f"embedded again: citerec encode --index {opened.path} --encoder {report.output}"
        )
    _summarise(
        report, console, f"its base; try it: citerec encode --encoder {report.output}"
    )


@settings_options
def train_reranker(
    ctx: typer.Context,
    *,
    index: Index = None,
    options: ModelOptions,
    training: Annotated[RerankerTraining, FLAGS],
    console: ConsoleOutput,
) -> None:
    """Train a reranker on the citations of an index."""
    from citerec.train.reranker import train_reranker as train

    with _training(index, "reranker", options, console, ctx) as (opened, how):
        report = train(opened, options.output, training, **how)
    _summarise(
        report,
        console,
        f"its candidates; try it: --ranker none --reranker {report.output}",
    )


@settings_options
def train_ranker(
    ctx: typer.Context,
    *,
    index: Index = None,
    options: ModelOptions,
    training: Annotated[RankerTraining, RANKER_FLAGS],
    console: ConsoleOutput,
) -> None:
    """Train the learning-to-rank model on the citations of an index."""
    from citerec.train.ranker import train_ranker as train

    with _training(index, "ranker", options, console, ctx) as (opened, how):
        report = train([opened], options.output, training, **how)
    after = next(iter(report.after.values()))
    lines = [
        f"{report.output}",
        f"{report.queries:>12,}  training queries",
        *(
            f"{after[name]:>12.4f}  {shown}; {report.before[name]:.4f} of the first stage"
            for name, shown in (("f1@20", "dev F1@20"), ("mrr", "dev MRR"))
        ),
    ]
    if report.in_use is not None:
        lines.append(f"{report.in_use:>12.4f}  dev F1@20 of the ranker in use")
    if options.output is None and not report.is_better:
        better = f"the ranker in use; try it: --ranker {report.output}"
        lines.append(NOT_BETTER.format(better))
    console.summary(*lines)


@settings_options
def train(
    ctx: typer.Context,
    *,
    index: Index = None,
    options: RunOptions,
    plan: Annotated[TrainPlan, PLAN_FLAGS],
    console: ConsoleOutput,
) -> None:
    """Train the models of an index in order, and use those that are better on dev."""
    from rich.table import Table

    from citerec.train.all import train_all

    with _training(index, "all", options, console, ctx) as (opened, how):
        reports = train_all(opened.path, plan, **how)
    if console.quiet:
        return
    table = Table("model", "on dev", "before", "after", "", box=None, pad_edge=False)
    for step in reports:
        cells = [
            "" if value is None else f"{value:.4f}"
            for value in (step.before, step.after)
        ]
        table.add_row(
            step.model, step.metric, *cells, "used" if step.is_used else "not used"
        )
    show(table)


@contextmanager
def _training(
    index: Path | None,
    name: str,
    options: RunOptions,
    console: ConsoleOutput,
    ctx: typer.Context,
) -> "Generator[tuple[IndexFolder, dict[str, Any]]]":
    """Yield the index, and how its training runs; if it is interrupted, log how to resume it."""
    from citerec.index.java import start_jvm
    from citerec.train.trainer import TrainingState

    if name != "encoder":  # the others search
        start_jvm()
    opened = open_named(index)
    output = options.output if isinstance(options, ModelOptions) else None
    target = output or opened.models / name
    how = {"resume": options.resume, "force": options.force}
    try:
        with console.progress() as progress:
            yield opened, {**how, "progress": progress, "log": console.log}
    except KeyboardInterrupt:
        last = TrainingState(target).checkpoint
        saved = (
            f"the checkpoint of update {int(last.name[11:]):,}"
            if last
            else "what was prepared"
        )
        arguments: tuple[str, ...] = ctx.find_root().obj
        resume = () if "--resume" in arguments else ("--resume",)
        console.log(
            f"{saved} is kept; resume: {shlex.join(('citerec', *arguments, *resume))}"
        )
        raise


def _summarise(
    report: "TrainingReport", console: ConsoleOutput, stands_on: str
) -> None:
    """Print what a training of a transformer gave."""
    from citerec.train.trainer import is_first

    if not is_first():
        return
    first = report.history[0]
    best = report.best
    lines = [
        f"{report.output}",
        f"{report.queries:>12,}  train queries",
        f"{report.examples:>12,}  examples an epoch",
        *(
            f"{value:>12.4f}  dev {name} (update {best.step:,}); {first.dev[name]:.4f} before"
            for name, value in best.dev.items()
        ),
    ]
    if not report.is_better:
        lines.append(NOT_BETTER.format(stands_on) if best.dev else NOT_MEASURED)
    console.summary(*lines)
