"""The interface of backends: token ids in, one row of numbers per text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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
