"""The losses of the encoder: pure differentiable functions of torch tensors."""

from typing import Any

from citerec.encode.spec import Similarity


def triplet(queries: Any, positives: Any, negatives: Any, *, margin: float) -> Any:
    """Return the mean of max(|q - p| - |q - n| + margin, 0) with Euclidean distances.

    Args:
        queries: Shape (examples, dim), as the others.
        positives: Vectors of cited papers.
        negatives: Vectors of papers that are not cited.
        margin: How much farther a negative should be; 1 in the source.

    Source: Cohan et al., ACL 2020, equation 2, https://arxiv.org/abs/2004.07180.
    """
    import torch

    return torch.nn.functional.triplet_margin_loss(queries, positives, negatives, margin=margin)


def in_batch(scores: Any, targets: Any, allowed: Any, *, temperature: float) -> Any:
    """Return the mean of -log softmax(scores / temperature) at the target over the allowed papers (InfoNCE).

    Args:
        scores: Similarity of each query to each paper, shape (queries, papers).
        targets: The column of each query's positive, shape (queries,).
        allowed: The papers of each softmax, including the target, shape (queries, papers).
        temperature: Below 1 sharpens.

    Source: van den Oord et al., 2018, https://arxiv.org/abs/1807.03748.
    """
    import torch

    logits = (scores / temperature).masked_fill(~allowed, float("-inf"))
    return torch.nn.functional.cross_entropy(logits, targets)


def similarity(kind: Similarity, queries: Any, papers: Any) -> Any:
    """Return the inner products or negative L2 distances of queries and papers, shape (queries, papers)."""
    if kind is Similarity.COSINE:
        return queries @ papers.T
    norms = queries.pow(2).sum(-1)[:, None] + papers.pow(2).sum(-1)[None, :]
    squares = (norms - 2 * queries @ papers.T).clamp(min=0)
    return -(squares + 1e-12).sqrt()  # the square root has no derivative at 0
