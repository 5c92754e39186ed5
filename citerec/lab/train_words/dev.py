"""Evaluation of word-vector models on the dev queries, and the grid search over their settings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from citerec.folder import IndexFolder
from citerec.lab.train_words.config import WordsTraining
from citerec.lab.train_words.kept import KeptTraining
from citerec.lab.words.model import WordModel
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.dev import EncoderDev, load_dev, mean_f1_and_mrr
from citerec.train.encoder.mine import similarities
from citerec.types import Log, Progress

Model = TypeVar("Model", bound=WordModel)
Setting = Mapping[str, Any]

TRIED = "tried"  # name of the state of a grid search


@dataclass(frozen=True, slots=True)
class GridTrial:
    """A setting with its dev measures; None without dev queries."""

    setting: Setting
    mrr: float | None  # in [0, 1]
    f1: float | None  # at 20

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in self.setting.items())
        measured = "" if self.mrr is None else f"dev MRR {self.mrr:.4f}, F1@20 {self.f1:.4f}"
        return ": ".join(filter(None, (shown, measured)))


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


@dataclass(frozen=True)
class GridSearch:
    """A grid search on the dev queries of an index."""

    dev: EncoderDev | None
    log: Log
    progress: Progress
    saved_state: KeptTraining = field(default_factory=KeptTraining)

    @classmethod
    def of(
        cls,
        index: IndexFolder,
        config: WordsTraining,
        log: Log,
        progress: Progress,
        saved_state: KeptTraining | None = None,
    ) -> "GridSearch":
        """Draw the same dev queries as for every trained encoder."""
        drawn = {n: getattr(config, n) for n in ("seed", "dev_queries", "dev_pool")}
        dev = load_dev(index, EncoderTraining.of(drawn))
        return cls(dev, log, progress, saved_state or KeptTraining())

    def best(
        self, settings: Iterable[Setting], make: Callable[..., Model]
    ) -> tuple[Model, list[GridTrial]]:
        """Train a model with each setting; return the one with the highest MRR, the first of equal ones.

        The trials are saved after each setting, so that a resumed training continues with the next one.

        Args:
            settings: Values by name, the arguments of `make`. Without dev queries the first one is used.
            make: Trains a model.
        """
        grid = list(settings)[: None if self.dev else 1]
        tried, best, model = self._resumed()
        for number, setting in list(enumerate(grid))[len(tried) :]:
            trained = make(**setting)
            tried.append(self.measured(trained, setting))
            if best_of(tried) is tried[-1]:
                best, model = number, trained
                self.saved_state.save_model(number, trained)
            if len(grid) > 1:
                facts = {"tried": [asdict(trial) for trial in tried], "best": best}
                self.saved_state.save(TRIED, {}, facts)
                self.saved_state.remove_models(but=best)
                self.progress("choosing", number + 1, len(grid))
                self.log(str(tried[-1]))
        if model is None:
            raise ValueError("no setting to try")
        return model, tried

    def _resumed(self) -> tuple[list[GridTrial], int, Any]:
        """Return the saved trials, the number of the best one, and its model; empty if there are none."""
        state = self.saved_state.load(TRIED)
        if state is None:
            return [], 0, None
        facts = state[1]
        tried = [GridTrial(**trial) for trial in facts["tried"]]
        return tried, facts["best"], self.saved_state.load_model(facts["best"])

    def measured(self, model: WordModel, setting: Setting) -> GridTrial:
        """Measure a model."""
        if self.dev is None:
            return GridTrial(dict(setting), None, None)
        queries, papers = model.vectors(self.dev.queries), model.vectors(self.dev.papers)
        scores = similarities(model.similarity, queries, papers)
        scores[~self.dev.allowed] = -np.inf
        f1, mrr = mean_f1_and_mrr(scores, self.dev.gold)
        return GridTrial(dict(setting), mrr, f1)


def best_of(tried: Iterable[GridTrial]) -> GridTrial:
    """Return the trial with the highest MRR, the first of equal ones."""
    return max(tried, key=lambda trial: trial.mrr or 0.0)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
