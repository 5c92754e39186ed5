"""The training loop: that of transformers, with examples, a loss and a measure of what is best of our own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from citerec.errors import OutputError
from citerec.train.due import CheckpointTimer
from citerec.train.processes import from_first, wait_for_all
from citerec.train.schedule import Schedule, updates_of_epoch
from citerec.train.workspace import Numbers, Workspace
from citerec.types import Log, Progress

RATE = "examples_per_second"  # in the log
ASKED_EVERY = 10  # updates after which several processes ask the first whether a checkpoint is due
TIMED = 10  # updates, after the first, by which it is said how long all of them will take

Entry = Mapping[str, Any]  # of the log of transformers' Trainer
Measures = Mapping[str, float]


class Examples(Protocol):
    """What is learned from, epoch by epoch."""

    def __len__(self) -> int:
        """Return how many there are in an epoch."""
        ...

    def epoch(self, number: int) -> Numbers:
        """Return the examples of an epoch, from 0; always the same ones in the same order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSpec:
    """What a loop works with."""

    schedule: Schedule
    examples: Examples
    collator: Callable[[Sequence[Numbers]], dict[str, Any]]  # examples to what the net takes
    net: Any  # torch's module: gives the loss
    update: Callable[[Any, Any, Any], Any] | None = (
        None  # (trainer, net, inputs) -> loss, if not as usual
    )
    measure: Callable[[int], Measures | None]  # after so many updates; the first process is asked
    told: Callable[[Entry], str]  # the line that is said of a measure
    timed: Callable[[float], str] | None = None  # the line that is said of the seconds to go, once
    rated: int = 1  # how many make an example, in the rate
    workspace: Workspace
    progress: Progress
    log: Log
    log_loss: bool = False  # whether each entry of the log is worth a line


class EpochRows:
    """The examples as torch's loader reads them: those of one epoch at a time."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples
        self._rows: Numbers | None = None

    def begin(self, epoch: int) -> None:
        """Draw the examples of an epoch, from 0."""
        self._rows = self._examples.epoch(epoch)

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, i: int) -> Numbers:
        if self._rows is None:
            raise IndexError("no epoch has begun")
        return self._rows[i]


def run_loop(course: TrainerSpec, arguments: Any, resume: bool) -> list[Entry]:
    """Train; leave the best weights in `course.net`; return the log.

    The last update is measured, too, if that can be.
    An entry of the log that has `RATE` is a measure, with the mean loss since the one before as `epoch_loss`.

    Args:
        course: What to train.
        arguments: Those of transformers' Trainer, see `pace`.
        resume: Go on from the last checkpoint.
    """
    from transformers import PrinterCallback

    rows = EpochRows(course.examples)
    last = course.workspace.checkpoint() if resume else None
    trainer = _trainer(course, arguments, rows)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_callback(course, trainer, rows))
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    wait_for_all()  # the first removes the checkpoints, which each of them reads
    best = trainer.state.best_model_checkpoint
    if best and not Path(best).is_dir():
        raise OutputError(f"{best}, the best checkpoint, is gone; train again")
    return list(trainer.state.log_history)


def _trainer(course: TrainerSpec, arguments: Any, rows: EpochRows) -> Any:
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    class Loop(Trainer):
        began = (0.0, 0)  # the second and the update since which the rate is taken

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return SequentialSampler(rows)  # an epoch is in random order already

        def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
            if course.update:
                return course.update(self, model, inputs)
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
            return _evaluated(self, course, self.rate())

        def begin(self) -> None:
            self.began = perf_counter(), self.state.global_step

        def rate(self) -> float:
            done = (self.state.global_step - self.began[1]) * course.schedule.batch * course.rated
            return done / max(perf_counter() - self.began[0], 1e-9)

    dataset: Any = rows
    return Loop(
        course.net,
        arguments,
        data_collator=course.collator,
        train_dataset=dataset,
        eval_dataset=dataset,
    )


def _evaluated(trainer: Any, course: TrainerSpec, rate: float) -> dict[str, float]:
    """Measure, log and tell what the weights are worth now; say whether it is enough."""
    state, control = trainer.state, trainer.control
    found = from_first(lambda: course.measure(state.global_step))
    measured = {f"eval_{name}": value for name, value in (found or {}).items()}
    trainer.log(measured | {"epoch_loss": _loss_since(state), RATE: rate})
    if trainer.args.process_index == 0:
        course.log(course.told(state.log_history[-1]))
    control.should_evaluate = False  # else once more, where the training ends here
    control.should_training_stop |= _is_stuck(state, course.schedule)
    trainer.begin()
    return measured


def _callback(course: TrainerSpec, trainer: Any, rows: EpochRows) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def __init__(self) -> None:
            self.times: list[float] = []  # when the first updates were done
            self.timer = CheckpointTimer()

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.timer.done()  # the time until here, such as that of hard negatives, does not count

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rows.begin(state.global_step // updates_of_epoch(args, len(rows)))
            trainer.begin()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            course.progress("training", state.global_step, state.max_steps)
            self._time(state)
            ends = state.global_step % updates_of_epoch(args, len(rows)) == 0
            every = course.schedule.save_steps
            if every and state.global_step % every == 0 and not ends:
                control.should_save = True
            if not control.should_save and not ends and self._is_due(args, state):
                control.should_save = True
                self.timer.begin()
            if course.schedule.eval_steps and state.global_step >= state.max_steps:
                control.should_evaluate = control.should_save = True
            if control.should_save or control.should_evaluate:
                control.should_log = True

        def _is_due(self, args: Any, state: Any) -> bool:
            """Whether a checkpoint is due; of several processes the first decides, asked now and then."""
            if args.world_size > 1 and state.global_step % ASKED_EVERY:
                return False
            return from_first(self.timer.is_due)

        def _time(self, state: Any) -> None:
            self.times.append(perf_counter())
            left = state.max_steps - state.global_step
            if course.timed and len(self.times) == TIMED + 1 and left > 0:
                course.log(course.timed((self.times[-1] - self.times[0]) / TIMED * left))

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if course.log_loss and args.process_index == 0 and "loss" in (logs or {}):
                course.log(f"step {state.global_step}: loss {logs['loss']:.4f}")

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_log = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if args.should_save:
                course.workspace.seal(state.global_step)
            self.timer.done()

    return Watch()


def _loss_since(state: Any) -> float:
    """Return the mean loss of the updates since the last measure, out of the log."""
    before = max((e["step"] for e in state.log_history if RATE in e), default=0)
    mine = [e for e in state.log_history if "loss" in e and e["step"] > before]
    steps = [b - a for a, b in pairwise([before, *(entry["step"] for entry in mine)])]
    return sum(e["loss"] * n for e, n in zip(mine, steps, strict=True)) / max(sum(steps), 1)


def _is_stuck(state: Any, schedule: Schedule) -> bool:
    """Whether the last measures, as many as `patience`, have all been no better than one before them."""
    name, sign = (
        f"eval_{schedule.selection_metric}",
        -1 if schedule.selection_metric == "loss" else 1,
    )
    interpolate_scores = [sign * entry[name] for entry in state.log_history if name in entry]
    return (
        bool(schedule.patience)
        and len(interpolate_scores) - 1 - _first_best(interpolate_scores) >= schedule.patience
    )


def _first_best(interpolate_scores: Sequence[float]) -> int:
    return max(range(len(interpolate_scores)), key=lambda i: interpolate_scores[i], default=0)
