"""What runs a net when memory is short."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from citerec.encode.backend import Net, Runner, open_fastest
from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.encode.torch_backend import TorchBackend
from citerec.errors import ConfigError, ModelError

TEXTS = [[n] * (1 + n % 7) for n in range(1, 30)]


class Cramped(torch.nn.Module):
    """Sums the ids of each text; a batch of more than `room` numbers is too much for it."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.refused = room, 0

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        if input_ids.numel() > self.room:
            self.refused += 1
            raise torch.OutOfMemoryError("out of memory")
        return (input_ids * attention_mask).sum(1, keepdim=True).float()


def backend(module: Cramped, told: list[str], threads: int = 1) -> TorchBackend:
    config = EncodeConfig(
        device="cpu", precision=Precision.FLOAT32, threads=threads, batch_tokens=64
    )
    return TorchBackend(Net(module=module, padding=0, max_tokens=8), config, told.append)


def sums(runner: Runner) -> list[float]:
    found = np.zeros(len(TEXTS), np.float32)
    for places, outputs in runner.run(TEXTS):
        found[places] = outputs[:, 0]
    return found.tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_too_large_for_the_memory_is_read_in_halves(threads: int) -> None:
    module, told = Cramped(room=24), list[str]()
    runner = backend(module, told, threads)

    assert sums(runner) == [sum(text) for text in TEXTS]
    assert len(told) == 1
    assert "too little memory for a batch; continuing with at most" in told[0]


def test_later_batches_are_small_from_the_start() -> None:
    module, told = Cramped(room=24), list[str]()
    runner = backend(module, told)
    sums(runner)
    refused = module.refused

    assert sums(runner) == [sum(text) for text in TEXTS]
    assert module.refused == refused
    assert len(told) == 1


class Untraceable(torch.nn.Module):
    """Runs, but cannot be traced, and so not be converted."""

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        if torch.jit.is_tracing():
            raise NotImplementedError("no trace of me")
        return (input_ids * attention_mask).sum(1, keepdim=True).float()


@pytest.mark.skipif(not find_spec("openvino"), reason="openvino is not installed")
def test_auto_takes_torch_where_openvino_cannot_run_a_model() -> None:
    net, told = Net(module=Untraceable(), padding=0, max_tokens=8), list[str]()
    auto = EncodeConfig(device="cpu", precision=Precision.FLOAT32, backend=Backend.AUTO)

    runner, config = open_fastest(net, auto, told.append)

    assert config.backend is Backend.TORCH
    assert sums(runner) == [sum(text) for text in TEXTS]
    assert "Untraceable cannot be run by OpenVINO" in told[0]
    assert told[0].endswith("it is run by torch")
    with pytest.raises(ModelError, match="cannot be run by OpenVINO"):
        open_fastest(net, replace(auto, backend=Backend.OPENVINO))


def test_too_little_memory_for_one_text_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="cpu has too little memory for 7 tokens"):
        sums(backend(Cramped(room=7), []))
