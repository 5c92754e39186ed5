"""What both transformer trainings share around the Trainer: its arguments, checkpoints, log, and the training folder.

The loop, the schedule and the checkpoints are those of transformers' Trainer (sentence-transformers subclasses it);
several GPUs train together under `accelerate launch`.
"""

import math
import os
import shutil
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.config import Precision, has_bfloat16
from citerec.errors import ConfigError, OutputError, extra, writing
from citerec.train.settings import ModelTraining
from citerec.types import Log, Progress

EVERY = 600.0  # seconds between checkpoints: what a crash loses at most
WEIGHT_DECAY = 0.01
PLAN = "plan.json"

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The measures after a number of updates; step 0 is before the training."""

    step: int
    epoch: float
    loss: float | None = None  # mean over the updates since the previous point
    dev: Mapping[str, float]  # measures on the dev queries, by name; empty without dev queries

    def __str__(self) -> str:
        figures = {"loss": self.loss} if self.loss is not None else {}
        figures |= {f"dev {name}": value for name, value in self.dev.items()}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
        return f"update {self.step:,}: {shown}" if self.step else f"before: {shown}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """The result of the training of a transformer."""

    output: Path
    queries: int
    examples: int  # per epoch
    before: Mapping[str, float]  # on the dev queries: of the base encoder, or of the first stage
    after: Mapping[str, float]  # of the saved weights; empty without dev queries, as `before`
    history: tuple[Point, ...]
    step: int  # the update of the saved weights


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder next to a model folder that keeps checkpoints and prepared data of an unfinished training."""

    folder: Path

    @classmethod
    def for_model(cls, output: Path) -> "Workspace":
        """Return the training folder that belongs to a model folder."""
        output = output.absolute()
        return cls(output.with_name(f".{output.name}.training"))

    @contextmanager
    def open(self, plan: Mapping[str, Any], *, resume: bool, log: Log) -> Generator[None]:
        """Start or resume a training with a plan; a block that ends without an error removes the folder.

        Raises:
            ConfigError: If the training in the folder was started with another plan.
            OutputError: If the folder cannot be written.
        """
        now = orjson.loads(orjson.dumps(plan))
        if resume and self.is_there and is_first():
            started = orjson.loads((self.folder / PLAN).read_bytes())
            if changed := [k for k in started | now if started.get(k) != now.get(k)]:
                raise ConfigError(
                    f"the training in {self.folder} had other settings: {changed[0]} was "
                    f"{started.get(changed[0])}, is {now.get(changed[0])}; use the same ones, or leave --resume out"
                )
        elif is_first():
            if resume:
                log(f"nothing to resume at {self.folder}: starting again")
            with writing(self.folder):
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir(parents=True)
                (self.folder / PLAN).write_bytes(orjson.dumps(plan, option=orjson.OPT_INDENT_2))
        try:
            yield
        except ConfigError:  # nothing to learn from; what was prepared is of no use
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if is_first():
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def is_there(self) -> bool:
        """Whether there is an unfinished training."""
        return (self.folder / PLAN).is_file()

    @property
    def checkpoint(self) -> Path | None:
        """The last complete checkpoint."""
        whole = self.folder.glob("checkpoint-*/trainer_state.json")  # which is written last
        return max((f.parent for f in whole), key=lambda f: int(f.name[11:]), default=None)

    def kept(self, name: str, make: Callable[[], Arrays]) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that an interrupted training prepared under a name, or make and keep them."""
        file = self.folder / f"{name}.npz"
        if not file.is_file():
            with writing(file):
                np.savez(self.folder / f"{name}.tmp.npz", allow_pickle=False, **make())
                (self.folder / f"{name}.tmp.npz").replace(file)
        with np.load(file, allow_pickle=False) as read:
            return {part: read[part] for part in read.files}


def prepare(config: ModelTraining) -> Any:
    """Import the training packages, set seed and threads; return transformers.

    Raises:
        MissingExtraError: If a package of the extra `train` is not installed.
    """
    # Busy waiting of OpenMP threads slows training tenfold on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    with extra("train"):
        import accelerate  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import torch
        import transformers
    transformers.logging.set_verbosity_error()
    transformers.set_seed(config.seed)  # a new classification head is initialised at random
    if config.threads:
        torch.set_num_threads(config.threads)
    return transformers


@contextmanager
def first_process_first() -> Generator[None]:
    """Let the first process of a training prepare and keep the data, before the others read it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    from accelerate import PartialState

    state: Any = PartialState(timeout=timedelta(days=1))  # a search of millions of queries
    with state.main_process_first():
        yield


