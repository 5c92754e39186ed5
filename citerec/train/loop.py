"""The training loop: the Trainer of transformers with citerec's examples, loss and selection metric.

Several processes may train one model, one per device; the first one measures, writes and logs for all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

from citerec.errors import OutputError
from citerec.train.measures import RATE, Point, Unit, first_best
from citerec.train.schedule import Schedule, updates_of_epoch
from citerec.train.workspace import CheckpointTimer, Numbers, Workspace
from citerec.types import Log, Progress

POLL_EVERY = (
    10  # updates after which the other processes query the first whether a checkpoint is due
)
TIMED_UPDATES = 10  # updates after the first one, from which the remaining time is estimated

Entry = Mapping[str, Any]  # an entry of the log of transformers' Trainer
Measures = Mapping[str, float]
Value = TypeVar("Value")


class TrainingExamples(Protocol):
    """The examples of each epoch."""

    def __len__(self) -> int:
        """Return the number of examples in an epoch."""
        ...

    def epoch(self, number: int) -> Numbers:
        """Return the examples of an epoch, numbered from 0; the same for the same number."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSpec:
    """What the training loop trains, and how it reports."""

    schedule: Schedule
    examples: TrainingExamples
    collator: Callable[[Sequence[Numbers]], dict[str, Any]]  # examples to the inputs of the net
    net: Any  # a torch module that returns the loss
    # (trainer, net, inputs) -> loss; None for the Trainer's own update
    update: Callable[[Any, Any, Any], Any] | None = None
    # Receives the number of updates; called in the first process only.
    measure: Callable[[int], Measures | None]
    unit: Unit
    format_plan: Callable[[int], str] | None = None  # returns the log line of the planned updates
    # Returns the log line of the remaining seconds.
    format_remaining: Callable[[float], str] | None = None
    items_per_example: int = 1  # in the logged rate
    workspace: Workspace
    progress: Progress
    log: Log
    log_loss: bool = False  # whether each loss of the log is a line


class EpochRows:
    """The examples as a torch dataset: those of one epoch at a time."""

    def __init__(self, examples: TrainingExamples) -> None:
        self._examples = examples
        self._rows: Numbers | None = None

    def begin(self, epoch: int) -> None:
        """Draw the examples of an epoch, numbered from 0."""
        self._rows = self._examples.epoch(epoch)

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, i: int) -> Numbers:
        if self._rows is None:
            raise IndexError("no epoch has begun")
        return self._rows[i]


def run_loop(spec: TrainerSpec, arguments: Any, resume: bool) -> list[Entry]:
    """Train; leave the best weights in `spec.net` and return the log.

    The last update is also measured if there are dev queries.
    A log entry with `RATE` is a measure; its `epoch_loss` is the mean loss since the previous measure.

    Args:
        spec: What is trained.
        arguments: The arguments of transformers' Trainer, see `trainer_arguments`.
        resume: Continue from the last checkpoint.

    Raises:
        OutputError: If the best checkpoint was deleted during the training.
    """
    from transformers import PrinterCallback

    rows = EpochRows(spec.examples)
    last = spec.workspace.checkpoint() if resume else None
    trainer = _trainer(spec, arguments, rows)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_callback(spec, trainer, rows))
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    if group := _process_group():
        group.barrier()  # the first process removes the checkpoints that every process reads
    best = trainer.state.best_model_checkpoint
    if best and not Path(best).is_dir():
        raise OutputError(f"the best checkpoint {best} is missing; train again")
    return list(trainer.state.log_history)


