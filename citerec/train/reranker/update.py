"""One update of the weights: forward and backward passes step by step, in smaller steps if memory is short."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.train.reranker.batch import Steps
from citerec.train.reranker.examples import Places
from citerec.types import Log

_NO_MEMORY = ("can't allocate memory", "not enough memory")  # messages of torch on a CPU


class Update:
    """Accumulates the gradients of an update; if memory is short, it halves the steps and starts the update again."""

    def __init__(self, steps: Steps, *, warm_steps: int, log: Log) -> None:
        """Create an update.

        Args:
            steps: Splits examples into steps.
            warm_steps: The first updates, which fit the teacher's scores only.
            log: Receives a line when the steps become smaller.
        """
        self._steps, self._warm_steps, self._log = steps, warm_steps, log

    def __call__(self, trainer: Any, net: Any, inputs: Any) -> Any:
        """Return the mean loss of the lists and accumulate its gradients.

        Raises:
            ConfigError: If the memory is too small for one list.
        """
        while True:
            try:
                return self._taken(trainer, net, inputs["drawn"])
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self._halve(inputs["drawn"].shape[1])
            net.zero_grad()  # the gradients of completed steps
            _free_memory()

    def _taken(self, trainer: Any, net: Any, drawn: Places) -> Any:
        net.train()
        steps = self._steps(drawn)
        warm, losses = trainer.state.global_step < self._warm_steps, list[Any]()
        for number, step in enumerate(steps, start=1):
            # Several devices synchronise their gradients once per update.
            alone = trainer.accelerator.no_sync(net) if number < len(steps) else nullcontext()
            with alone, trainer.compute_loss_context_manager():
                loss = net(**trainer._prepare_inputs(step), warm=warm) / len(drawn)
                trainer.accelerator.backward(loss)
            losses.append(loss.detach())
        return sum(losses[1:], losses[0])

    def _halve(self, in_list: int) -> None:
        if self._steps.micro <= in_list:
            raise ConfigError(
                "the memory is too small for one example; reduce query_tokens and candidate_tokens, or use a "
                "smaller model"
            )
        self._steps.micro = max(self._steps.micro // 2, in_list)
        self._log(f"out of memory: steps now have {self._steps.micro} pairs")


def out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory is short: torch has an error class only for a GPU."""
    import torch

    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(text in str(error) for text in _NO_MEMORY)


def collated(drawn: Sequence[Places]) -> dict[str, Any]:
    """Return the examples of an update as one array; the texts are read step by step."""
    return {"drawn": np.stack(drawn)}


def _free_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
