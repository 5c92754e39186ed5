"""Backends run a net: token ids in, one row of numbers per text out. OpenVINO or torch is chosen here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.errors import MissingExtraError, ModelError
from citerec.types import Log

Outputs = npt.NDArray[np.float32]
Tokens = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A torch module, and how its input is made from tokens."""

    module: Any  # (input_ids, attention_mask[, token_type_ids]) -> float32, shape (texts, dim)
    padding: int  # the id of the padding token
    max_tokens: int
    typed: bool = False  # whether it reads token types: 0 for the first segment, 1 for the second


class Runner(Protocol):
    """Runs a net batch by batch."""

    precision: str  # float32, bfloat16, float16 or int8
    device: str  # cpu, cuda, mps

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs, shape (texts, dim).

        Args:
            tokens: The ids of each text, at most `Net.max_tokens` each.
            firsts: The length of each text's first segment, for a net that is `typed`; else None.
        """
        ...


def open_backend(net: Net, config: EncodeConfig, log: Log | None = None) -> Runner:
    """Prepare a net to run; it may be moved to another device and precision.

    Raises:
        ConfigError: If there is no such device.
        MissingExtraError: If OpenVINO is requested but not installed.
    """
    if config.backend is Backend.OPENVINO:
        from citerec.encode.openvino_backend import OpenVinoBackend

        return OpenVinoBackend(net, config)
    from citerec.encode.torch_backend import TorchBackend

    return TorchBackend(net, config, log)


def fastest(config: EncodeConfig) -> EncodeConfig:
    """Resolve `Backend.AUTO` for long work: OpenVINO on a processor if it is installed, else torch."""
    if config.backend is not Backend.AUTO:
        return config
    fits = config.precision is not Precision.FLOAT16 and _on_processor(config.device)
    openvino = fits and find_spec("openvino")
    return replace(config, backend=Backend.OPENVINO if openvino else Backend.TORCH)


def open_fastest(
    net: Net, config: EncodeConfig, log: Log | None = None
) -> tuple[Runner, EncodeConfig]:
    """Prepare a net for long work; if `Backend.AUTO` chose OpenVINO and it cannot run the net, torch runs it.

    Returns:
        The backend, and the configuration with the backend resolved.

    Raises:
        ConfigError, MissingExtraError, ModelError: As for `open_backend`.
    """
    chosen = fastest(config)
    try:
        return open_backend(net, chosen, log), chosen
    except (MissingExtraError, ModelError) as error:
        if config.backend is not Backend.AUTO or chosen.backend is Backend.TORCH:
            raise
        if log:
            log(f"{error}; it is run by torch")
    chosen = replace(chosen, backend=Backend.TORCH)
    return open_backend(net, chosen, log), chosen


def _on_processor(device: str) -> bool:
    if device != "auto":
        return device == "cpu"
    import torch

    return not torch.cuda.is_available()
