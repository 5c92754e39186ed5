"""The schedule of a training (epochs, batches, learning rate) and the arguments of transformers' Trainer."""

import math
from dataclasses import dataclass
from typing import Any

from citerec.encode.config import Precision, has_bfloat16, requested_precision
from citerec.errors import ConfigError
from citerec.train.workspace import Workspace

CHECKPOINTS = 2  # kept in addition to the best one
WAIT = (
    24 * 60 * 60
)  # seconds that processes wait for the first, which searches and measures for all
WEIGHT_DECAY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long and how fast a model is trained."""

    epochs: int
    steps: int = 0  # total updates; 0 derives them from `epochs`
    batch: int  # examples in an update of the weights
    step: int = 0  # examples in a step of one device; 0 for its part of the batch
    learning_rate: float
    warmup: float = 0.1  # share of the updates in which the rate rises; then it falls linearly to 0
    drop_last: bool = False  # whether an incomplete batch is dropped
    log_steps: int = 10  # updates per log entry of the mean loss
    eval_steps: int = 0  # updates between evaluations; 0: once per epoch
    patience: int = 0  # evaluations without a gain until the training stops; 0: never
    selection_metric: str  # selects the best weights; higher is better
    seed: int = 0
    dtype: Precision = Precision.AUTO
    device: str = "auto"  # or cpu


def trainer_arguments(schedule: Schedule, workspace: Workspace, *, has_dev: bool) -> Any:
    """Return the arguments of transformers' Trainer; this also selects the device."""
    import torch
    from transformers import TrainingArguments

    on_cpu = schedule.device == "cpu" or not torch.cuda.is_available()
    every: dict[str, Any] = {"eval_steps": schedule.eval_steps, "save_steps": schedule.eval_steps}
    arguments = TrainingArguments(
        output_dir=str(workspace.folder),
        use_cpu=on_cpu,
        bf16=_uses_bfloat16(torch, schedule.dtype, on_cpu),
        seed=schedule.seed,
        num_train_epochs=schedule.epochs,
        per_device_train_batch_size=schedule.step or schedule.batch,
        learning_rate=schedule.learning_rate,
        weight_decay=WEIGHT_DECAY,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        eval_strategy="steps" if schedule.eval_steps else "epoch",
        save_strategy="steps" if schedule.eval_steps else "epoch",
        **(every if schedule.eval_steps else {}),
        save_total_limit=CHECKPOINTS,
        load_best_model_at_end=has_dev,
        metric_for_best_model=f"eval_{schedule.selection_metric}" if has_dev else None,
        greater_is_better=True if has_dev else None,
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
    """Set the arguments that depend on the number of devices and examples; return the total number of updates.

    Raises:
        ConfigError: If the batch is no multiple of the steps of all devices, or an epoch has no complete batch.
    """
    if not schedule.step:
        arguments.per_device_train_batch_size = max(schedule.batch // arguments.world_size, 1)
    per_device = arguments.per_device_train_batch_size
    together = per_device * arguments.world_size
    if schedule.batch % together:
        raise ConfigError(
            f"batch must be a multiple of {together} ({per_device} examples on each of "
            f"{arguments.world_size} devices), got {schedule.batch}"
        )
    arguments.gradient_accumulation_steps = schedule.batch // together
    updates = updates_of_epoch(arguments, examples)
    if not updates:
        raise ConfigError(
            f"an epoch has {examples} examples, fewer than a batch of {together}; choose a smaller --batch"
        )
    total = schedule.steps or updates * schedule.epochs
    arguments.max_steps = schedule.steps or -1
    arguments.num_train_epochs = -(-total // updates)
    arguments.warmup_steps = math.ceil(schedule.warmup * total)
    return total


def _uses_bfloat16(torch: Any, requested: Precision, on_cpu: bool) -> bool:
    requested = requested_precision(requested)
    if requested is not Precision.AUTO:
        return requested is Precision.BFLOAT16
    if on_cpu:
        return has_bfloat16()
    return torch.cuda.is_bf16_supported()


def updates_of_epoch(arguments: Any, examples: int) -> int:
    """Return the number of updates in an epoch of `examples` examples, as `plan_steps` set it."""
    together = arguments.per_device_train_batch_size * arguments.world_size
    dropped = arguments.dataloader_drop_last
    steps = examples // together if dropped else -(-examples // together)
    return -(-steps // arguments.gradient_accumulation_steps)
