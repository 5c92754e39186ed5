"""How good a model of words is on the dev queries, and which of several is best."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from citerec.folder import IndexFolder
from citerec.lab.train_words.config import WordsTraining
from citerec.lab.train_words.kept import KeptTraining
from citerec.lab.words.model import WordModel
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.dev import EncoderDev, load_dev, mean_f1, mean_reciprocal_rank
from citerec.train.encoder.mine import similarities
from citerec.types import Log, Progress

Model = TypeVar("Model", bound=WordModel)
Setting = Mapping[str, Any]

TRIED = "tried"  # the state of a search among settings


@dataclass(frozen=True, slots=True)
class GridTrial:
    """A setting, and what it gave on the dev queries; None where there are none."""

    setting: Setting
    mrr: float | None  # in [0, 1]
    f1: float | None  # at 20

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in self.setting.items())
        measured = "" if self.mrr is None else f"dev MRR {self.mrr:.4f}, F1@20 {self.f1:.4f}"
        return ": ".join(filter(None, (shown, measured)))


@dataclass(frozen=True)
class GridSearch:
    """Tries settings on the dev queries of an index."""

    dev: EncoderDev | None
    log: Log
    progress: Progress
    kept: KeptTraining = field(default_factory=KeptTraining)

    @classmethod
    def of(
        cls,
        index: IndexFolder,
        config: WordsTraining,
        log: Log,
        progress: Progress,
        kept: KeptTraining | None = None,
    ) -> "GridSearch":
        """Draw the dev queries as for every encoder that is trained."""
        drawn = {n: getattr(config, n) for n in ("seed", "dev_queries", "dev_pool")}
        dev = load_dev(index, EncoderTraining.of(drawn))
        return cls(dev, log, progress, kept or KeptTraining())

    def best(
        self, settings: Iterable[Setting], make: Callable[..., Model]
    ) -> tuple[Model, list[GridTrial]]:
        """Make a model with each setting; return the one of the highest MRR, of equal ones the first.

        What was tried is kept after each setting: a training that is resumed goes on with the next one.

        Args:
            settings: Values by name, as `make` takes them. Without dev queries the first one is taken.
            make: Makes a model.
        """
        wanted = list(settings)[: None if self.dev else 1]
        tried, best, model = self._resumed()
        for number, setting in list(enumerate(wanted))[len(tried) :]:
            made = make(**setting)
            tried.append(self.measured(made, setting))
            if best_of(tried) is tried[-1]:
                best, model = number, made
                self.kept.save_model(number, made)
            if len(wanted) > 1:
                facts = {"tried": [asdict(one) for one in tried], "best": best}
                self.kept.save(TRIED, {}, facts)
                self.kept.remove_models(but=best)
                self.progress("choosing", number + 1, len(wanted))
                self.log(str(tried[-1]))
        if model is None:
            raise ValueError("no setting to try")
        return model, tried

    def _resumed(self) -> tuple[list[GridTrial], int, Any]:
        """Return what was tried before, the number of the best of them, and its model; nothing if nothing was."""
        state = self.kept.load(TRIED)
        if state is None:
            return [], 0, None
        facts = state[1]
        tried = [GridTrial(**one) for one in facts["tried"]]
        return tried, facts["best"], self.kept.load_model(facts["best"])

    def measured(self, model: WordModel, setting: Setting) -> GridTrial:
        """Measure a model."""
        if self.dev is None:
            return GridTrial(dict(setting), None, None)
        asked, given = model.vectors(self.dev.queries), model.vectors(self.dev.papers)
        scores = similarities(model.similarity, asked, given)
        scores[~self.dev.allowed] = -np.inf
        return GridTrial(
            dict(setting),
            mean_reciprocal_rank(scores, self.dev.gold),
            mean_f1(scores, self.dev.gold),
        )


def best_of(tried: Iterable[GridTrial]) -> GridTrial:
    """Return the one of the highest MRR, of equal ones the first."""
    return max(tried, key=lambda one: one.mrr or 0.0)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