def arguments_of(
    kind: Any, config: ModelTraining, folder: Path, examples: int, metric: str | None
) -> Any:
    """Return the arguments of a Trainer.

    Args:
        kind: Their class.
        config: The settings.
        folder: For the checkpoints.
        examples: The number of examples in an epoch.
        metric: The dev measure that selects the weights; None without dev queries.

    Raises:
        ConfigError: If the devices cannot share a batch evenly, or an epoch has no complete batch.
    """
    import torch

    on_cpu = config.device == "cpu" or not torch.cuda.is_available()
    bfloat16 = has_bfloat16() if on_cpu else torch.cuda.is_bf16_supported()
    strategy = "steps" if config.eval_steps else "epoch"
    arguments = kind(
        output_dir=str(folder),
        use_cpu=on_cpu,
        bf16=bfloat16 if config.dtype is Precision.AUTO else config.dtype is Precision.BFLOAT16,
        seed=config.seed,
        num_train_epochs=config.epochs,
        max_steps=config.steps or -1,
        learning_rate=config.learning_rate,
        weight_decay=WEIGHT_DECAY,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        eval_strategy=strategy if metric else "no",
        save_strategy=strategy,
        eval_steps=config.eval_steps or None,
        save_steps=config.eval_steps or 500,
        save_total_limit=2,
        load_best_model_at_end=metric is not None,
        metric_for_best_model=f"eval_{metric}" if metric else None,
        greater_is_better=True,
        logging_steps=10,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=[],
        report_to="none",
        disable_tqdm=True,
        log_level="error",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several: accelerate launch
    per_device = config.device_batch or max(config.batch // arguments.world_size, 1)
    together = per_device * arguments.world_size
    if config.batch % together:
        raise ConfigError(
            f"batch must be a multiple of {together}, {per_device} examples on each of "
            f"{arguments.world_size} devices; got {config.batch}"
        )
    arguments.per_device_train_batch_size = per_device
    arguments.gradient_accumulation_steps = config.batch // together
    total = config.steps or math.ceil(examples / config.batch) * config.epochs
    arguments.warmup_steps = math.ceil(config.warmup * total)
    return arguments


def train(
    trainer: Any,
    workspace: Workspace,
    before: Mapping[str, float],
    *,
    resume: bool,
    on_epoch: Callable[[int], None] = lambda number: None,
    progress: Progress,
    log: Log,
) -> tuple[tuple[Point, ...], Point]:
    """Run a Trainer; leave the best weights in its model. Return the history, and the point of these weights.

    A first Ctrl-C or SIGTERM ends the training after the update at hand, with a checkpoint; a second one at once.

    Args:
        trainer: A Trainer of transformers whose evaluation is logged under `eval_` names.
        workspace: The training folder.
        before: The measures before the training.
        resume: Continue from the last checkpoint.
        on_epoch: Called before each epoch with its number, from 0.
        progress: Receives the number of updates.
        log: Receives each evaluation.

    Raises:
        ConfigError: If the training made no update, or diverged.
    """
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    metric = trainer.args.metric_for_best_model
    first = Point(step=0, epoch=0.0, dev=before)
    log(str(first) if metric else "no dev queries: the last weights are saved")
    last = workspace.checkpoint if resume else None
    if last:
        log(f"resuming from {last.name}")
    with _stoppable() as stopping:
        trainer.add_callback(_watch(trainer, on_epoch, stopping, progress, log))
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    history = (first, *_points(trainer.state.log_history, metric))
    if len(history) == 1:
        raise ConfigError("the training made no update; raise epochs or steps")
    if not all(bool(weights.isfinite().all()) for weights in trainer.model.parameters()):
        raise ConfigError(
            "the training diverged: weights became infinite or no numbers; lower learning_rate, now "
            f"{trainer.args.learning_rate:g}"
        )
    name = metric.removeprefix("eval_") if metric else ""
    best = max(history[1:], key=lambda point: point.dev[name]) if metric else history[-1]
    if metric and not Path(trainer.state.best_model_checkpoint or "").is_dir():
        raise OutputError("the checkpoint of the best weights is missing; train again")
    if metric and best.dev[name] <= before[name]:
        log(f"the training did not improve dev {name}: {before[name]:.4f}, {best.dev[name]:.4f}")
    return history, best


@contextmanager
def _stoppable() -> Generator[list[int]]:
    """Collect a signal in the yielded list, and raise it again at the end; a second one is raised at once."""
    caught: list[int] = []
    former: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    def catch(number: int, _: object) -> None:
        caught.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        former = {n: signal.signal(n, catch) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        restore()
    if caught:
        signal.raise_signal(caught[0])
        raise KeyboardInterrupt


def _watch(
    trainer: Any,
    on_epoch: Callable[[int], None],
    stopping: Sequence[int],
    progress: Progress,
    log: Log,
) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        saved = monotonic()

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            on_epoch(int(state.epoch or 0))

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress("training", state.global_step, state.max_steps)
            alone = args.world_size == 1  # clocks of several processes would not agree
            if stopping or (alone and monotonic() - self.saved > EVERY):
                control.should_save = True
            if args.eval_steps and state.global_step >= state.max_steps:
                control.should_evaluate = args.eval_strategy != "no"
                control.should_save = True
            control.should_training_stop |= bool(stopping)
            control.should_log |= control.should_evaluate or control.should_save

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_log = True
            if stopping:
                control.should_evaluate = False

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.saved = monotonic()

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_evaluate = False  # at the end of an epoch it may be due twice
            if state.is_world_process_zero:
                log(str(_points(state.log_history, args.metric_for_best_model)[-1]))

    return Watch()


def _points(entries: Sequence[Mapping[str, Any]], metric: str | None) -> list[Point]:
    """Return the evaluations of a Trainer's log, each with the mean loss since the one before; without, its end."""
    points: list[Point] = []
    losses: list[tuple[int, float]] = []  # updates, mean loss
    seen = 0
    for entry in entries:
        if "loss" in entry:
            losses.append((entry["step"] - seen, entry["loss"]))
            seen = entry["step"]
        if metric in entry or (metric is None and "train_runtime" in entry):
            count = sum(n for n, _ in losses)
            loss = sum(n * one for n, one in losses) / count if count else None
            dev = {k[5:]: v for k, v in entry.items() if k.startswith("eval_") and k != "eval_loss"}
            dev = {k: v for k, v in dev.items() if "per_second" not in k and k != "runtime"}
            points.append(Point(step=entry["step"], epoch=entry["epoch"], loss=loss, dev=dev))
            losses = []
    return points


def history_json(history: Sequence[Point]) -> list[dict[str, Any]]:
    """Return a history as JSON values."""
    return [asdict(point) for point in history]


def is_first() -> bool:
    """Whether this is the first process of a training, which writes and logs for all."""
    return int(os.environ.get("RANK", "0")) == 0
