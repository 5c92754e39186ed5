"""Groups texts into batches of similar length, to reduce padding."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ROUND_TO = 8  # widths are multiples of it: few shapes mean few kernels to compile

Numbers = npt.NDArray[np.int64]


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group texts of similar length: longest first, at most `budget` tokens per group, including padding.

    A text of more than `budget` tokens is a group of its own.

    Args:
        lengths: Tokens of each text.
        budget: The limit of the number of texts in a group times the longest of them.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    groups: list[list[int]] = []
    for i in order:
        longest = lengths[groups[-1][0]] if groups else 0
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def even_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group texts as `batches` does, in an even number of groups at most, of about the same number of tokens.

    Args:
        lengths: Tokens of each text; not empty.
        budget: The limit of the number of texts in a group times the longest of them.
    """
    groups = batches(lengths, budget)
    most = len(groups) + len(groups) % 2
    low, high = max(lengths), budget
    while low < high:
        middle = (low + high) // 2
        if len(batches(lengths, middle)) <= most:
            high = middle
        else:
            low = middle + 1
    return batches(lengths, high)


def padded(tokens: Sequence[Sequence[int]], padding: int, at_most: int) -> tuple[Numbers, Numbers]:
    """Return ids and mask, shape (texts, width) each; width is the longest text, rounded up to a multiple of 8.

    Args:
        tokens: The ids of each text, at most `at_most` each.
        padding: The id of the padding token.
        at_most: The greatest width; the model may have no positions beyond it.
    """
    width = min(-(-max(map(len, tokens)) // ROUND_TO) * ROUND_TO, at_most)
    ids = np.full((len(tokens), width), padding, np.int64)
    mask = np.zeros_like(ids)
    for row, text_ids in enumerate(tokens):
        ids[row, : len(text_ids)] = text_ids
        mask[row, : len(text_ids)] = 1
    return ids, mask


def token_types(tokens: Sequence[Sequence[int]], firsts: Sequence[int], width: int) -> Numbers:
    """Return the token types for the ids of `padded`, shape (texts, width): 1 for the second segment, else 0.

    Args:
        tokens: The ids of each text.
        firsts: The length of the first segment of each text.
        width: The width of the padded ids.
    """
    types = np.zeros((len(tokens), width), np.int64)
    for row, (text_ids, first) in enumerate(zip(tokens, firsts, strict=True)):
        types[row, first : len(text_ids)] = 1
    return types
