"""The layers of BERT over the chunks of a step, several chunks in parallel, as one node of torch's graph.

On a CPU a thread per chunk is faster than threads that share each matrix product. The sums over chunks have a fixed
order, so the same number of threads gives the same bits.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from citerec.train.bert.layers import Group, Layer

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LayerStack:
    """What computes the states of the chunks of a step."""

    layers: Sequence[Layer]
    shapes: Sequence[tuple[int, int]]  # texts and tokens of each chunk
    paddings: Sequence[Any]  # of each chunk, as `attention.attend` takes it
    dtype: Any  # the precision of the matrix products
    first: bool  # whether the last layer returns the state of the first token only

    @property
    def groups(self) -> list[Group]:
        """The parameters of all layers."""
        return [group for layer in self.layers for group in layer.groups]

    def run(self, states: Any) -> list[Any]:
        """Return the states of each chunk after the last layer, shape (texts, tokens, dim) or (texts, 1, dim).

        Args:
            states: Of the tokens of all chunks, with padding, after the embeddings: float32, shape (tokens, dim).
        """
        parameters = [one for group in self.groups for one in group.parameters]
        flat = _function().apply(self, states, *parameters)
        counts = [texts * (1 if self.first else tokens) for texts, tokens in self.shapes]
        parts = zip(flat.split(counts), self.shapes, strict=True)
        return [part.view(texts, -1, part.shape[-1]) for part, (texts, _) in parts]

    def chunk(self, number: int, states: Any, weights: Sequence[Any]) -> Any:
        """Return the states of one chunk after the last layer."""
        each = len(weights) // len(self.layers)
        for place, layer in enumerate(self.layers):
            last = place == len(self.layers) - 1
            own = weights[place * each : (place + 1) * each]
            states = layer.forward(states, own, self.paddings[number], first=self.first and last)
        return states

    def in_parallel(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the result of each item; one after the other if dropout draws random numbers."""
        if any(layer.is_random for layer in self.layers):
            return [work(item) for item in items]
        return in_parallel(work, items)


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the result of each item, from as many threads as torch has, which share torch's threads."""
    import torch

    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers < 2:
        return [work(item) for item in items]
    share = threads // workers
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(share,)) as pool:
        try:
            return [*pool.map(work, items)]
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)


@cache
def _function() -> Any:
    """Return the torch function of `LayerStack.run`; torch is imported at the first call."""
    import torch

    class Chunks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, stack: LayerStack, states: Any, *parameters: Any) -> Any:
            trained = iter(ctx.needs_input_grad[2:])
            flags = [tuple(next(trained) for _ in group.parameters) for group in stack.groups]
            groups = zip(stack.groups, flags, strict=True)
            weights = [_joined(group, any(of), stack.dtype) for group, of in groups]
            counts = [texts * tokens for texts, tokens in stack.shapes]
            inputs = [
                part.detach().view(*shape, -1).requires_grad_(ctx.needs_input_grad[1])
                for part, shape in zip(states.split(counts), stack.shapes, strict=True)
            ]

            def work(number: int) -> Any:
                recorded = torch.set_grad_enabled(any(ctx.needs_input_grad))
                with recorded, torch.autocast("cpu", enabled=False):
                    return stack.chunk(number, inputs[number], weights)

            outputs = stack.in_parallel(work, range(len(inputs)))
            ctx.stack, ctx.flags, ctx.graph = stack, flags, (inputs, weights, outputs)
            return torch.cat([output.detach().flatten(0, 1) for output in outputs])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            inputs, weights, outputs = ctx.graph
            ctx.graph = None
            parts = grads[0].split([output.shape[0] * output.shape[1] for output in outputs])
            trained = [weight for weight in weights if weight.requires_grad]

            def work(number: int) -> tuple[Any, ...]:
                output, own = outputs[number], inputs[number]
                outputs[number] = None
                wanted = [own, *trained] if own.requires_grad else trained
                with torch.autocast("cpu", enabled=False):
                    return torch.autograd.grad(output, wanted, parts[number].view_as(output))

            found = ctx.stack.in_parallel(work, range(len(inputs)))
            of_states = None
            if inputs[0].requires_grad:
                of_states = torch.cat([own[0].flatten(0, 1) for own in found])
                found = [own[1:] for own in found]
            sums = iter([_sum(of_chunks) for of_chunks in zip(*found, strict=True)])
            of_groups = [_split(next(sums) if any(of) else None, of) for of in ctx.flags]
            return None, of_states, *(grad for group in of_groups for grad in group)

    return Chunks


def _joined(group: Group, trained: bool, dtype: Any) -> Any:
    """Return the parameters of a group as one new leaf of torch's graph.

    Args:
        group: The parameters.
        trained: Whether gradients are computed.
        dtype: The precision of the matrix products.
    """
    import torch

    detached = [parameter.detach() for parameter in group.parameters]
    joined = torch.cat(detached) if len(detached) > 1 else detached[0]
    return joined.to(torch.float32 if group.normalises else dtype).requires_grad_(trained)


def _sum(grads: Sequence[Any]) -> Any:
    """Return the sum of the gradients of the chunks, in float32."""
    total = grads[0].float()
    for grad in grads[1:]:
        total.add_(grad)
    return total


def _split(grad: Any, trained: Sequence[bool]) -> list[Any]:
    """Return the gradient of each parameter of a group; None for one that is not trained."""
    if grad is None:
        return [None for _ in trained]
    parts = grad.chunk(len(trained))
    return [part if flag else None for part, flag in zip(parts, trained, strict=True)]
