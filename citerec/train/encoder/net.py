"""The network that is trained: the model, its pooling and its loss as one module."""

from typing import Any

from citerec.encode.encoder import Vectors
from citerec.encode.model import Parts, pool
from citerec.encode.spec import Similarity
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.losses import in_batch, similarity, triplet
from citerec.train.encoder.memory import over_memory


def make_net(parts: Parts, config: EncoderTraining, remembered: Vectors | None = None) -> Any:
    """Return the module: it takes what `batch.Collator` makes, and gives the loss.

    A head that no vector is made of (BERT's pooler) is not trained.

    Args:
        parts: The model.
        config: Which loss.
        remembered: What the memory begins with, shape (papers, dim); checkpoints hold what becomes of it.
    """
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model
            for name, weights in self.model.named_parameters():
                if name.startswith("pooler."):
                    weights.requires_grad_(False)
            if not config.dropout:
                _read_alike(torch, self.model)
            if remembered is not None:
                self.register_buffer("memory", torch.from_numpy(remembered))

        def forward(self, chunks: Any, **where: Any) -> Any:
            vectors = torch.cat([self.read(**chunk) for chunk in chunks])
            with torch.autocast(vectors.device.type, enabled=False):
                if config.loss is Loss.MEMORY:
                    return self.remember(vectors, **where)
                return loss_of(vectors, config, parts.spec.similarity, **where)

        memory: Any

        def remember(self, vectors: Any, live: Any, queries: Any, **where: Any) -> Any:
            now = self.memory.index_put((live,), vectors)
            scores = similarity(parts.spec.similarity, now[queries], now)
            self.memory[live] = vectors.detach()
            return over_memory(scores, where, temperature=config.temperature)

        def read(self, input_ids: Any, attention_mask: Any) -> Any:
            states = self.model(input_ids=input_ids, attention_mask=attention_mask)
            vectors = pool(states.last_hidden_state, attention_mask, parts.spec.pooling)
            if parts.spec.similarity is Similarity.COSINE:
                return torch.nn.functional.normalize(vectors, dim=-1)
            return vectors

    return Net()


def _read_alike(torch: Any, model: Any) -> None:
    """Leave dropout out."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout"):  # some models keep the rate as a number
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def loss_of(
    vectors: Any, config: EncoderTraining, kind: Similarity, *, triples: Any = None, **where: Any
) -> Any:
    """Return the loss of a step.

    Args:
        vectors: Of every paper of the step, shape (papers, dim).
        config: Which loss.
        kind: How vectors are compared.
        triples: The places of query, positive and negative, shape (examples, 3).
        where: In-batch: the places of `queries` and `papers`, the `targets` among these, and who is `allowed`.
    """
    if config.loss is Loss.TRIPLET:
        return triplet(*vectors[triples].unbind(1), margin=config.margin)
    scores = similarity(kind, vectors[where["queries"]], vectors[where["papers"]])
    return in_batch(
        scores,
        where["targets"],
        where["allowed"],
        temperature=config.temperature,
        symmetric=config.symmetric,
    )
