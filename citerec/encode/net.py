"""The interface of backends: token ids in, one row of numbers per text out."""

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
    """A torch module, and how its input is made from tokens."""

    module: Any  # (input_ids, attention_mask[, token_type_ids]) -> float32, shape (texts, dim)
    padding: int  # the id of the padding token
    max_tokens: int
    typed: bool = False  # whether it reads token types: 0 for the first segment, 1 for the second


class Runner(Protocol):
    """Runs a net batch by batch."""

    precision: str  # float32, bfloat16, float16 or int8
    place: str  # cpu, cuda, mps

    def run(
        self, tokens: Tokens, firsts: Sequence[int] | None = None
    ) -> Iterator[tuple[list[int], Outputs]]:
        """Yield batch by batch the positions of texts in `tokens`, and their outputs, shape (texts, dim).

        Args:
            tokens: The ids of each text, at most `Net.max_tokens` each.
            firsts: The length of each text's first segment, for a net that is `typed`; else None.
        """
        ...


def encoder_net(parts: Parts) -> Net:
    """Return an encoder as a net: the model with its pooling."""
    import torch

    spec = parts.spec

    class PooledModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(states.last_hidden_state, attention_mask, spec.pooling)
            if spec.similarity is Similarity.COSINE:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    return Net(
        module=PooledModel(), padding=parts.tokenizer.pad_token_id, max_tokens=spec.max_tokens
    )