def _trainer(spec: TrainerSpec, arguments: Any, rows: EpochRows) -> Any:
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    class Loop(Trainer):
        began = (0.0, 0)  # start of the rate: seconds, update

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return SequentialSampler(rows)  # the examples of an epoch are already shuffled

        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            if spec.update:
                return spec.update(self, model, inputs)
            return super().training_step(model, inputs, num_items_in_batch)

        def compute_loss(
            self,
            model: Any,
            inputs: Any,
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            loss = model(**inputs)
            return (loss, None) if return_outputs else loss

        def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
            return _evaluate(self, spec, self.rate())

        def begin(self) -> None:
            self.began = perf_counter(), self.state.global_step

        def rate(self) -> float:
            done = (
                (self.state.global_step - self.began[1])
                * spec.schedule.batch
                * spec.items_per_example
            )
            return done / max(perf_counter() - self.began[0], 1e-9)

    dataset: Any = rows
    return Loop(
        spec.net,
        arguments,
        data_collator=spec.collator,
        train_dataset=dataset,
        eval_dataset=dataset,
    )


def _evaluate(trainer: Any, spec: TrainerSpec, rate: float) -> dict[str, float]:
    """Measure the current weights and log the measures; stop the training if patience is exhausted."""
    state, control = trainer.state, trainer.control
    measures = from_first(lambda: spec.measure(state.global_step))
    measured = {f"eval_{name}": value for name, value in (measures or {}).items()}
    trainer.log(measured | {"epoch_loss": _loss_since(state), RATE: rate})
    if trainer.args.process_index == 0:
        spec.log(Point.of(state.log_history[-1]).text(spec.unit))
    control.should_evaluate = False  # otherwise the Trainer measures again at the end
    control.should_training_stop |= _is_stuck(state, spec.schedule)
    trainer.begin()
    return measured


def _callback(spec: TrainerSpec, trainer: Any, rows: EpochRows) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def __init__(self) -> None:
            self.times: list[float] = []  # end of each of the first updates, in seconds
            self.timer = CheckpointTimer()

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.timer.done()  # the preparation, such as the search for hard negatives, does not count

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rows.begin(state.global_step // updates_of_epoch(args, len(rows)))
            trainer.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            spec.progress("training", state.global_step, state.max_steps)
            self._time(state)
            ends = state.global_step % updates_of_epoch(args, len(rows)) == 0
            if not control.should_save and not ends and self._is_due(args, state):
                control.should_save = True
                self.timer.begin()
            if spec.schedule.eval_steps and state.global_step >= state.max_steps:
                control.should_evaluate = control.should_save = True
            if control.should_save or control.should_evaluate:
                control.should_log = True

        def _is_due(self, args: Any, state: Any) -> bool:
            """Whether a checkpoint is due; the first process decides for all, every `POLL_EVERY` updates."""
            if args.world_size > 1 and state.global_step % POLL_EVERY:
                return False
            return from_first(self.timer.is_due)

        def _time(self, state: Any) -> None:
            self.times.append(perf_counter())
            left = state.max_steps - state.global_step
            if spec.format_remaining and len(self.times) == TIMED_UPDATES + 1 and left > 0:
                spec.log(
                    spec.format_remaining((self.times[-1] - self.times[0]) / TIMED_UPDATES * left)
                )

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if spec.log_loss and args.process_index == 0 and "loss" in (logs or {}):
                spec.log(f"step {state.global_step}: loss {logs['loss']:.4f}")

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_log = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if args.should_save:
                spec.workspace.seal(state.global_step)
            self.timer.done()

    return Watch()


def _loss_since(state: Any) -> float:
    """Return the mean loss of the updates since the last measure, from the log."""
    before = max((e["step"] for e in state.log_history if RATE in e), default=0)
    losses = [e for e in state.log_history if "loss" in e and e["step"] > before]
    steps = [b - a for a, b in pairwise([before, *(entry["step"] for entry in losses)])]
    return sum(e["loss"] * n for e, n in zip(losses, steps, strict=True)) / max(sum(steps), 1)


def _is_stuck(state: Any, schedule: Schedule) -> bool:
    """Return whether the last `patience` measures are all no better than an earlier one."""
    name = f"eval_{schedule.selection_metric}"
    qualities = [entry[name] for entry in state.log_history if name in entry]
    since_best = len(qualities) - 1 - first_best(qualities)
    return bool(schedule.patience) and since_best >= schedule.patience


def from_first(make: Callable[[], Value]) -> Value:
    """Call `make` in the first process and return its result in every process."""
    group = _process_group()
    if group is None:
        return make()
    values: list[Any] = [make() if group.get_rank() == 0 else None]
    group.broadcast_object_list(values, src=0)
    return values[0]


def is_first() -> bool:
    """Whether this is the first process, which writes and logs for all."""
    group = _process_group()
    return group is None or group.get_rank() == 0


def _process_group() -> Any:
    """Return torch's module for distributed processes; None in a single process."""
    from torch import distributed

    initialized: bool = distributed.is_available() and distributed.is_initialized()
    return distributed if initialized else None
