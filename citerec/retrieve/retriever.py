"""What a first-stage retriever does; packages may bring their own."""

from collections.abc import Sequence
from typing import Protocol

from citerec.types import Eligibility, Hits, Query


class Retriever(Protocol):
    """Finds candidates in an index: a first-stage retriever."""

    @property
    def name(self) -> str:
        """The name of its hits."""
        ...

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return one `Hits` per query, in the order given: its `k` best eligible papers.

        Fewer than `k` are returned only if fewer eligible papers match.
        """
        ...
