"""Citeomatic's embedding: a weighted sum of word vectors that triplets of citations teach."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from citerec.encode.words.bag import Bag
from citerec.encode.words.model import Vectors
from citerec.encode.words.tokens import counted
from citerec.train.words.config import WordsTraining
from citerec.train.words.corpus import TrainTexts
from citerec.train.words.dev import Judge, Tried
from citerec.train.words.made import Made
from citerec.train.words.triplets import Drawer, Triplets
from citerec.types import Paper


def make_citeomatic(texts: TrainTexts, config: WordsTraining, judge: Judge) -> Made:
    """Train the embedding; the epoch of the best dev MRR is kept, the last one without dev queries.

    A word has a direction and a magnitude, shared by title and abstract; the sum of each is scaled to unit length,
    weighed by a share that is learned, too, and the two are added up and scaled again.

    Source: Bhagavatula et al., NAACL 2018, section 3.1, https://arxiv.org/abs/1802.08301.
    """
    with _repeatable(config.threads):
        return _trained(texts, config, judge)


@contextmanager
def _repeatable(threads: int) -> Generator[None]:
    """Let torch add in one order, whatever the threads; what was set before is set again."""
    import torch

    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


def _trained(texts: TrainTexts, config: WordsTraining, judge: Judge) -> Made:
    words = texts.vocabulary(config.min_df, config.max_df)
    papers = [*texts.data.index.papers.at(range(texts.data.papers)).values()]
    learner = _Learner(words, papers, config)
    drawer = Drawer(texts.data, config.margin, config.negatives, config.seed)
    rng = np.random.default_rng([config.seed, 11])
    kept, tried, near = learner.bag(), list[Tried](), None
    for epoch in range(1, config.epochs + 1):
        learner.learn(drawer.draw(near, rng), rng)
        model = learner.bag()
        measured = judge.measured(model, {"epoch": epoch})
        judge.tell("training", epoch, config.epochs)
        judge.say(str(measured))
        tried.append(measured)
        if judge.dev is None or max(tried, key=lambda one: one.mrr or 0.0) is measured:
            kept = model
        if epoch < config.epochs:
            near = drawer.near(model.vectors(papers))
    counts = {
        "train_papers": len(texts.rows),
        "words": len(words),
        "citations": len(texts.data.gold.indices),
    }
    return Made(model=kept, tried=tried if judge.dev else tried[-1:], counts=counts)


class _Learner:
    """The weights, and what moves them."""

    def __init__(
        self, words: Sequence[str], papers: Sequence[Paper], config: WordsTraining
    ) -> None:
        import torch

        self._torch: Any = torch
        self._words, self._config = tuple(words), config
        numbers = {word: number for number, word in enumerate(words)}
        self._fields = [
            counted((paper.title for paper in papers), numbers),
            counted((paper.abstract for paper in papers), numbers),
        ]
        chance = torch.Generator().manual_seed(config.seed)
        start = torch.randn((len(words), config.dim), generator=chance)
        self._directions = start.requires_grad_()
        self._magnitudes = torch.ones(len(words), requires_grad=True)
        self._shares = torch.ones(2, requires_grad=True)
        weights = [self._directions, self._magnitudes, self._shares]
        self._adam = torch.optim.Adam(weights, lr=config.learning_rate)

    def learn(self, triplets: Triplets, rng: np.random.Generator) -> None:
        """Go once through the triplets: max(0, margin + s(query, negative) - s(query, positive))."""
        torch = self._torch
        for first in range(0, len(triplets.margins), self._config.batch):
            part = slice(first, first + self._config.batch)
            asked = (triplets.queries[part], triplets.positives[part], triplets.negatives[part])
            rows, places = np.unique(np.concatenate(asked), return_inverse=True)
            query, positive, negative = self._vectors(rows, rng)[places].chunk(3)
            margins = torch.from_numpy(triplets.margins[part])
            apart = margins + (query * (negative - positive)).sum(1)
            self._adam.zero_grad()
            apart.clamp(min=0).mean().backward()
            self._adam.step()

    def _vectors(self, rows: Any, rng: np.random.Generator) -> Any:
        torch = self._torch
        normal = torch.nn.functional.normalize
        words = normal(self._directions, dim=1) * self._magnitudes[:, None]
        parts = [normal(self._summed(counts[rows], words, rng), dim=1) for counts in self._fields]
        return normal(self._shares[0] * parts[0] + self._shares[1] * parts[1], dim=1)

    def _summed(self, counts: Any, words: Any, rng: np.random.Generator) -> Any:
        torch = self._torch
        summed = torch.nn.functional.embedding_bag(
            torch.from_numpy(counts.indices.astype(np.int64)),
            words,
            torch.from_numpy(counts.indptr[:-1].astype(np.int64)),
            mode="sum",
            per_sample_weights=torch.from_numpy(counts.data),
        )
        kept = rng.random(tuple(summed.shape), np.float32) >= self._config.dropout
        return summed * torch.from_numpy(kept)

    def bag(self) -> Bag:
        """Return the model as it is now."""
        with self._torch.no_grad():
            directions = self._torch.nn.functional.normalize(self._directions, dim=1)
            title, abstract = self._shares.tolist()
            return Bag(
                words=self._words,
                word_vectors=_numpy(directions),
                weights=_numpy(self._magnitudes),
                shares=(title, abstract),
            )


def _numpy(tensor: Any) -> Vectors:
    return tensor.detach().numpy().astype(np.float32, copy=True)
