"""What every model of words is: papers in, vectors out; and how it becomes a file."""

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
    """Turns papers into vectors without a transformer: the same paper always into the same."""

    @property
    def dim(self) -> int:
        """The length of a vector."""
        ...

    @property
    def similarity(self) -> Similarity:
        """How close two vectors are; of unit length if by cosine."""
        ...

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim)."""
        ...

    def parts(self) -> tuple[Stated, Tensors]:
        """Return the model as JSON values and arrays, which its folder holds."""
        ...


def directions(vectors: Vectors, papers: Sequence[Paper | Query]) -> Vectors:
    """Scale vectors to unit length; a paper of which nothing is known gets a direction by chance, always the same.

    Args:
        vectors: Shape (len(papers), dim); 0 where nothing is known.
        papers: Whose.
    """
    found = unit(vectors)
    for row in np.flatnonzero(~vectors.any(1)).tolist():
        key = int(keys_of(papers[row : row + 1])[0])
        drawn = np.random.default_rng(key).standard_normal((1, vectors.shape[1]), np.float32)
        found[row] = unit(drawn)[0]
    return found
