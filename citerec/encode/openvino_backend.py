"""An encoder run by OpenVINO: the model is converted in memory when it is opened; the door to openvino."""

import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.batching import batches, padded
from citerec.encode.config import EncodeConfig, Precision, has_bfloat16
from citerec.encode.model import Parts, pool
from citerec.encode.spec import Similarity
from citerec.errors import ModelError, extra

TOKENS = 2048  # in a batch

Vectors = npt.NDArray[np.float32]


class OpenVinoBackend:
    """Runs a model batch by batch, as many at once as there are threads."""

    def __init__(self, parts: Parts, config: EncodeConfig) -> None:
        with extra("openvino"):
            openvino: Any = import_module("openvino")  # by name: who checks types need not have it
        self._openvino = openvino
        self._parts = parts
        bfloat16 = config.precision is Precision.BFLOAT16 or (
            config.precision is Precision.AUTO and has_bfloat16()
        )
        self.precision = "bfloat16" if bfloat16 else "float32"
        self._threads = config.thread_count
        self._budget = config.batch_tokens or TOKENS
        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
            "INFERENCE_NUM_THREADS": self._threads,
            "NUM_STREAMS": self._threads,
        }
        self._compiled = openvino.Core().compile_model(_converted(openvino, parts), "CPU", options)

    def run(self, tokens: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Vectors]]:
        """Yield places in `tokens`, and the vectors of the texts there, a batch at a time."""
        groups = batches([len(ids) for ids in tokens], self._budget)
        requests = [self._compiled.create_infer_request() for _ in range(self._threads)]
        at_work: list[tuple[Any, list[int]]] = []
        for number, rows in enumerate(groups):
            if len(at_work) == len(requests):
                yield _result(*at_work.pop(0))
            request = requests[number % len(requests)]
            ids, mask = padded(
                [tokens[row] for row in rows],
                self._parts.tokenizer.pad_token_id,
                self._parts.spec.max_tokens,
            )
            request.start_async([ids, mask])
            at_work.append((request, rows))
        yield from (_result(*one) for one in at_work)


def _result(request: Any, rows: list[int]) -> tuple[list[int], Vectors]:
    request.wait()
    return rows, request.get_output_tensor(0).data.copy()


def _converted(openvino: Any, parts: Parts) -> Any:
    """Convert model and pooling, for any number of texts of any length."""
    import torch

    spec = parts.spec

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model.float().cpu().eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(states.last_hidden_state, attention_mask, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    ids = torch.zeros((2, 8), dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0  # else the trace is one of a model that needs no mask
    any_shape = openvino.PartialShape([-1, -1])
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the trace: what it takes for constant is so here
            return openvino.convert_model(
                Pooled(),
                example_input={"input_ids": ids, "attention_mask": mask},
                input=[any_shape, any_shape],
            )
    except Exception as error:  # whatever a model that cannot be traced makes it raise
        said = " ".join(str(error).split())[:200]
        raise ModelError(
            f"{type(parts.model).__name__} cannot be run by OpenVINO: {said}; use the backend torch"
        ) from error
