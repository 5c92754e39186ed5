"""The result of a recipe: a word-vector model and its trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from citerec.lab.train_words.dev import GridTrial, best_of
from citerec.lab.words.model import WordModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model, its trials and the counts of its training data."""

    model: WordModel
    tried: Sequence[GridTrial]  # settings or epochs, with their figures on the dev queries
    counts: Mapping[str, int] = field(default_factory=dict[str, int])  # of the training data
    weights: str | None = None  # sha256 of precomputed word vectors

    @property
    def best(self) -> GridTrial:
        """The trial of the model."""
        return best_of(self.tried)
