"""What a backend runs, and what every backend can: token ids in, one row of numbers a text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.encode.model import Parts, pool
from citerec.encode.spec import Similarity

Outputs = npt.NDArray[np.float32]
Tokens = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A module of torch, and how its input is made of tokens."""

    module: Any  # (input_ids, attention_mask[, token_type_ids]) -> float32, shape (texts, dim)
    padding: int  # the id that stands for nothing
    max_tokens: int
    typed: bool = False  # whether it reads token types: 0 for the first segment, 1 for the second


class Runner(Protocol):
    """Runs a net batch by batch."""

    precision: str  # float32, bfloat16, float16 or int8
    place: str  # cpu, cuda, mps

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield places in `tokens`, and the outputs of the texts there, a batch at a time.

        Args:
            tokens: The ids of each text, at most `Net.max_tokens` each.
            firsts: How many of them are the first segment, of a net that is `typed`.
        """
        ...


def encoder_net(parts: Parts) -> Net:
    """Return an encoder as a net: the model, and how its vectors are pooled."""
    import torch

    spec = parts.spec

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(states.last_hidden_state, attention_mask, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    return Net(module=Pooled(), padding=parts.tokenizer.pad_token_id, max_tokens=spec.max_tokens)
