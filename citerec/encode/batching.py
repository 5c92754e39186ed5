"""Texts into batches of about the same length, so that little is padding."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

ROUND_TO = 8  # lengths that batches are padded to: few shapes, few kernels to prepare

Numbers = npt.NDArray[np.int64]


def batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group texts of about the same length: longest first, at most `budget` tokens a group with padding.

    A text of more than `budget` tokens is a group of its own.

    Args:
        lengths: Of each text, in tokens.
        budget: Texts of a group times the longest of them.
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


def padded(tokens: Sequence[Sequence[int]], padding: int, at_most: int) -> tuple[Numbers, Numbers]:
    """Return ids and mask, shape (texts, width) each: the longest text, rounded up to a multiple of 8.

    Args:
        tokens: The ids of each text, at most `at_most` each.
        padding: The id that stands for nothing.
        at_most: The greatest width; a model may have no position beyond it.
    """
    width = min(-(-max(map(len, tokens)) // ROUND_TO) * ROUND_TO, at_most)
    ids = np.full((len(tokens), width), padding, np.int64)
    mask = np.zeros_like(ids)
    for row, mine in enumerate(tokens):
        ids[row, : len(mine)] = mine
        mask[row, : len(mine)] = 1
    return ids, mask


def token_types(tokens: Sequence[Sequence[int]], firsts: Sequence[int], width: int) -> Numbers:
    """Return the token types that go with `padded`, shape (texts, width): 1 for a second segment, else 0.

    Args:
        tokens: The ids of each text.
        firsts: How many of them are the first segment.
        width: That of the padded ids.
    """
    types = np.zeros((len(tokens), width), np.int64)
    for row, (mine, first) in enumerate(zip(tokens, firsts, strict=True)):
        types[row, first : len(mine)] = 1
    return types
