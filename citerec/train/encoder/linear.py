"""Trains a linear map of the vectors of an encoder, which itself stays as it is: a minute in place of an hour.

The loss is that of the memory: every positive of a query against all papers, or against a sample of them that is new at
each step. As no text is read, these papers are mapped anew. The map starts as the identity. The sum of its squared
changes is a part of the loss, since a corpus may have fewer citations than the map has numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.encoder import Encoder, Vectors
from citerec.encode.projection import Matrix, unit
from citerec.encode.spec import Similarity
from citerec.stored import stored_vectors
from citerec.train.data import TrainingData
from citerec.train.encoder.config import UPDATES, EncoderTraining
from citerec.train.encoder.dev import EncoderDev, measure_vectors
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.losses import similarity
from citerec.train.encoder.memory import Memory
from citerec.train.lists import Rows
from citerec.types import Progress

STEP_PAPERS = 16_384  # compared in a step at most, beside the positives of its queries
PULL = 30.0  # weight of the sum of the squared changes beside the sum of the losses of all train queries


class LinearExamples:
    """The queries of each update; an epoch has `UPDATES` of them."""

    def __init__(self, examples: EncoderExamples) -> None:
        """Take the queries and the memory of the examples of a training with the memory loss."""
        self.data, self.positives = examples.data, examples.positives
        self.memory = Memory(
            examples.data, examples.positives, examples.learners, seed=examples.config.seed
        )
        self._config = examples.config

    def __len__(self) -> int:
        return UPDATES * self._config.batch

    def epoch(self, number: int) -> Rows:
        """Return the numbers of the queries of an epoch: all in random order, then all in another one, and so on."""
        rng = np.random.default_rng([self._config.seed, number, 1])
        queries = self.memory.usable
        orders = [rng.permutation(queries) for _ in range(-(-len(self) // len(queries)))]
        return np.concatenate(orders)[: len(self)].astype(np.int32)

    def collate(self, drawn: Sequence[Any]) -> dict[str, Any]:
        """Return the inputs of the net: the comparison of some queries."""
        import torch

        chosen = np.unique(np.array(drawn))
        papers = self._compared(chosen, [int(query) for query in drawn[:8]])
        comparison = self.memory.of_queries(chosen, papers=papers)
        arrays = {field.name: getattr(comparison, field.name) for field in fields(comparison)}
        arrays["papers"] = papers
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _compared(
        self, queries: npt.NDArray[np.int64], drawn: Sequence[int]
    ) -> npt.NDArray[np.int64]:
        """Return the slots of the papers of a step: all, or the positives of its queries and a random sample.

        The sample is another one if the queries are drawn in another order.
        """
        if len(self.memory) <= STEP_PAPERS:
            return np.arange(len(self.memory))
        positives = self.memory.slots(self.positives.at(queries).indices)
        rng = np.random.default_rng([self._config.seed, 9, *drawn])
        sample = rng.choice(len(self.memory), STEP_PAPERS, replace=False)
        return np.union1d(positives[positives >= 0], sample)


def linear_net(
    vectors: Vectors, config: EncoderTraining, kind: Similarity, *, train_queries: int
) -> Any:
    """Return the torch module of a map: it maps the inputs of `LinearExamples.collate` to the loss.

    Args:
        vectors: Of the papers of the memory, shape (papers, dim).
        config: Has the temperature.
        kind: How mapped vectors are compared.
        train_queries: How many there are, at least 1.
    """
    import torch

    class LinearNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            dim = vectors.shape[1]
            self.change = torch.nn.Parameter(torch.zeros(dim, dim))
            self.register_buffer("vectors", torch.from_numpy(vectors), persistent=False)

        vectors: Any

        def matrix(self) -> Any:
            return self.change + torch.eye(len(self.change), device=self.change.device)

        def mapped(self, slots: Any) -> Any:
            found = self.vectors[slots] @ self.matrix().T
            is_cosine = kind is Similarity.COSINE
            return torch.nn.functional.normalize(found, dim=-1) if is_cosine else found

        def forward(
            self,
            queries: Any,
            papers: Any,
            segment_ids: Any,
            targets: Any,
            weights: Any,
            allowed: Any,
        ) -> Any:
            with torch.autocast(queries.device.type, enabled=False):
                found = similarity(kind, self.mapped(queries), self.mapped(papers))
                logits = found / config.temperature
                logs = torch.log_softmax(logits.masked_fill(~allowed, float("-inf")), 1)
                loss = -(weights * logs[segment_ids, targets]).sum() / weights.sum()
                return loss + PULL / train_queries * self.change.pow(2).sum()

    return LinearNet()


def matrix_of(net: Any) -> Matrix:
    """Return the trained map of a net, shape (dim, dim)."""
    return net.matrix().detach().float().cpu().numpy()


def vectors_of(
    data: TrainingData, rows: Rows, encoder: Encoder, progress: Progress
) -> tuple[Vectors, int]:
    """Return the vectors of some papers by an encoder; an index that was embedded by it has them.

    Args:
        data: Its indexes hold the papers.
        rows: The papers, rising.
        encoder: The encoder.
        progress: Receives how many papers are encoded.

    Returns:
        The vectors, shape (papers, dim), and how many of them an index had.
    """
    found = np.empty((len(rows), encoder.dim), np.float32)
    missing: list[int] = []
    for part in data.by_index():
        first, end = np.searchsorted(rows, [part.start, part.start + len(part.index.papers)])
        read = stored_vectors(part.index, encoder.fingerprint)
        if read is None:
            missing += range(first, end)
        else:
            found[first:end] = read((rows[first:end] - part.start).tolist())
    if missing:
        papers = data.index.papers.at(rows[missing].tolist())
        found[missing] = encoder.encode(
            [*papers.values()], lambda _, done, of: progress("encoding papers", done, of)
        )
    return found, len(rows) - len(missing)


class LinearDev:
    """The vectors of dev queries and their candidates, which are mapped anew for each measure."""

    def __init__(
        self, dev: EncoderDev, encoder: Encoder, config: EncoderTraining, progress: Progress
    ) -> None:
        self._dev, self._config, self._kind = dev, config, encoder.spec.similarity
        self._vectors = _dev_vectors(dev, encoder, progress)

    def measure(self, matrix: Matrix) -> Mapping[str, float]:
        """Return the dev loss, MRR and F1 at 20 with a map."""
        vectors = self._vectors @ matrix.T
        vectors = unit(vectors) if self._kind is Similarity.COSINE else vectors
        return measure_vectors(self._dev, vectors, self._kind, self._config)


def _dev_vectors(dev: EncoderDev, encoder: Encoder, progress: Progress) -> Vectors:
    """Return the vectors of the queries, then of the papers; those that an index has are read from it."""
    texts = [*dev.queries, *dev.papers]
    vectors, missing = (
        np.empty((len(texts), encoder.dim), np.float32),
        np.ones(len(texts), np.bool_),
    )
    first_query, first_paper = 0, len(dev.queries)
    for index, queries, papers in dev.rows:
        if read := stored_vectors(index, encoder.fingerprint):
            for first, rows in ((first_query, queries), (first_paper, papers)):
                places = first + np.flatnonzero(rows >= 0)
                vectors[places] = read(rows[rows >= 0].tolist())
                missing[places] = False
        first_query, first_paper = first_query + len(queries), first_paper + len(papers)
    if missing.any():
        vectors[missing] = encoder.encode(
            [texts[place] for place in np.flatnonzero(missing).tolist()],
            lambda _, done, of: progress("encoding dev papers", done, of),
        )
    return vectors
