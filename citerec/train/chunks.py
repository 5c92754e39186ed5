"""Chunks of texts of similar length: the inputs of a model's forward passes in a training step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.batching import batches, even_batches, padded, token_types

Chunk = dict[str, Any]  # torch tensors, by the name of the model's argument


def chunked(
    tokens: Sequence[Sequence[int]],
    budget: int,
    *,
    padding: int,
    most: int,
    firsts: Sequence[int] | None = None,
    even: bool = False,
) -> tuple[list[Chunk], npt.NDArray[np.int64]]:
    """Return texts in chunks of similar length, and the position of each text in the reading order.

    Args:
        tokens: The ids of each text.
        budget: Tokens of a chunk at most, including padding.
        padding: The id of the padding token.
        most: Tokens of a text at most.
        firsts: For a model with token types: the length of the first segment of each text.
        even: Whether the chunks have about the same number of tokens, and their number is even: a CPU computes several
            at once.
    """
    import torch

    group = even_batches if even else batches
    groups = group([len(ids) for ids in tokens], budget)
    positions = np.empty(len(tokens), np.int64)
    positions[np.concatenate([np.array(group) for group in groups])] = np.arange(len(tokens))
    chunks: list[Chunk] = []
    for group in groups:
        of_group = [tokens[i] for i in group]
        ids, mask = padded(of_group, padding, most)
        arrays = {"input_ids": ids, "attention_mask": mask}
        if firsts is not None:
            arrays["token_type_ids"] = token_types(
                of_group, [firsts[i] for i in group], ids.shape[1]
            )
        chunks.append({name: torch.from_numpy(array) for name, array in arrays.items()})
    return chunks, positions
