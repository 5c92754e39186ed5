"""The states of the tokens of a step by a BERT of transformers, or by any other model."""

from collections.abc import Sequence
from typing import Any

from citerec.train.bert.chunks import LayerStack
from citerec.train.bert.layers import Layer
from citerec.train.chunks import Chunk


def is_supported(body: Any) -> bool:
    """Return whether `states_of` can compute the states of a model: a BERT of transformers on a CPU."""
    from transformers import BertModel

    config = body.config
    return (
        type(body) is BertModel
        and body.device.type == "cpu"
        and not config.is_decoder
        and not config.add_cross_attention
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and config.hidden_size % config.num_attention_heads == 0
    )


def states_of(body: Any, chunks: Sequence[Chunk], *, first: bool) -> list[Any]:
    """Return the last states of each chunk, float32, shape (texts, tokens, dim).

    Args:
        body: A model that `is_supported`.
        chunks: The inputs.
        first: Whether only the state of the first token is needed; the shape is then (texts, 1, dim), and the last
            layer computes no other.
    """
    import torch

    bfloat16 = torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu") if bfloat16 else torch.float32
    heads = body.config.num_attention_heads
    stack = LayerStack(
        layers=[Layer(module, heads) for module in body.encoder.layer],
        shapes=[tuple(chunk["input_ids"].shape) for chunk in chunks],
        paddings=[_padding(chunk["attention_mask"], dtype) for chunk in chunks],
        dtype=dtype,
        first=first,
    )
    with torch.autocast("cpu", enabled=False):
        return stack.run(_embedded(body.embeddings, chunks))


def _embedded(embeddings: Any, chunks: Sequence[Chunk]) -> Any:
    """Return the embeddings of the tokens of all chunks, shape (tokens, dim).

    They are one look-up, so that the gradient of the whole table is made once for all chunks.
    """
    import torch

    ids = [chunk["input_ids"] for chunk in chunks]
    types = [chunk.get("token_type_ids", torch.zeros_like(chunk["input_ids"])) for chunk in chunks]
    places = [torch.arange(one.shape[1]).expand_as(one) for one in ids]
    ids, types, places = (
        torch.cat([one.reshape(-1) for one in of])[None] for of in (ids, types, places)
    )
    return embeddings(input_ids=ids, token_type_ids=types, position_ids=places)[0]


def _padding(mask: Any, dtype: Any) -> Any:
    """Return what is added to the scores of a chunk, shape (texts, 1, tokens); None for a chunk without padding."""
    import torch

    if mask.all():
        return None
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask == 0, torch.finfo(dtype).min)[
        :, None
    ]
