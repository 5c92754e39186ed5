"""The loss of a step over the memory: every positive of a query against all papers of the memory.

Only the vectors of the step have gradients: the scores of all other pairs are computed once, block by block, and torch
differentiates only the scores of the vectors of the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from citerec.encode.spec import Similarity
from citerec.train.encoder.losses import similarity

BLOCK = 128  # queries whose scores are held at once: they should fit the processor's cache


@dataclass(frozen=True, slots=True)
class MemoryScores:
    """The scores of some queries and all papers of the memory, and the loss of each positive."""

    kind: Similarity
    temperature: float
    memory: (
        Any  # the vectors of the papers, with those of the step; no gradients, shape (papers, dim)
    )
    queries: Any  # slots, shape (queries,)
    comparison: Mapping[str, Any]  # `segment_ids`, `targets`, `weights` and `allowed`, as tensors

    def loss(self, vectors: Any, live: Any) -> Any:
        """Return the weighted mean of -log softmax(scores / temperature) over the positives, as a torch scalar.

        Args:
            vectors: Of the papers of the step, shape (live papers, dim).
            live: Their slots, shape (live papers,).
        """
        import torch

        place = _places(len(self.memory), live)
        own = place[self.queries]
        with torch.no_grad():
            blocks = [
                self._block(start, live, place) for start in range(0, len(self.queries), BLOCK)
            ]
            value = sum(block[0] for block in blocks)
            of_papers, of_queries = (torch.cat([block[i] for block in blocks]) for i in (1, 2))
        as_papers = similarity(self.kind, self.memory[self.queries], vectors)
        as_queries = similarity(self.kind, vectors[own[own >= 0]], self.memory)
        part = (of_papers * as_papers).sum() + (of_queries * as_queries).sum()
        return value + (part - part.detach())

    def _block(self, start: int, live: Any, place: Any) -> tuple[Any, Any, Any]:
        """Return the loss of some queries, and its derivatives by the scores of vectors of the step.

        Args:
            start: The number of the first query.
            live: The slots of the papers of the step.
            place: The position of each slot in `live`, or -1.

        Returns:
            The loss; the derivatives by the scores of the papers of the step, shape (queries, live papers), and by
            those of the queries of the step, shape (queries of the step, papers).
        """
        import torch

        queries = self.queries[start : start + BLOCK]
        chosen = self.comparison["segment_ids"] // BLOCK == start // BLOCK
        rows, targets, weights = (
            self.comparison[name][chosen] for name in ("segment_ids", "targets", "weights")
        )
        rows = rows - start
        totals = weights.new_zeros(len(queries)).index_add_(0, rows, weights)
        logits = similarity(self.kind, self.memory[queries], self.memory).div_(self.temperature)
        denied = ~self.comparison["allowed"][start : start + BLOCK]
        logs = torch.log_softmax(logits.masked_fill_(denied, float("-inf")), 1)

        def derivatives(shares: Any, totals: Any, at: tuple[Any, Any]) -> Any:
            """Return the derivatives by some scores; `at` has the row and column of each positive, or -1."""
            there = (at[0] >= 0) & (at[1] >= 0)
            cited = torch.zeros_like(shares)
            cited.index_put_((at[0][there], at[1][there]), weights[there], accumulate=True)
            return (shares.exp() * totals[:, None] - cited) / self.temperature

        own = torch.nonzero(place[queries] >= 0)[:, 0]
        by_papers = derivatives(logs[:, live], totals, (rows, place[targets]))
        own_place = _places(len(queries), own)
        by_queries = derivatives(logs[own], totals[own], (own_place[rows], targets))
        return -(weights * logs[rows, targets]).sum(), by_papers, by_queries


def _places(count: int, slots: Any) -> Any:
    """Return the position of each of `count` slots in `slots`; -1 for one that is not there."""
    import torch

    places = torch.full((count,), -1, device=slots.device)
    places[slots] = torch.arange(len(slots), device=slots.device)
    return places
