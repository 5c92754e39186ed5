"""Runs a net by PyTorch.

On a processor several batches run in parallel, one thread each: with small matrices, threads that share a batch would
spend their time waiting for each other.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

from citerec.encode.backend import Net, Outputs, Tokens
from citerec.encode.batching import batches, padded, token_types
from citerec.encode.config import EncodeConfig, Precision, has_bfloat16, requested_precision
from citerec.errors import ConfigError
from citerec.types import Log

CPU_TOKENS, GPU_TOKENS = 2048, 65536  # per batch
FLASH = "flash_attention_2"  # attention that skips padding; its name in transformers

Work = Callable[[list[int]], Any]


class TorchBackend:
    """Runs a net batch by batch."""

    def __init__(self, net: Net, config: EncodeConfig, log: Log | None = None) -> None:
        """Move a net to its device and precision.

        Args:
            net: The net.
            config: How to run it.
            log: Receives one message, the first time that the device has too little memory for a batch.

        Raises:
            ConfigError: If there is no such device.
        """
        import torch

        self._torch: Any = torch
        self._net, self._log = net, log
        self._device = _device(torch, config.device)
        self.device = str(self._device.type)
        self.precision = _precision(torch, config.precision, self._device)
        self._threads = config.thread_count
        self._budget = config.batch_tokens or (CPU_TOKENS if self.device == "cpu" else GPU_TOKENS)
        self._module = net.module.to(self._device, getattr(torch, self.precision)).eval()
        if self.device == "cuda" and self.precision != "float32" and find_spec("flash_attn"):
            # A model that does not support it keeps its own attention.
            with suppress(ValueError, ImportError):
                self._module.model.set_attn_implementation(FLASH)

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs; see `Runner`.

        Raises:
            ConfigError: If the device has too little memory for a single text.
        """
        groups = batches([len(ids) for ids in tokens], self._budget)
        work = partial(self._fitting, tokens, firsts)
        if self.device != "cpu":
            yield from _one_ahead(groups, work)
            return
        previous = self._torch.get_num_threads()
        at_once = min(self._threads, len(groups))
        try:
            if at_once > 1:
                yield from self._in_threads(groups, work, at_once)
            else:
                self._torch.set_num_threads(self._threads)
                for rows in groups:
                    yield rows, work(rows).numpy()
        finally:
            self._torch.set_num_threads(previous)

    def _in_threads(
        self, groups: list[list[int]], work: Work, threads: int
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Run batches in parallel; after an error or Ctrl-C no further batch is started."""
        set_threads = self._torch.set_num_threads
        with ThreadPoolExecutor(threads, initializer=set_threads, initargs=(1,)) as workers:
            done = workers.map(work, groups)
            try:
                for rows, outputs in zip(groups, done, strict=True):
                    yield rows, outputs.numpy()
            finally:
                workers.shutdown(wait=False, cancel_futures=True)

    def _fitting(self, tokens: Tokens, firsts: Sequence[int] | None, rows: list[int]) -> Any:
        """Run a batch; if the device has too little memory, run halves, and reduce the size of later batches."""
        size = len(rows) * max(len(tokens[row]) for row in rows)
        if len(rows) == 1 or size <= self._budget:
            batch_firsts = firsts and [firsts[row] for row in rows]
            try:
                return self._batch([tokens[row] for row in rows], batch_firsts)
            except self._torch.OutOfMemoryError as error:
                if len(rows) == 1:
                    raise ConfigError(
                        f"{self._device} has too little memory for {size} tokens; free some, or choose cpu"
                    ) from error
            self._shrink(size // 2)
        half = len(rows) // 2
        parts = (self._fitting(tokens, firsts, part) for part in (rows[:half], rows[half:]))
        return self._torch.cat([*parts])

    def _shrink(self, budget: int) -> None:
        if self._log:
            self._log(
                f"{self._device} has too little memory for a batch; continuing with at most {budget} tokens per batch"
            )
            self._log = None
        self._budget = min(self._budget, budget)
        if self.device == "cuda":
            self._torch.cuda.empty_cache()

    def _batch(self, tokens: Tokens, firsts: Sequence[int] | None) -> Any:
        ids, mask = padded(tokens, self._net.padding, self._net.max_tokens)
        inputs = [ids, mask]
        if firsts is not None:
            inputs.append(token_types(tokens, firsts, ids.shape[1]))
        with self._torch.inference_mode():
            tensors = [self._torch.from_numpy(array).to(self._device) for array in inputs]
            return self._module(*tensors)


def _one_ahead(groups: list[list[int]], work: Work) -> Iterator[tuple[list[int], Outputs]]:
    """Start each batch before the outputs of the previous one are fetched, so that a GPU does not wait."""
    previous: tuple[list[int], Any] | None = None
    for rows in groups:
        started = rows, work(rows)
        if previous:
            yield previous[0], previous[1].cpu().numpy()
        previous = started
    if previous:
        yield previous[0], previous[1].cpu().numpy()


def _device(torch: Any, named: str) -> Any:
    if named == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(named)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"no device {named!r} here; leave it out, or choose cpu") from error
    return device


def _precision(torch: Any, precision: Precision, device: Any) -> str:
    precision = requested_precision(precision)
    if precision is not Precision.AUTO:
        return str(precision)
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if device.type == "cpu" and has_bfloat16() else "float32"
