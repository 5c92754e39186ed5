"""The layers of BERT as a function of their weights, which the chunks of an update share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from citerec.train.bert.attention import attend, attend_from_first


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters of torch that are used as one tensor."""

    parameters: tuple[Any, ...]  # equal in shape
    normalises: bool = False  # part of a normalisation, which is computed in float32


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: modules of transformers, and the sizes of its attention."""

    module: Any  # a BertLayer
    heads: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """The parameters in the order in which `forward` takes them; query, key and value are one product."""
        attention, output = self.module.attention, self.module.output
        projections = (attention.self.query, attention.self.key, attention.self.value)
        return (
            Group(tuple(projection.weight for projection in projections)),
            Group(tuple(projection.bias for projection in projections)),
            *_groups_of(attention.output.dense),
            *_groups_of(attention.output.LayerNorm, normalises=True),
            *_groups_of(self.module.intermediate.dense),
            *_groups_of(output.dense),
            *_groups_of(output.LayerNorm, normalises=True),
        )

    def forward(self, states: Any, weights: Sequence[Any], padding: Any, *, first: bool) -> Any:
        """Return the states after the layer, float32, shape (texts, tokens, dim).

        Args:
            states: The states before it, float32, same shape.
            weights: One tensor for each of `groups`, in the precision of the matrix products; those of the
                normalisation are float32.
            padding: As `attention.attend` takes it.
            first: Whether only the state of the first token is returned, shape (texts, 1, dim).
        """
        import torch

        functional = torch.nn.functional
        (joined, joined_bias, dense, dense_bias, norm, norm_bias) = weights[:6]
        (up, up_bias, down, down_bias, last_norm, last_norm_bias) = weights[6:]
        attention, output = self.module.attention, self.module.output
        attended = self._attended(states.to(joined.dtype), joined, joined_bias, padding, first)
        if first:
            states = states[:, :1]
        added = attention.output.dropout(functional.linear(attended, dense, dense_bias))
        states = _normalised(added + states, attention.output.LayerNorm, norm, norm_bias)
        wide = functional.linear(states.to(up.dtype), up, up_bias)
        wide = self.module.intermediate.intermediate_act_fn(wide)
        added = output.dropout(functional.linear(wide, down, down_bias))
        return _normalised(added + states, output.LayerNorm, last_norm, last_norm_bias)

    def _attended(self, states: Any, joined: Any, bias: Any, padding: Any, first: bool) -> Any:
        import torch

        linear, dropout = torch.nn.functional.linear, self.dropout
        texts, tokens, dim = states.shape
        if not first:
            shape = texts, tokens, 3, self.heads, dim // self.heads
            return attend(linear(states, joined, bias).view(shape), padding, dropout)
        shape = texts, -1, self.heads, dim // self.heads
        query = linear(states[:, :1], joined[:dim], bias[:dim]).view(shape)
        both = linear(states, joined[dim:], bias[dim:])
        keys, values = (part.view(shape) for part in both.split(dim, -1))
        return attend_from_first(query, keys, values, padding, dropout)

    @property
    def dropout(self) -> float:
        """The share of the attention weights that are dropped; 0 unless the model is in training mode."""
        module = self.module.attention.self.dropout
        return float(module.p) if module.training else 0.0

    @property
    def is_random(self) -> bool:
        """Whether some dropout is active."""
        outputs = self.module.attention.output, self.module.output
        rates = [of.dropout.p for of in outputs if of.dropout.training]
        return self.dropout > 0 or any(rates)


def _groups_of(module: Any, *, normalises: bool = False) -> tuple[Group, Group]:
    return Group((module.weight,), normalises), Group((module.bias,), normalises)


def _normalised(states: Any, module: Any, weight: Any, bias: Any) -> Any:
    import torch

    return torch.nn.functional.layer_norm(states, weight.shape, weight, bias, module.eps)
