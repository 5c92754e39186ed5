"""What an encoder learns from: one source of positives and one of hard negatives, or a mixture of several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from citerec.inputs import reading
from citerec.manifest import sha256_of
from citerec.train.data import TrainingData
from citerec.train.encoder.config import EncoderTraining, Loss
from citerec.train.encoder.counts import Graded, read_counts
from citerec.train.encoder.countsfile import check_there
from citerec.train.encoder.examples import Examples
from citerec.train.encoder.pick import cited_by_cited, co_cited, distant_neighbours, near_neighbours
from citerec.train.encoder.sources import GRAPH_KINDS, Negatives, Positives
from citerec.train.lists import Lists
from citerec.types import Log


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Finds the positives and the hard negatives of each query, all of the pool; what gives both is found once."""

    data: TrainingData
    config: EncoderTraining
    mine: Callable[[], Lists]  # finds hard negatives that are mined; called if these are wanted
    log: Log = lambda message: None  # is told what files of counts hold that the index does not
    _known: dict[tuple[str, ...], Graded] = field(default_factory=dict[tuple[str, ...], Graded])

    def examples(
        self, positives: Positives, negatives: Negatives, files: Sequence[str]
    ) -> Examples:
        """Return examples of two sources.

        Args:
            positives: What queries are drawn to; but for papers of counts, they are of no later year.
            negatives: What they are held off in hard examples.
            files: Those of counts.
        """
        found = self._positives(positives, files)
        return Examples.of(self.data, self.config, found, self._hard(negatives, files))

    def _positives(self, kind: Positives, files: Sequence[str]) -> Lists:
        if kind is Positives.CITATIONS:
            return self.data.gold
        if kind is Positives.NEIGHBOURS:
            return near_neighbours(self.data, self.config)
        return self._graded(kind, files).most

    def _hard(self, kind: Negatives, files: Sequence[str]) -> Lists:
        if not self.config.hard or self.config.loss is Loss.MEMORY:
            return Lists.of(np.zeros(0, np.int64), np.zeros(0, np.int32), len(self.data.queries))
        if kind is Negatives.MINED:
            return self.mine()
        if kind is Negatives.CITATIONS:
            return cited_by_cited(self.data, seed=self.config.seed)
        if kind is Negatives.NEIGHBOURS:
            return distant_neighbours(self.data, self.config)
        return self._graded(kind, files).least

    def _graded(self, kind: str, files: Sequence[str]) -> Graded:
        key = (kind, *files)
        if key not in self._known:
            seed, of_files = self.config.seed, kind == Positives.COUNTS
            self._known[key] = (
                read_counts(files, self.data, seed=seed, log=self.log)
                if of_files
                else co_cited(self.data, seed=seed)
            )
        return self._known[key]


def examples_of(signals: Signals) -> Examples:
    """Return the examples of a training: of the two sources that its config names, or of a mixture.

    Of a mixture each source gives positives and hard negatives.

    Raises:
        BadInputError: If a file of counts cannot be read.
        ConfigError: If there is nothing to learn from.
    """
    config = signals.config
    if not config.sources:
        return signals.examples(config.positives, config.negatives, config.counts)
    parts: list[Examples] = []
    for source in config.sources:
        kind = Positives(source) if source in GRAPH_KINDS else Positives.COUNTS
        parts.append(signals.examples(kind, Negatives(kind.value), [source]))
    return Examples.mixed(signals.data, config, parts)


def told_settings(config: EncoderTraining) -> dict[str, Any]:
    """Return the settings of a training, and the checksums of the files that it learns from, as JSON values.

    Where a file lies is nobody else's matter: of an absolute path its name is told.

    Raises:
        BadInputError: If a file cannot be read.
    """
    settings = config.to_json()
    files = [*config.counts, *(source for source in config.sources if source not in GRAPH_KINDS)]
    for name in {"counts", "sources"} & settings.keys():
        settings[name] = [_place(file) for file in settings[name]]
    if files:
        settings["files_sha256"] = {_place(file): _sha256(Path(file)) for file in files}
    return settings


def _place(file: str) -> str:
    return Path(file).name if Path(file).is_absolute() else file


def _sha256(file: Path) -> str:
    check_there(file)
    with reading(file):
        return sha256_of(file)
