"""One update of the weights: its examples step by step, in smaller steps where memory does not suffice."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from citerec.errors import ConfigError
from citerec.train.reranker.batch import Steps
from citerec.train.reranker.examples import Places
from citerec.types import Log

_NO_MEMORY = ("can't allocate memory", "not enough memory")  # of Linux and of other systems


class Update:
    """Takes the gradients of an update; out of memory halves the steps, and what was begun is begun again."""

    def __init__(self, steps: Steps, *, warm_steps: int, log: Log) -> None:
        """Make it.

        Args:
            steps: Cuts examples into steps.
            warm_steps: First updates that learn from the teacher alone.
            log: Receives when steps become smaller.
        """
        self._steps, self._warm_steps, self._log = steps, warm_steps, log

    def __call__(self, trainer: Any, net: Any, inputs: Any) -> Any:
        """Return the mean loss of the lists, whose gradients are then in the weights.

        Raises:
            ConfigError: If there is not even memory for one list.
        """
        while True:
            try:
                return self._taken(trainer, net, inputs["drawn"])
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self._halve(inputs["drawn"].shape[1])
            net.zero_grad()  # of the steps that fitted
            _free_memory()

    def _taken(self, trainer: Any, net: Any, drawn: Places) -> Any:
        net.train()
        steps = self._steps(drawn)
        warm, losses = trainer.state.global_step < self._warm_steps, list[Any]()
        for number, step in enumerate(steps, start=1):
            # The gradients of several devices are put together once.
            alone = trainer.accelerator.no_sync(net) if number < len(steps) else nullcontext()
            with alone, trainer.compute_loss_context_manager():
                loss = net(**trainer._prepare_inputs(step), warm=warm) / len(drawn)
                trainer.accelerator.backward(loss)
            losses.append(loss.detach())
        return sum(losses[1:], losses[0])

    def _halve(self, in_list: int) -> None:
        if self._steps.micro <= in_list:
            raise ConfigError(
                "there is not enough memory for one example; choose fewer query_tokens and candidate_tokens, or a "
                "smaller model"
            )
        self._steps.micro = max(self._steps.micro // 2, in_list)
        self._log(f"out of memory: reading {self._steps.micro} pairs at once from now on")


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory does not suffice: torch has one kind for a GPU, and words for a processor."""
    import torch

    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(words in str(error) for words in _NO_MEMORY)


def collated(drawn: Sequence[Places]) -> dict[str, Any]:
    """Return the examples of an update as one array: they are read when their turn has come."""
    return {"drawn": np.stack(drawn)}


def _free_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
