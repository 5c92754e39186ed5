"""The only module that imports faiss, which is slow to import."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity

NAME = "vectors.faiss"  # the file of the vectors in an index

Vectors = npt.NDArray[np.float32]  # shape (n, dim)


def load() -> Any:
    """Import faiss."""
    return import_module("faiss")


def metric_of(similarity: Similarity) -> int:
    """Return faiss's constant for a similarity."""
    faiss = load()
    names = {Similarity.L2: faiss.METRIC_L2, Similarity.COSINE: faiss.METRIC_INNER_PRODUCT}
    return names[similarity]


@contextmanager
def on_threads(count: int) -> Generator[None]:
    """Let faiss use `count` threads inside the block; 0 for faiss's own choice."""
    faiss = load()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
