"""How good a model of words is on the dev queries, and which of several is best."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from citerec.encode.words.model import WordModel
from citerec.folder import IndexFolder
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.dev import Dev, load_dev, mean_f1, mean_reciprocal_rank
from citerec.train.encoder.mine import similarities
from citerec.train.words.config import WordsTraining
from citerec.types import Note, Progress

Model = TypeVar("Model", bound=WordModel)
Setting = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tried:
    """A setting, and what it gave on the dev queries; None where there are none."""

    setting: Setting
    mrr: float | None  # in [0, 1]
    f1: float | None  # at 20

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in self.setting.items())
        measured = "" if self.mrr is None else f"dev MRR {self.mrr:.4f}, F1@20 {self.f1:.4f}"
        return ": ".join(filter(None, (shown, measured)))


@dataclass(frozen=True)
class Judge:
    """Tries settings on the dev queries of an index."""

    dev: Dev | None
    say: Note
    tell: Progress

    @classmethod
    def of(cls, index: IndexFolder, config: WordsTraining, say: Note, tell: Progress) -> "Judge":
        """Draw the dev queries as for every encoder that is trained."""
        drawn = {n: getattr(config, n) for n in ("seed", "dev_queries", "dev_pool")}
        return cls(load_dev(index, EncoderTraining.of(drawn)), say, tell)

    def best(
        self, settings: Iterable[Setting], make: Callable[..., Model]
    ) -> tuple[Model, list[Tried]]:
        """Make a model with each setting; return the one of the highest MRR, of equal ones the first.

        Args:
            settings: Values by name, as `make` takes them. Without dev queries the first one is taken.
            make: Makes a model.
        """
        chosen: tuple[float, Model] | None = None
        tried: list[Tried] = []
        wanted = list(settings)[: None if self.dev else 1]
        for number, setting in enumerate(wanted):
            model = make(**setting)
            measured = self.measured(model, setting)
            tried.append(measured)
            merit = measured.mrr or 0.0
            if chosen is None or merit > chosen[0]:
                chosen = merit, model
            if len(wanted) > 1:
                self.tell("choosing", number + 1, len(wanted))
                self.say(str(measured))
        if chosen is None:
            raise ValueError("no setting to try")
        return chosen[1], tried

    def measured(self, model: WordModel, setting: Setting) -> Tried:
        """Measure a model."""
        if self.dev is None:
            return Tried(dict(setting), None, None)
        asked, given = model.vectors(self.dev.queries), model.vectors(self.dev.papers)
        scores = similarities(model.similarity, asked, given)
        scores[~self.dev.allowed] = -np.inf
        return Tried(
            dict(setting),
            mean_reciprocal_rank(scores, self.dev.gold),
            mean_f1(scores, self.dev.gold),
        )


def best_of(tried: Iterable[Tried]) -> Tried:
    """Return the one of the highest MRR, of equal ones the first."""
    return max(tried, key=lambda one: one.mrr or 0.0)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
