"""An encoder run by PyTorch.

On a processor several batches run at once, one thread each: small matrices leave threads that share a batch waiting
for each other.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.batching import batches, padded
from citerec.encode.config import EncodeConfig, Precision, has_bfloat16
from citerec.encode.model import Parts, pool
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError

CPU_TOKENS, GPU_TOKENS = 2048, 65536  # in a batch

Vectors = npt.NDArray[np.float32]
Tokens = Sequence[Sequence[int]]


class TorchBackend:
    """Runs a model batch by batch."""

    def __init__(self, parts: Parts, config: EncodeConfig) -> None:
        import torch

        self._torch: Any = torch
        self._parts = parts
        self.device = _device(torch, config.device)
        self.precision = _precision(torch, config.precision, self.device)
        self._threads = config.thread_count
        self._budget = config.batch_tokens or (
            CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        )
        self._model = parts.model.to(self.device, getattr(torch, self.precision)).eval()

    def run(self, tokens: Tokens) -> Iterator[tuple[list[int], Vectors]]:
        """Yield places in `tokens`, and the vectors of the texts there, a batch at a time."""
        groups = batches([len(ids) for ids in tokens], self._budget)
        if self.device.type != "cpu":
            for rows in groups:
                yield rows, self._batch([tokens[row] for row in rows])
            return
        before = self._torch.get_num_threads()
        at_once = min(self._threads, len(groups))
        try:
            if at_once > 1:
                yield from self._in_threads(tokens, groups, at_once)
            else:
                self._torch.set_num_threads(self._threads)
                for rows in groups:
                    yield rows, self._batch([tokens[row] for row in rows])
        finally:
            self._torch.set_num_threads(before)

    def _in_threads(
        self, tokens: Tokens, groups: list[list[int]], threads: int
    ) -> Iterator[tuple[list[int], Vectors]]:
        """Run batches at once; after an error or Ctrl-C nothing more is begun."""

        def work(rows: list[int]) -> Vectors:
            return self._batch([tokens[row] for row in rows])

        alone = self._torch.set_num_threads
        with ThreadPoolExecutor(threads, initializer=alone, initargs=(1,)) as workers:
            done = workers.map(work, groups)
            try:
                yield from zip(groups, done, strict=True)
            finally:
                workers.shutdown(wait=False, cancel_futures=True)

    def _batch(self, tokens: Tokens) -> Vectors:
        torch, spec = self._torch, self._parts.spec
        ids, mask = padded(tokens, self._parts.tokenizer.pad_token_id, spec.max_tokens)
        with torch.inference_mode():
            shown = torch.from_numpy(mask).to(self.device)
            states = self._model(
                input_ids=torch.from_numpy(ids).to(self.device), attention_mask=shown
            ).last_hidden_state
            vectors = pool(states, shown, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors.cpu().numpy()


def _device(torch: Any, named: str) -> Any:
    if named == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(named)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"no device {named!r} here; leave it out, or say cpu") from error
    return device


def _precision(torch: Any, wanted: Precision, device: Any) -> str:
    if wanted is not Precision.AUTO:
        return str(wanted)
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    return "bfloat16" if device.type == "cpu" and has_bfloat16() else "float32"
