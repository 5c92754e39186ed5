"""Runs a net by OpenVINO, which converts it in memory when it is opened; the only module that imports openvino.

It does not quantise to eight-bit integers: MiniLM quantised after training scored 1.35 times as many pairs per second,
but the order of its scores changed (Spearman 0.994 with float32; 0.9997 in bfloat16).
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, cast

from citerec.encode.backend import Net, Outputs, Tokens
from citerec.encode.batching import batches, padded, token_types
from citerec.encode.config import EncodeConfig, Precision, has_bfloat16, requested_precision
from citerec.errors import ModelError, extra

TOKENS = 2048  # per batch


class OpenVinoBackend:
    """Runs a net batch by batch, with as many parallel batches as threads."""

    device = "cpu"

    def __init__(self, net: Net, config: EncodeConfig) -> None:
        """Convert a net.

        Raises:
            MissingExtraError: If OpenVINO is not installed.
            ModelError: If OpenVINO cannot run the net.
        """
        with extra("openvino"):
            # Converting a model would send usage data; without this package OpenVINO uses a stub that does not.
            sys.modules.setdefault("openvino_telemetry", cast(Any, None))
            # by name, so that type checkers do not need the package
            openvino: Any = import_module("openvino")
        self._net = net
        requested = requested_precision(config.precision)
        bfloat16 = requested is Precision.BFLOAT16 or (
            requested is Precision.AUTO and has_bfloat16()
        )
        self.precision = "bfloat16" if bfloat16 else "float32"
        self._threads = config.thread_count
        self._budget = config.batch_tokens or TOKENS
        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": self._threads,
        }
        self._compiled = _compiled(openvino, net, options)

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs; see `Runner`."""
        groups = batches([len(ids) for ids in tokens], self._budget)
        requests = [self._compiled.create_infer_request() for _ in range(self._threads)]
        running: list[tuple[Any, list[int]]] = []
        for number, rows in enumerate(groups):
            if len(running) == len(requests):
                yield _result(*running.pop(0))
            request = requests[number % len(requests)]
            batch_ids = [tokens[row] for row in rows]
            ids, mask = padded(batch_ids, self._net.padding, self._net.max_tokens)
            inputs = [ids, mask]
            if firsts is not None:
                inputs.append(token_types(batch_ids, [firsts[row] for row in rows], ids.shape[1]))
            request.start_async(inputs)
            running.append((request, rows))
        yield from (_result(*pending) for pending in running)


def _result(request: Any, rows: list[int]) -> tuple[list[int], Outputs]:
    request.wait()
    return rows, request.get_output_tensor(0).data.copy()


def _compiled(openvino: Any, net: Net, options: dict[str, Any]) -> Any:
    """Convert a net for batches of any size and length, and compile it."""
    import torch

    ids = torch.zeros((2, 8), dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0  # otherwise the trace would be of a model without a mask
    example = {"input_ids": ids, "attention_mask": mask}
    if net.typed:
        example["token_type_ids"] = torch.zeros_like(ids)
    module = net.module.float().cpu().eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # warnings about values that the trace treats as constants, which they are here
            warnings.simplefilter("ignore")
            model = openvino.convert_model(
                module,
                example_input=example,
                input=[openvino.PartialShape([-1, -1])] * len(example),
            )
        return openvino.Core().compile_model(model, "CPU", options)
    except Exception as error:  # a model that cannot be traced may raise anything
        reason = " ".join(str(error).split())[:200]
        kind = type(getattr(module, "model", module)).__name__
        raise ModelError(
            f"{kind} cannot be run by OpenVINO: {reason}; use the backend torch"
        ) from error
