"""How an encoder of words cuts a text, and what a paper is known by."""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from citerec.text import normalized
from citerec.types import Paper, Query

WORD = re.compile(r"\b\w\w+\b")


def words_of(text: str) -> list[str]:
    """Cut a text into words of two characters or more, in lower case and without accents.

    Source: the rule of scikit-learn's vectorizers with strip_accents="ascii" and lowercase=True.
    """
    plain = normalized("NFKD", text.lower())
    return WORD.findall(plain.encode("ascii", "ignore").decode("ascii"))


def counted(texts: Iterable[str], numbers: Mapping[str, int]) -> Any:
    """Count the known words of each text: a sparse matrix of float32, shape (texts, words).

    Args:
        texts: Any.
        numbers: The column of each known word.
    """
    from scipy.sparse import csr_array

    found: list[int] = []
    ends = [0]
    for text in texts:
        found.extend(numbers[word] for word in words_of(text) if word in numbers)
        ends.append(len(found))
    ones = np.ones(len(found), np.float32)
    indices, indptr = np.array(found, np.int32), np.array(ends, np.int32)
    counts = csr_array((ones, indices, indptr), shape=(len(ends) - 1, len(numbers)))
    counts.sum_duplicates()  # sorts, too: a row adds up in the same order in any company
    return counts


def number_of(*texts: str) -> int:
    """Return a number in [0, 2^64) that texts always have, in any process."""
    digest = blake2b(digest_size=8)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return int.from_bytes(digest.digest(), "little")


def keys_of(papers: Sequence[Paper | Query]) -> Any:
    """Return what each paper is known by, id and title as one number: uint64, shape (len(papers),)."""
    return np.array([number_of(paper.id, paper.title) for paper in papers], np.uint64)
