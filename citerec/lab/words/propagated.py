"""Simple graph convolution: vectors propagated along the citations of one index."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.lab.words.bag import Bag
from citerec.lab.words.model import Stated, Tensors, Vectors
from citerec.lab.words.tokens import keys_of
from citerec.types import Paper, Query

INNER = "features."  # prefix of the names of the bag's arrays


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Propagated:
    """A table of propagated vectors; papers outside the table get their features only.

    A query is never looked up in the table, since its references are unknown to every stage.
    """

    features: Bag
    keys: npt.NDArray[np.uint64]  # of the papers of the table, rising, shape (n,)
    table: Vectors  # of unit length, shape (n, dim)

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.features.dim

    @property
    def similarity(self) -> Similarity:
        """Cosine, as for the features."""
        return Similarity.COSINE

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim)."""
        vectors = self.features.vectors(papers)
        if not len(self.keys) or not papers:
            return vectors
        wanted = keys_of(papers)
        places = np.searchsorted(self.keys, wanted).clip(max=len(self.keys) - 1)
        is_paper = np.array([isinstance(paper, Paper) for paper in papers])
        known = (self.keys[places] == wanted) & is_paper
        vectors[known] = self.table[places[known]]
        return vectors

    def parts(self) -> tuple[Stated, Tensors]:
        """Return the parts of the features, and the table."""
        stated, arrays = self.features.parts()
        inner = {INNER + name: array for name, array in arrays.items()}
        return {"features": stated}, {"keys": self.keys, "table": self.table, **inner}

    @classmethod
    def of_parts(cls, stated: Stated, tensors: Tensors) -> Self:
        """Read the output of `parts`."""
        inner = {n.removeprefix(INNER): a for n, a in tensors.items() if n.startswith(INNER)}
        features = Bag.of_parts(stated["features"], inner)
        return cls(features=features, keys=tensors["keys"], table=tensors["table"])


def propagate(features: Vectors, links: Any, steps: int) -> Vectors:
    """Multiply features `steps` times by the normalised adjacency matrix; nothing is trained.

    Args:
        features: Shape (papers, dim).
        links: The citation matrix, sparse, shape (papers, papers); used in both directions.
        steps: The number of multiplications; 0 returns the features.

    Returns:
        (D^-1/2 (A + I) D^-1/2)^steps features, with D the degrees of A + I; same shape.

    Source: Wu et al., ICML 2019, https://arxiv.org/abs/1902.07153.
    """
    from scipy.sparse import diags_array, eye_array

    itself: Any = eye_array(links.shape[0])
    both = ((links + links.T + itself) > 0).astype(np.float32)
    scale = diags_array(1 / np.sqrt(both.sum(1)))
    normalised = (scale @ both @ scale).tocsr().astype(np.float32)
    for _ in range(steps):
        features = normalised @ features
    return np.asarray(features, np.float32)
