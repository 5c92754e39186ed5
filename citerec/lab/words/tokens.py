"""The tokenizer of word-vector encoders, and the keys of papers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from citerec.text import normalized
from citerec.types import Paper, Query

WORD = re.compile(r"\b\w\w+\b")


def words_of(text: str) -> list[str]:
    """Split a text into words of two or more characters, in lower case and without accents.

    Source: the rule of scikit-learn's vectorizers with strip_accents="ascii" and lowercase=True.
    """
    plain = normalized("NFKD", text.lower())
    return WORD.findall(plain.encode("ascii", "ignore").decode("ascii"))


def counted(texts: Iterable[str], numbers: Mapping[str, int]) -> Any:
    """Count the known words of each text: a sparse matrix of float32, shape (texts, words).

    Args:
        texts: The texts.
        numbers: The column of each known word.
    """
    from scipy.sparse import csr_array

    columns: list[int] = []
    ends = [0]
    for text in texts:
        columns.extend(numbers[word] for word in words_of(text) if word in numbers)
        ends.append(len(columns))
    ones = np.ones(len(columns), np.float32)
    indices, indptr = np.array(columns, np.int32), np.array(ends, np.int32)
    counts = csr_array((ones, indices, indptr), shape=(len(ends) - 1, len(numbers)))
    counts.sum_duplicates()  # also sorts, so that the sum of a row has a fixed order
    return counts


def number_of(*texts: str) -> int:
    """Hash texts to a number in [0, 2^64), the same in every process."""
    digest = blake2b(digest_size=8)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return int.from_bytes(digest.digest(), "little")


def keys_of(papers: Sequence[Paper | Query]) -> Any:
    """Return the key of each paper, a hash of id and title: uint64, shape (len(papers),)."""
    return np.array([number_of(paper.id, paper.title) for paper in papers], np.uint64)
