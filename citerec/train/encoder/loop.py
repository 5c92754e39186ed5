"""The training loop: that of transformers, with our examples, our loss and our measure of what is best."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from citerec.encode.config import Precision, has_bfloat16
from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts
from citerec.encode.spec import Fingerprint
from citerec.errors import ConfigError, OutputError
from citerec.train.encoder.batch import Collator
from citerec.train.encoder.config import EncoderTraining, Keep, Loss
from citerec.train.encoder.dev import Dev, DevMeasures, frozen_encoder, measure
from citerec.train.encoder.examples import Examples
from citerec.train.encoder.lists import Rows
from citerec.train.encoder.net import make_net
from citerec.train.encoder.workspace import Workspace
from citerec.types import Note, Progress

LOG_STEPS = 10  # updates whose mean loss is one entry of the log
CHECKPOINTS = 2  # kept, besides the best
RATE = "examples_per_second"  # in the log


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What is known of an epoch once it is over; 0 is before training."""

    epoch: int
    loss: float | None  # mean of its updates
    dev_loss: float | None
    dev_mrr: float | None
    dev_f1: float | None
    examples_per_second: float | None

    def __str__(self) -> str:
        named = {
            "loss": self.loss,
            "dev loss": self.dev_loss,
            "dev MRR": self.dev_mrr,
            "dev F1": self.dev_f1,
            "examples/s": self.examples_per_second,
        }
        said = [f"{name} {value:.4g}" for name, value in named.items() if value is not None]
        return f"epoch {self.epoch}: {', '.join(said) or 'done'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a loop works with."""

    parts: Parts
    fingerprint: Fingerprint  # of the base model
    examples: Examples
    dev: Dev | None
    workspace: Workspace
    tell: Progress
    say: Note

    @property
    def config(self) -> EncoderTraining:
        """How it trains."""
        return self.examples.config

    def measured(self) -> DevMeasures | None:
        """Measure the model as it is now."""
        if self.dev is None:
            return None
        frozen = frozen_encoder(self.parts, self.fingerprint, self.config)
        return measure(self.dev, frozen, self.config)


class EpochRows:
    """The examples as torch's loader reads them: those of one epoch at a time."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples
        self._rows: Rows | None = None

    def begin(self, epoch: int) -> None:
        """Draw the examples of an epoch, from 0."""
        self._rows = self._examples.epoch(epoch)

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, i: int) -> Rows:
        if self._rows is None:
            raise IndexError("no epoch has begun")
        return self._rows[i]


def run_loop(course: Course, arguments: Any, resume: bool) -> list[Epoch]:
    """Train; leave the best weights in `course.parts.model`; return what became of each epoch.

    Args:
        course: What to train.
        arguments: Those of transformers' Trainer, see `trainer_arguments`.
        resume: Go on from the last checkpoint.
    """
    from transformers import PrinterCallback

    rows = EpochRows(course.examples)
    last = course.workspace.checkpoint() if resume else None
    trainer = _trainer(course, arguments, rows, last is not None)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_callback(course, trainer, rows))
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    best = trainer.state.best_model_checkpoint
    if best and not Path(best).is_dir():
        raise OutputError(f"{best}, the best checkpoint, is gone; train again")
    return [_epoch(entry) for entry in trainer.state.log_history if RATE in entry]


def trainer_arguments(config: EncoderTraining, workspace: Workspace, *, has_dev: bool) -> Any:
    """Return the arguments of transformers' Trainer; making them decides on the device."""
    import torch
    from transformers import TrainingArguments

    on_cpu = config.device == "cpu" or not torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=str(workspace.folder),
        use_cpu=on_cpu,
        bf16=_in_bfloat16(torch, config.precision, on_cpu),
        seed=config.seed,
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.step,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=CHECKPOINTS,
        load_best_model_at_end=has_dev,
        metric_for_best_model=f"eval_{config.keep}" if has_dev else None,
        greater_is_better=config.keep is not Keep.LOSS if has_dev else None,
        logging_steps=LOG_STEPS,
        dataloader_drop_last=config.loss is Loss.IN_BATCH,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=[],
        report_to="none",
        disable_tqdm=True,
        log_level="error",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # pyright: ignore[reportPrivateUsage]  # several: torchrun
    return arguments


