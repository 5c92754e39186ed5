"""Citeomatic's embedding: a weighted sum of word vectors, trained on triplets of citations."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from citerec.lab.train_words.config import MAX_DF, WordsTraining
from citerec.lab.train_words.corpus import TrainTexts
from citerec.lab.train_words.dev import GridSearch, GridTrial, TrainedModel, best_of
from citerec.lab.train_words.kept import Arrays
from citerec.lab.train_words.triplets import Drawer, Triplets
from citerec.lab.words.bag import Bag
from citerec.lab.words.model import Vectors
from citerec.lab.words.tokens import counted
from citerec.types import Paper

STATE = "citeomatic"  # name of its state in the training folder
BEST = "best-"  # prefix of the names of the best model's arrays
TRIPLETS = 6  # of each citation in an epoch
DROPOUT = 0.1  # share of dimensions dropped in training
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam


def make_citeomatic(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    """Train the embedding; the epoch with the best dev MRR is saved, the last one without dev queries.

    A word has a direction and a magnitude, shared by title and abstract. The sums of title and abstract are scaled to
    unit length, weighted by trained shares, added, and scaled again.

    Source: Bhagavatula et al., NAACL 2018, section 3.1, https://arxiv.org/abs/1802.08301.
    """
    with _repeatable(config.threads):
        return _trained(texts, config, search)


@contextmanager
def _repeatable(threads: int) -> Generator[None]:
    """Make torch deterministic with any number of threads; restore its settings afterwards."""
    import torch

    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])


def _trained(texts: TrainTexts, config: WordsTraining, search: GridSearch) -> TrainedModel:
    words = texts.vocabulary(config.min_df, MAX_DF)
    papers = [*texts.data.index.papers.at(range(texts.data.papers)).values()]
    learner = _Learner(words, papers, config)
    drawer = Drawer(texts.data, TRIPLETS, config.seed)
    rng = np.random.default_rng([config.seed, 11])
    best, tried, near = learner.bag(), list[GridTrial](), None
    if state := search.saved_state.load(STATE):
        best, tried = _restore(learner, rng, *state)
        near = drawer.near(learner.bag().vectors(papers))
    for epoch in range(len(tried) + 1, config.epochs + 1):
        learner.learn(drawer.draw(near, rng), rng)
        model = learner.bag()
        measured = search.measured(model, {"epoch": epoch})
        search.progress("training", epoch, config.epochs)
        search.log(str(measured))
        tried.append(measured)
        if search.dev is None or best_of(tried) is measured:
            best = model
        if epoch < config.epochs:
            search.saved_state.save_if_due(STATE, *_state(learner, rng, best, tried))
            near = drawer.near(model.vectors(papers))
    counts = {
        "train_papers": len(texts.rows),
        "words": len(words),
        "citations": len(texts.data.gold.indices),
    }
    return TrainedModel(model=best, tried=tried if search.dev else tried[-1:], counts=counts)


def _state(
    learner: "_Learner", rng: np.random.Generator, best: Bag, tried: Sequence[GridTrial]
) -> tuple[Arrays, dict[str, Any]]:
    """Return the state that the next epochs depend on."""
    stated, tensors = best.parts()
    arrays = learner.arrays | {f"{BEST}{name}": array for name, array in tensors.items()}
    facts = {
        "tried": [asdict(trial) for trial in tried],
        "best": dict(stated),
        "random": rng.bit_generator.state,
    }
    return arrays, facts


def _restore(
    learner: "_Learner", rng: np.random.Generator, arrays: Arrays, facts: Mapping[str, Any]
) -> tuple[Bag, list[GridTrial]]:
    """Restore the learner and the random generator; return the best model and the measures so far."""
    learner.load(arrays)
    rng.bit_generator.state = facts["random"]
    tensors = {n.removeprefix(BEST): array for n, array in arrays.items() if n.startswith(BEST)}
    return Bag.of_parts(facts["best"], tensors), [GridTrial(**trial) for trial in facts["tried"]]


class _Learner:
    """The trainable weights and their optimiser."""

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
        """Train one epoch on the triplets: max(0, margin + s(query, negative) - s(query, positive))."""
        torch = self._torch
        for first in range(0, len(triplets.margins), self._config.batch):
            part = slice(first, first + self._config.batch)
            rows_of_step = (
                triplets.queries[part],
                triplets.positives[part],
                triplets.negatives[part],
            )
            rows, places = np.unique(np.concatenate(rows_of_step), return_inverse=True)
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
        mask = rng.random(tuple(summed.shape), np.float32) >= DROPOUT
        return summed * torch.from_numpy(mask)

    @property
    def arrays(self) -> dict[str, Any]:
        """The weights and the optimiser state, by name."""
        moments = self._adam.state_dict()["state"]
        weights = {
            f"weights-{n}": _array(w) for n, w in enumerate(self._adam.param_groups[0]["params"])
        }
        for number, state in moments.items():
            weights |= {f"{name}-{number}": _array(tensor) for name, tensor in state.items()}
        return weights

    def load(self, arrays: Arrays) -> None:
        """Restore the weights and the optimiser state."""
        torch = self._torch
        params = self._adam.param_groups[0]["params"]
        state: dict[int, dict[str, Any]] = {}
        with torch.no_grad():
            for number, weights in enumerate(params):
                weights.copy_(torch.from_numpy(arrays[f"weights-{number}"]))
                state[number] = {
                    name: torch.from_numpy(arrays[f"{name}-{number}"]) for name in MOMENTS
                }
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": state, "param_groups": groups})

    def bag(self) -> Bag:
        """Return the current model."""
        with self._torch.no_grad():
            directions = self._torch.nn.functional.normalize(self._directions, dim=1)
            title, abstract = self._shares.tolist()
            return Bag(
                words=self._words,
                word_vectors=_array(directions),
                weights=_array(self._magnitudes),
                shares=(title, abstract),
            )


def _array(tensor: Any) -> Vectors:
    return tensor.detach().numpy().astype(np.float32, copy=True)
