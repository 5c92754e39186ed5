"""Random vectors: the lower bound for every encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from citerec.encode.spec import Similarity
from citerec.lab.words.model import Stated, Tensors, Vectors
from citerec.lab.words.tokens import keys_of
from citerec.types import Paper, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomVectors:
    """Zero-mean normal vectors, the same for the same paper in every process."""

    dim: int = 25
    seed: int = 0

    @property
    def similarity(self) -> Similarity:
        """L2 distance, since the vectors are not of unit length."""
        return Similarity.L2

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the random vector of each paper, seeded by its id and title, shape (len(papers), dim)."""
        drawn = np.empty((len(papers), self.dim), np.float32)
        for row, key in enumerate(keys_of(papers).tolist()):
            rng = np.random.default_rng([self.seed, key])
            drawn[row] = rng.standard_normal(self.dim, np.float32)
        return drawn

    def parts(self) -> tuple[Stated, Tensors]:
        """Return dim and seed; a weights file needs an array, so the seed is also one."""
        return {"dim": self.dim, "seed": self.seed}, {"seed": np.array([self.seed], np.int64)}

    @classmethod
    def of_parts(cls, stated: Stated, _: Tensors) -> Self:
        """Read the output of `parts`."""
        return cls(dim=int(stated["dim"]), seed=int(stated["seed"]))
