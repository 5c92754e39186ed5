"""A net run by OpenVINO: it is converted in memory when it is opened; the door to openvino.

Not in eight-bit integers: quantised after training, MiniLM scored 1.35 times as many pairs, but the order of its
scores changed (Spearman 0.994 with float32; 0.9997 in bfloat16).
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, cast

from citerec.encode.batching import batches, padded, token_types
from citerec.encode.config import EncodeConfig, Precision, has_bfloat16, requested_precision
from citerec.encode.net import Net, Outputs, Tokens
from citerec.errors import ModelError, extra

TOKENS = 2048  # in a batch


class OpenVinoBackend:
    """Runs a net batch by batch, as many at once as there are threads."""

    place = "cpu"

    def __init__(self, net: Net, config: EncodeConfig) -> None:
        """Convert a net.

        Raises:
            MissingExtraError: If OpenVINO is not installed.
            ModelError: If it cannot run such a net.
        """
        with extra("openvino"):
            # To convert a model it would report to its makers; without this package it has a stub that does not.
            sys.modules.setdefault("openvino_telemetry", cast(Any, None))
            openvino: Any = import_module("openvino")  # by name: who checks types need not have it
        self._net = net
        wanted = requested_precision(config.precision)
        bfloat16 = wanted is Precision.BFLOAT16 or (wanted is Precision.AUTO and has_bfloat16())
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
        """Yield places in `tokens`, and the outputs of the texts there, a batch at a time; see `Runner`."""
        groups = batches([len(ids) for ids in tokens], self._budget)
        requests = [self._compiled.create_infer_request() for _ in range(self._threads)]
        at_work: list[tuple[Any, list[int]]] = []
        for number, rows in enumerate(groups):
            if len(at_work) == len(requests):
                yield _result(*at_work.pop(0))
            request = requests[number % len(requests)]
            mine = [tokens[row] for row in rows]
            ids, mask = padded(mine, self._net.padding, self._net.max_tokens)
            inputs = [ids, mask]
            if firsts is not None:
                inputs.append(token_types(mine, [firsts[row] for row in rows], ids.shape[1]))
            request.start_async(inputs)
            at_work.append((request, rows))
        yield from (_result(*one) for one in at_work)


def _result(request: Any, rows: list[int]) -> tuple[list[int], Outputs]:
    request.wait()
    return rows, request.get_output_tensor(0).data.copy()


def _compiled(openvino: Any, net: Net, options: dict[str, Any]) -> Any:
    """Convert a net, for any number of texts of any length, and make it ready."""
    import torch

    ids = torch.zeros((2, 8), dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0  # else the trace is one of a model that needs no mask
    example = {"input_ids": ids, "attention_mask": mask}
    if net.typed:
        example["token_type_ids"] = torch.zeros_like(ids)
    module = net.module.float().cpu().eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the trace: what it takes for constant is so here
            model = openvino.convert_model(
                module,
                example_input=example,
                input=[openvino.PartialShape([-1, -1])] * len(example),
            )
        return openvino.Core().compile_model(model, "CPU", options)
    except Exception as error:  # whatever a model that cannot be traced makes it raise
        said = " ".join(str(error).split())[:200]
        kind = type(getattr(module, "model", module)).__name__
        raise ModelError(
            f"{kind} cannot be run by OpenVINO: {said}; use the backend torch"
        ) from error
