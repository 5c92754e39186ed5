"""Chooses the backend that runs a net: OpenVINO or torch."""

from dataclasses import replace
from importlib.util import find_spec

from citerec.encode.config import Backend, EncodeConfig, Precision
from citerec.encode.net import Net, Runner
from citerec.errors import MissingExtraError, ModelError
from citerec.types import Log


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
