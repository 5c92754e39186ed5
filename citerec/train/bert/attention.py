"""Self-attention of all tokens of some texts, with its own backward pass.

The modules of transformers compute the softmax in float32 and copy its input and output; here both stay in the
precision of the matrix products, whose kernels sum in float32.
"""

from functools import cache
from typing import Any


def attend(projected: Any, padding: Any, dropout: float) -> Any:
    """Return the attended values of each token, shape (texts, tokens, dim).

    Args:
        projected: Queries, keys and values, shape (texts, tokens, 3, heads, dim of a head).
        padding: Added to the scores of a text: 0 for a token, else the lowest number; shape (texts, 1, tokens), or
            None without padding.
        dropout: The share of the attention weights that are dropped.
    """
    return _function().apply(projected, padding, dropout)


def attend_from_first(query: Any, keys: Any, values: Any, padding: Any, dropout: float) -> Any:
    """Return the attended values of the first token of each text, shape (texts, 1, dim).

    Args:
        query: Of the first token, shape (texts, 1, heads, dim of a head).
        keys: Shape (texts, tokens, heads, dim of a head).
        values: The same shape.
        padding: As in `attend`.
        dropout: As in `attend`.
    """
    import torch

    scores = query.transpose(1, 2) @ keys.permute(0, 2, 3, 1) * query.shape[-1] ** -0.5
    if padding is not None:
        scores = scores + padding[:, None]
    weights = torch.nn.functional.dropout(torch.softmax(scores, -1), dropout)
    return (weights @ values.transpose(1, 2)).transpose(1, 2).flatten(2)


@cache
def _function() -> Any:
    """Return the torch function of `attend`; torch is imported at the first call."""
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, projected: Any, padding: Any, dropout: float) -> Any:
            texts, tokens, _, heads, dim = projected.shape
            query, key, value = _by_head(projected)
            scale = dim**-0.5
            if padding is None:
                scores = torch.bmm(query, key.transpose(1, 2)).mul_(scale)
            else:
                added = padding.repeat_interleave(heads, 0)
                scores = torch.baddbmm(added, query, key.transpose(1, 2), alpha=scale)
            weights = torch.softmax(scores, -1)
            kept, mask = (
                torch.native_dropout(weights, dropout, True) if dropout else (weights, None)
            )
            ctx.save_for_backward(projected, weights, mask)
            ctx.dropout = dropout
            out = torch.bmm(kept, value).view(texts, heads, tokens, dim)
            return out.transpose(1, 2).reshape(texts, tokens, heads * dim)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            projected, weights, mask = ctx.saved_tensors
            texts, tokens, _, heads, dim = projected.shape
            query, key, value = _by_head(projected)
            (grad,) = _by_head(grads[0].view(texts, tokens, 1, heads, dim))
            of_weights, kept = torch.bmm(grad, value.transpose(1, 2)), weights
            if mask is not None:
                kept_share = mask.to(weights.dtype).div_(1 - ctx.dropout)
                of_weights, kept = of_weights.mul_(kept_share), weights * kept_share
            backward = torch.ops.aten._softmax_backward_data
            of_scores = backward(of_weights, weights, -1, weights.dtype).mul_(dim**-0.5)
            parts = (
                torch.bmm(of_scores, key),
                torch.bmm(of_scores.transpose(1, 2), query),
                torch.bmm(kept.transpose(1, 2), grad),
            )
            out = torch.empty_like(projected)
            for number, part in enumerate(parts):
                out[:, :, number] = part.view(texts, heads, tokens, dim).transpose(1, 2)
            return out, None, None

    return Attention


def _by_head(projected: Any) -> list[Any]:
    """Return each of several projections, shape (texts * heads, tokens, dim of a head)."""
    _, tokens, count, _, dim = projected.shape
    by_head = projected.permute(2, 0, 3, 1, 4)
    return [by_head[number].reshape(-1, tokens, dim) for number in range(count)]
