"""What a recipe gives: a model of words, and what was tried on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from citerec.lab.train_words.dev import GridTrial, best_of
from citerec.lab.words.model import WordModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model, and how it came about."""

    model: WordModel
    tried: Sequence[GridTrial]  # settings or epochs, with their figures on the dev queries
    counts: Mapping[str, int] = field(default_factory=dict[str, int])  # of what was learned from
    weights: str | None = None  # sha256 of the word vectors that were given

    @property
    def best(self) -> GridTrial:
        """What the model was made with."""
        return best_of(self.tried)