def plan_steps(arguments: Any, config: EncoderTraining, examples: int) -> int:
    """Set what depends on the number of devices and of examples; return the updates of an epoch.

    Raises:
        ConfigError: If the batch cannot be put together from the steps of all devices, or there is not even one.
    """
    together = config.step * arguments.world_size
    if config.loss is Loss.MEMORY and arguments.world_size > 1:
        raise ConfigError("the memory is that of one process; train over it on one device")
    if config.batch % together:
        raise ConfigError(
            f"batch {config.batch} is no multiple of {config.step} examples on each of {arguments.world_size} devices"
        )
    arguments.gradient_accumulation_steps = config.batch // together
    steps = examples // together if arguments.dataloader_drop_last else -(-examples // together)
    if not steps:
        raise ConfigError(
            f"{examples} examples are fewer than the {together} of a batch; choose a smaller one with --batch"
        )
    updates = -(-steps // arguments.gradient_accumulation_steps)
    arguments.warmup_steps = math.ceil(config.warmup * updates * config.epochs)
    return updates


def _in_bfloat16(torch: Any, wanted: Precision, on_cpu: bool) -> bool:
    if wanted is not Precision.AUTO:
        return wanted is Precision.BFLOAT16
    if on_cpu:
        return has_bfloat16()
    return torch.cuda.is_bf16_supported()


def _trainer(course: Course, arguments: Any, rows: EpochRows, going_on: bool) -> Any:
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    class Loop(Trainer):
        rate = 0.0  # examples in a second, of the epoch that is over

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return SequentialSampler(rows)  # an epoch is in random order already

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
            found = course.measured()
            measured = {f"eval_{k}": v for k, v in asdict(found).items()} if found else {}
            self.log(measured | {"epoch_loss": _epoch_loss(self.state), RATE: self.rate})
            if arguments.process_index == 0:
                course.say(str(_epoch(self.state.log_history[-1])))
            return measured

    on_cpu = arguments.device.type == "cpu"
    net = make_net(course.parts, course.config, _remembered(course, going_on))
    collator = Collator(course.parts, course.examples, on_cpu=on_cpu)
    dataset: Any = rows
    return Loop(net, arguments, data_collator=collator, train_dataset=dataset, eval_dataset=dataset)


def _remembered(course: Course, going_on: bool) -> Vectors | None:
    """Return what the memory begins with: the papers as the base model reads them, cut as in training.

    Who goes on from a checkpoint finds in it what to remember.
    """
    config = course.config
    if config.loss is not Loss.MEMORY:
        return None
    if going_on:
        return np.zeros((len(course.examples.learners), course.parts.dim), np.float32)
    tokens = min(config.train_tokens or course.parts.spec.max_tokens, course.parts.spec.max_tokens)
    short = replace(course.parts, spec=replace(course.parts.spec, max_tokens=tokens))
    encoder = frozen_encoder(short, course.fingerprint, config)
    papers = course.examples.data.index.papers.at(course.examples.learners.tolist())
    return encoder.encode([*papers.values()], lambda _, n, of: course.tell("remembering", n, of))


def _callback(course: Course, trainer: Any, rows: EpochRows) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        began = (0.0, 0)  # the second and the update at which an epoch was begun, or gone on with

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            rows.begin(state.global_step // _updates(args, state))
            self.began = perf_counter(), state.global_step

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            course.tell("training", state.global_step, state.max_steps)
            every, ends = course.config.save_steps, state.global_step % _updates(args, state) == 0
            if every and state.global_step % every == 0 and not ends:
                control.should_save = control.should_log = True

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_log = True
            done = (state.global_step - self.began[1]) * course.config.batch
            trainer.rate = done / max(perf_counter() - self.began[0], 1e-9)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if args.should_save:
                course.workspace.seal(state.global_step)

    return Watch()


def _updates(arguments: Any, state: Any) -> int:
    return state.max_steps // int(arguments.num_train_epochs)


def _epoch_loss(state: Any) -> float:
    """Return the mean loss of the updates of the epoch that is over, out of the log."""
    epoch = round(state.epoch)
    mine = [e for e in state.log_history if "loss" in e and epoch - 1 < e["epoch"] <= epoch]
    before = max((e["step"] for e in state.log_history if e["epoch"] <= epoch - 1), default=0)
    steps = [b - a for a, b in pairwise([before, *(entry["step"] for entry in mine)])]
    return sum(e["loss"] * n for e, n in zip(mine, steps, strict=True)) / max(sum(steps), 1)


def _epoch(entry: Mapping[str, Any]) -> Epoch:
    return Epoch(
        epoch=round(entry["epoch"]),
        loss=entry.get("epoch_loss"),
        dev_loss=entry.get("eval_loss"),
        dev_mrr=entry.get("eval_mrr"),
        dev_f1=entry.get("eval_f1"),
        examples_per_second=entry[RATE],
    )
