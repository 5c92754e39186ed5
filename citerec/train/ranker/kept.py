"""What a training has gathered and boosted so far, in its folder: a training that is stopped resumes from it."""

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

STATE = "generator"  # the state of the random numbers, among the arrays of a file


@dataclass(slots=True)
class KeptExamples:
    """One file of examples, written anew every few minutes and at the end: whole, or as it was before."""

    file: Path | None  # None for a training that keeps none
    timer: CheckpointTimer = field(default_factory=CheckpointTimer)

    def gather(
        self,
        make: Callable[[int], Iterable[Examples]],
        rng: np.random.Generator,
        progress: Callable[[int], None],
    ) -> Examples:
        """Return the examples that are kept, and after them those that `make` adds; keep these, too.

        Args:
            make: Gathers examples block by block, without those of the first so many queries.
            rng: What they are drawn with; it is set to where it stood when the kept ones were written.
            progress: Receives how many queries are done.
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
    """The models that a training has boosted so far, each in a file of its own: one that is there is not made again."""

    folder: Path | None = None  # None for a training that keeps none
    total: int = 0  # models that the training makes
    progress: Progress = no_progress
    made: int = 0  # models, by this training or the one that it resumes

    def fit(
        self,
        train: Examples,
        dev: Examples | None,
        features: Sequence[str],
        config: RankerTraining,
        trees: int | None = None,
    ) -> Trees:
        """Return what `boost.fit` returns for these arguments, read back from its file.

        Raises:
            ConfigError: If LightGBM refuses the settings.
            ModelError: If a file is damaged.
            OutputError: If one cannot be written.
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
