"""The device that a plan is trained on: a GPU if torch finds one, else the CPU; the budget `night` needs a GPU."""

import os

from citerec.errors import ConfigError, extra
from citerec.train.budget.name import Budget
from citerec.train.budget.plan import ENCODER, RANKER, RERANKER, TrainPlan


def check_device(plan: TrainPlan) -> None:
    """Refuse several processes, and the models of the papers without a GPU.

    Raises:
        ConfigError: If there are several processes, or no GPU.
        MissingExtraError: If a package of the extra `train` is not installed.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "citerec train runs in one process; with torchrun run train-encoder and train-reranker by themselves"
        )
    if plan.budget is Budget.NIGHT and not gpu():
        raise ConfigError(
            "the budget night needs a GPU, and torch finds none: on a CPU it takes weeks; choose --budget hour"
        )


def device_line(plan: TrainPlan) -> str:
    """Describe the device that the steps of a plan would use here, in one line.

    Raises:
        MissingExtraError: If torch is not installed.
    """
    name = gpu()
    if not name:
        missing = ", and the budget night needs one: it would not start; choose --budget hour"
        return (
            f"device: the CPU; torch finds no GPU{missing if plan.budget is Budget.NIGHT else ''}"
        )
    steps = {ENCODER: plan.encoder, RERANKER: plan.reranker}
    on_cpu = [step for step, settings in steps.items() if settings and settings.device == "cpu"]
    return f"device: the GPU {name}; trained on the CPU: {', '.join([*on_cpu, RANKER])}"


def gpu() -> str:
    """Return the name of the GPU that torch uses; empty if it finds none.

    Raises:
        MissingExtraError: If torch is not installed.
    """
    with extra("train"):
        import torch
    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""
