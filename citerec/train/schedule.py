"""How long a model is trained, and how fast, and what transformers' Trainer is told of it."""

import math
from dataclasses import dataclass
from typing import Any

from citerec.encode.config import Precision, has_bfloat16, requested_precision
from citerec.errors import ConfigError
from citerec.train.workspace import Workspace

CHECKPOINTS = 2  # kept, besides the best
WAIT = (
    24 * 60 * 60
)  # seconds that processes wait for the first, which searches and measures for all


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long a model is trained, and how fast."""

    epochs: int
    steps: int = 0  # updates in all; 0 for those of the epochs
    batch: int  # examples in an update of the weights
    step: int = 0  # of them in a step of one device; 0 for its part of the batch
    learning_rate: float
    warmup: float = 0.0  # share of the updates over which the rate rises; then it falls to 0
    weight_decay: float = 0.0
    drop_last: bool = False  # whether a batch that is not full is left out
    log_steps: int = 10  # updates whose mean loss is one entry of the log
    save_steps: int = 0  # updates between checkpoints, besides those that are measured; 0 for none
    eval_steps: int = 0  # updates between measures; 0 for once an epoch
    patience: int = 0  # measures without a gain, after which it ends; 0 for never
    selection_metric: str = (
        "loss"  # the measure by which the best weights are found; of a loss less is better
    )
    seed: int = 0
    precision: Precision = Precision.AUTO
    device: str = "auto"  # or cpu


def trainer_arguments(schedule: Schedule, workspace: Workspace, *, has_dev: bool) -> Any:
    """Return the arguments of transformers' Trainer; making them decides on the device."""
    import torch
    from transformers import TrainingArguments

    on_cpu = schedule.device == "cpu" or not torch.cuda.is_available()
    every: dict[str, Any] = {"eval_steps": schedule.eval_steps, "save_steps": schedule.eval_steps}
    arguments = TrainingArguments(
        output_dir=str(workspace.folder),
        use_cpu=on_cpu,
        bf16=_in_bfloat16(torch, schedule.precision, on_cpu),
        seed=schedule.seed,
        num_train_epochs=schedule.epochs,
        per_device_train_batch_size=schedule.step or schedule.batch,
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        eval_strategy="steps" if schedule.eval_steps else "epoch",
        save_strategy="steps" if schedule.eval_steps else "epoch",
        **(every if schedule.eval_steps else {}),
        save_total_limit=CHECKPOINTS,
        load_best_model_at_end=has_dev,
        metric_for_best_model=f"eval_{schedule.selection_metric}" if has_dev else None,
        greater_is_better=schedule.selection_metric != "loss" if has_dev else None,
        logging_steps=schedule.log_steps,
        dataloader_drop_last=schedule.drop_last,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=[],
        report_to="none",
        ddp_timeout=WAIT,
        disable_tqdm=True,
        log_level="error",
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # pyright: ignore[reportPrivateUsage]  # several: torchrun
    return arguments


def plan_steps(arguments: Any, schedule: Schedule, examples: int) -> int:
    """Set what depends on the number of devices and of examples; return the updates in all.

    Raises:
        ConfigError: If the batch cannot be put together from the steps of all devices, or there is not even one.
    """
    if not schedule.step:
        arguments.per_device_train_batch_size = max(schedule.batch // arguments.world_size, 1)
    each = arguments.per_device_train_batch_size
    together = each * arguments.world_size
    if schedule.batch % together:
        raise ConfigError(
            f"batch {schedule.batch} is no multiple of {each} examples on each of {arguments.world_size} devices"
        )
    arguments.gradient_accumulation_steps = schedule.batch // together
    updates = updates_of_epoch(arguments, examples)
    if not updates:
        raise ConfigError(
            f"{examples} examples are fewer than the {together} of a batch; choose a smaller one with --batch"
        )
    total = schedule.steps or updates * schedule.epochs
    arguments.max_steps = schedule.steps or -1
    arguments.num_train_epochs = -(-total // updates)
    arguments.warmup_steps = math.ceil(schedule.warmup * total)
    return total


def _in_bfloat16(torch: Any, wanted: Precision, on_cpu: bool) -> bool:
    wanted = requested_precision(wanted)
    if wanted is not Precision.AUTO:
        return wanted is Precision.BFLOAT16
    if on_cpu:
        return has_bfloat16()
    return torch.cuda.is_bf16_supported()


def updates_of_epoch(arguments: Any, examples: int) -> int:
    """Return how many updates an epoch of so many examples has, as `plan_steps` set it."""
    together = arguments.per_device_train_batch_size * arguments.world_size
    dropped = arguments.dataloader_drop_last
    steps = examples // together if dropped else -(-examples // together)
    return -(-steps // arguments.gradient_accumulation_steps)
