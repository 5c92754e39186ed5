"""A retriever that tests bring."""

from collections.abc import Sequence

import numpy as np

from citerec.index.folder import IndexFolder
from citerec.rules.eligible import mask
from citerec.types import Eligibility, Hits, Query


class Shelf:
    """Finds the papers with the smallest row numbers."""

    name = "shelf"

    def __init__(self, index: IndexFolder) -> None:
        self.years = index.papers.years

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        allowed = [np.flatnonzero(mask(rule, self.years))[:k] for rule in eligible]
        return [Hits(rows, -rows.astype(np.float32)) for rows in allowed]
