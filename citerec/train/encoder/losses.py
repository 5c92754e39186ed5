"""The losses: pure functions of vectors, which torch differentiates."""

from typing import Any

from citerec.encode.spec import Similarity


def triplet(queries: Any, positives: Any, negatives: Any, *, margin: float) -> Any:
    """Return the mean of max(|q - p| - |q - n| + margin, 0), Euclidean distances.

    Args:
        queries: Shape (examples, dim), as the others.
        positives: Papers that they cite.
        negatives: Papers that they do not cite.
        margin: How much farther a negative should be, 1 in the source.

    Source: Cohan et al., ACL 2020, equation 2, https://arxiv.org/abs/2004.07180.
    """
    import torch

    return torch.nn.functional.triplet_margin_loss(queries, positives, negatives, margin=margin)


def in_batch(
    scores: Any, targets: Any, allowed: Any, *, temperature: float, symmetric: bool = False
) -> Any:
    """Return the mean of -log softmax(scores / temperature) at the target, over the allowed papers (InfoNCE).

    Args:
        scores: How close each query is to each paper, shape (queries, papers).
        targets: The column of each query's positive, shape (queries,).
        allowed: Which papers stand against each query, its target among them, shape (queries, papers).
        temperature: Under 1 sharpens.
        symmetric: Average with the same loss of positives that look for their query: against each stand
            the queries that it is an allowed negative of.

    Source: van den Oord et al., 2018, https://arxiv.org/abs/1807.03748.
    """
    import torch

    logits = (scores / temperature).masked_fill(~allowed, float("-inf"))
    loss = torch.nn.functional.cross_entropy(logits, targets)
    if not symmetric:
        return loss
    own = torch.arange(len(targets), device=targets.device)
    same = targets[None, :] == targets[:, None]  # queries of one positive are no negatives of it
    against = allowed[:, targets].T & ~same
    against[own, own] = True
    backwards = (scores[:, targets].T / temperature).masked_fill(~against, float("-inf"))
    return (loss + torch.nn.functional.cross_entropy(backwards, own)) / 2


def similarity(kind: Similarity, queries: Any, papers: Any) -> Any:
    """Return how close each query is to each paper, shape (queries, papers); differentiable."""
    if kind is Similarity.COSINE:
        return queries @ papers.T
    norms = queries.pow(2).sum(-1)[:, None] + papers.pow(2).sum(-1)[None, :]
    squares = (norms - 2 * queries @ papers.T).clamp(min=0)
    return -(squares + 1e-12).sqrt()  # the root has no derivative at 0
