"""The training state of the learning-to-rank model in its training folder; an interrupted training resumes from it."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from citerec.atomic import replacing
from citerec.errors import writing
from citerec.rank.library import read_booster
from citerec.train.due import CheckpointTimer
from citerec.train.ranker.boost import Trees, fit
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import Examples
from citerec.types import Progress, no_progress

STATE = "generator"  # name of the random state among the arrays of a file


@dataclass(slots=True)
class KeptExamples:
    """A file of examples, replaced every few minutes and at the end."""

    file: Path | None  # None for no file
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def gather(
        self,
        make: Callable[[int], Iterable[Examples]],
        rng: np.random.Generator,
        progress: Callable[[int], None],
    ) -> Examples:
        """Return the saved examples and those that `make` adds; save them regularly.

        Args:
            make: Yields blocks of examples, without those of the first so many queries.
            rng: Draws the examples; it is set to its state at the last save.
            progress: Receives the number of finished queries.
        """
        parts = self._read(rng)
        state, written = rng.bit_generator.state, len(parts)
        try:
            for part in make(sum(map(len, parts))):
                parts.append(part)
                state = rng.bit_generator.state
                progress(sum(map(len, parts)))
                if self.timer.is_due():
                    self.timer.begin()
                    self._write(parts, state)
                    written = len(parts)
                    self.timer.done()
        finally:
            if len(parts) > written:
                self._write(parts, state)
        return Examples.joined(parts)

    def _read(self, rng: np.random.Generator) -> list[Examples]:
        if self.file is None or not self.file.is_file():
            return []
        with np.load(self.file) as kept:
            rng.bit_generator.state = json.loads(kept[STATE].tobytes())
            return [Examples(**{one.name: kept[one.name] for one in fields(Examples)})]

    def _write(self, parts: Sequence[Examples], state: object) -> None:
        if self.file is None:
            return
        joined = Examples.joined(parts)
        arrays = {one.name: getattr(joined, one.name) for one in fields(Examples)}
        arrays[STATE] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        with replacing(self.file) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)


@dataclass(slots=True)
class KeptTrees:
    """The boosted models of a training, each in a file; an existing file is not trained again."""

    folder: Path | None = None  # None for no files
    total: int = 0  # models of the training
    progress: Progress = no_progress
    made: int = 0  # finished models, including those of the resumed training

    def fit(
        self,
        train: Examples,
        dev: Examples | None,
        features: Sequence[str],
        config: RankerTraining,
        trees: int | None = None,
    ) -> Trees:
        """Return the result of `boost.fit`, read back from its file.

        Raises:
            ConfigError: If LightGBM refuses the settings.
            ModelError: If a file is damaged.
            OutputError: If a file cannot be written.
        """
        self.made += 1
        if self.folder is None:
            return fit(train, dev, features, config, trees)
        file = self.folder / f"trees-{self.made}.txt"
        if not file.is_file():
            text = fit(train, dev, features, config, trees).text
            with writing(file), replacing(file) as temporary:
                temporary.write_text(text)
        self.progress("boosted models", self.made, self.total)
        booster = read_booster(file, len(features)).model
        return Trees(booster, tuple(features), booster.num_trees())
