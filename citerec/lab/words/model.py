"""The interface of word-vector models, and their serialised parts."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.encode.sentences import Vectors, unit
from citerec.encode.spec import Similarity
from citerec.lab.words.tokens import keys_of
from citerec.types import Paper, Query

Tensors = Mapping[str, npt.NDArray[Any]]
Stated = dict[str, Any]  # JSON values


class WordModel(Protocol):
    """Maps papers to vectors without a transformer; the same paper always gets the same vector."""

    @property
    def dim(self) -> int:
        """The length of a vector."""
        ...

    @property
    def similarity(self) -> Similarity:
        """The similarity of two vectors; the vectors have unit length if it is the cosine."""
        ...

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim)."""
        ...

    def parts(self) -> tuple[Stated, Tensors]:
        """Return the model as JSON values and arrays, the content of its folder."""
        ...


def directions(vectors: Vectors, papers: Sequence[Paper | Query]) -> Vectors:
    """Scale vectors to unit length; a zero vector becomes a random direction, seeded by the paper.

    Args:
        vectors: Shape (len(papers), dim); 0 if no word is known.
        papers: The paper of each vector.
    """
    scaled = unit(vectors)
    for row in np.flatnonzero(~vectors.any(1)).tolist():
        key = int(keys_of(papers[row : row + 1])[0])
        drawn = np.random.default_rng(key).standard_normal((1, vectors.shape[1]), np.float32)
        scaled[row] = unit(drawn)[0]
    return scaled
