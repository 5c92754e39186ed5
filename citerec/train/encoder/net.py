"""The network that is trained: the encoder, its pooling and its loss as one torch module."""

from collections.abc import Sequence
from typing import Any

from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts, pool
from citerec.encode.spec import Pooling, Similarity
from citerec.train.bert.states import is_supported, states_of
from citerec.train.chunks import Chunk
from citerec.train.encoder.config import EncoderLoss, EncoderTraining
from citerec.train.encoder.losses import in_batch, similarity, triplet
from citerec.train.encoder.memoryloss import MemoryScores


def make_net(parts: Parts, config: EncoderTraining, initial_memory: Vectors | None = None) -> Any:
    """Return the module: it maps the inputs of `batch.Collator` to the loss.

    A head that does not contribute to the vectors (BERT's pooler) is frozen.

    Args:
        parts: The model.
        config: Selects the loss.
        initial_memory: The vectors that the memory starts with, shape (papers, dim); checkpoints contain the memory.
    """
    import torch

    class EncoderLossNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model
            for name, weights in self.model.named_parameters():
                if name.startswith("pooler."):
                    weights.requires_grad_(False)
            if not config.dropout:
                _disable_dropout(torch, self.model)
            if initial_memory is not None:
                self.register_buffer("memory", torch.from_numpy(initial_memory))

        def forward(self, chunks: Any, **where: Any) -> Any:
            vectors = torch.cat(self.read(chunks))
            with torch.autocast(vectors.device.type, enabled=False):
                if config.loss is EncoderLoss.MEMORY:
                    return self.memory_loss(vectors, **where)
                return loss_of(vectors, config, parts.spec.similarity, **where)

        memory: Any

        def memory_loss(self, vectors: Any, live: Any, queries: Any, **where: Any) -> Any:
            self.memory[live] = vectors.detach()
            kind, temperature = parts.spec.similarity, config.temperature
            scores = MemoryScores(kind, temperature, self.memory, queries, where)
            return scores.loss(vectors, live)

        def read(self, chunks: Sequence[Chunk]) -> list[Any]:
            pooling = parts.spec.pooling
            if is_supported(self.model):
                states = states_of(self.model, chunks, first=pooling is Pooling.CLS)
            else:
                states = [self.model(**chunk).last_hidden_state for chunk in chunks]
            masks = [chunk["attention_mask"] for chunk in chunks]
            vectors = [pool(*pair, pooling) for pair in zip(states, masks, strict=True)]
            if parts.spec.similarity is Similarity.COSINE:
                return [torch.nn.functional.normalize(of, dim=-1) for of in vectors]
            return vectors

    return EncoderLossNet()


def _disable_dropout(torch: Any, model: Any) -> None:
    """Set all dropout rates to 0."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout"):  # some models store the rate as a number
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def loss_of(
    vectors: Any, config: EncoderTraining, kind: Similarity, *, triples: Any = None, **where: Any
) -> Any:
    """Return the loss of a step.

    Args:
        vectors: Of every paper of the step, shape (papers, dim).
        config: Selects the loss.
        kind: The similarity of vectors.
        triples: The positions of query, positive and negative in `vectors`, shape (examples, 3).
        where: In-batch: the positions of `queries` and `papers`, the `targets` among the papers, and the `allowed`
            flags.
    """
    if config.loss is EncoderLoss.TRIPLET:
        return triplet(*vectors[triples].unbind(1), margin=config.margin)
    scores = similarity(kind, vectors[where["queries"]], vectors[where["papers"]])
    return in_batch(scores, where["targets"], where["allowed"], temperature=config.temperature)
