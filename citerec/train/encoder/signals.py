"""The training signals of an encoder: one source of positives and one of hard negatives, or a mixture of sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from citerec.inputs import reading
from citerec.manifest import sha256_of
from citerec.train.data import TrainingData
from citerec.train.encoder.config import (
    GRAPH_KINDS,
    EncoderLoss,
    EncoderNegatives,
    EncoderPositives,
    EncoderTraining,
)
from citerec.train.encoder.counts import GradedLists, read_counts
from citerec.train.encoder.countsfile import check_there
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.graph import (
    NEAREST,
    cited_by_cited,
    co_cited,
    distant_neighbours,
    neighbours,
)
from citerec.train.lists import Lists
from citerec.types import Log


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Builds the positives and hard negatives of each query; a source that gives both is computed once."""

    data: TrainingData
    config: EncoderTraining
    mine: Callable[[], Lists]  # returns mined hard negatives; called only if they are needed
    log: Log = lambda message: None  # receives a summary of each file of counts
    _cache: dict[tuple[str, ...], GradedLists] = field(
        default_factory=dict[tuple[str, ...], GradedLists]
    )

    def examples(
        self, positives: EncoderPositives, negatives: EncoderNegatives, files: Sequence[str]
    ) -> EncoderExamples:
        """Return the examples of one source of positives and one of negatives.

        Args:
            positives: The source of positives; except for counts, positives are of no later year.
            negatives: The source of hard negatives.
            files: The files of counts.
        """
        lists = self._positives(positives, files)
        return EncoderExamples.of(self.data, self.config, lists, self._hard(negatives, files))

    def _positives(self, kind: EncoderPositives, files: Sequence[str]) -> Lists:
        if kind is EncoderPositives.CITATIONS:
            return self.data.gold
        if kind is EncoderPositives.NEIGHBOURS:
            return neighbours(self.data, 1, NEAREST, seed=self.config.seed)
        return self._graded(kind, files).most

    def _hard(self, kind: EncoderNegatives, files: Sequence[str]) -> Lists:
        if not self.config.hard or self.config.loss is EncoderLoss.MEMORY:
            return Lists.of(np.zeros(0, np.int64), np.zeros(0, np.int32), len(self.data.queries))
        if kind is EncoderNegatives.MINED:
            return self.mine()
        if kind is EncoderNegatives.CITATIONS:
            return cited_by_cited(self.data, seed=self.config.seed)
        if kind is EncoderNegatives.NEIGHBOURS:
            return distant_neighbours(self.data, seed=self.config.seed)
        return self._graded(kind, files).least

    def _graded(self, kind: str, files: Sequence[str]) -> GradedLists:
        key = (kind, *files)
        if key not in self._cache:
            seed, of_files = self.config.seed, kind == EncoderPositives.COUNTS
            self._cache[key] = (
                read_counts(files, self.data, seed=seed, log=self.log)
                if of_files
                else co_cited(self.data, seed=seed)
            )
        return self._cache[key]


def examples_of(signals: Signals) -> EncoderExamples:
    """Return the examples of a training: of the two sources in its settings, or of a mixture.

    In a mixture each source gives positives and hard negatives.

    Raises:
        BadInputError: If a file of counts cannot be read.
        ConfigError: If there is nothing to train on.
    """
    config = signals.config
    if not config.sources:
        return signals.examples(config.positives, config.negatives, config.counts)
    parts: list[EncoderExamples] = []
    for source in config.sources:
        kind = EncoderPositives(source) if source in GRAPH_KINDS else EncoderPositives.COUNTS
        parts.append(signals.examples(kind, EncoderNegatives(kind.value), [source]))
    return EncoderExamples.mixed(signals.data, config, parts)


def recorded_settings(config: EncoderTraining) -> dict[str, Any]:
    """Return the settings of a training and the checksums of its files of counts, as JSON values.

    Only the names of files with absolute paths are recorded.

    Raises:
        BadInputError: If a file cannot be read.
    """
    settings = config.to_json()
    files = [*config.counts, *(source for source in config.sources if source not in GRAPH_KINDS)]
    for name in {"counts", "sources"} & settings.keys():
        settings[name] = [_recorded_name(file) for file in settings[name]]
    if files:
        settings["files_sha256"] = {_recorded_name(file): _sha256(Path(file)) for file in files}
    return settings


def _recorded_name(file: str) -> str:
    return Path(file).name if Path(file).is_absolute() else file


def _sha256(file: Path) -> str:
    check_there(file)
    with reading(file):
        return sha256_of(file)
