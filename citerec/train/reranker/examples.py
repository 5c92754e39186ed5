"""The examples of each epoch: single candidates, or a positive with negatives of the same list."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.train.lists import Flags, Lists
from citerec.train.reranker.candidates import LabelledCandidates
from citerec.train.reranker.config import RerankerTraining
from citerec.types import Progress, no_progress

MISSING = -1  # fills a list with too few negatives

Places = npt.NDArray[np.int32]  # numbers of entries of the candidate lists
Lengths = Callable[
    [Places], npt.NDArray[np.int64]
]  # returns the tokens of the pairs at some places


@dataclass(frozen=True)
class RerankerExamples:
    """Draws the examples of an epoch; the same settings and epoch give the same examples in the same order."""

    labelled: LabelledCandidates
    config: RerankerTraining
    lengths: Lengths
    progress: Progress = (
        no_progress  # receives the sorting of an epoch; the first epoch tokenizes the texts
    )

    def __post_init__(self) -> None:
        if not len(self) or not self.labelled.cited.any():
            where = f"the train queries of {self.labelled.data.index.path}"
            raise ConfigError(
                f"the first {self.config.depth} candidates of {where} contain no cited paper; raise depth"
            )

    def __len__(self) -> int:
        """Return the number of examples in an epoch."""
        if not self.config.list_negatives:
            return len(self.labelled.cited)
        return int(self._counts.sum())

    def epoch(self, number: int) -> Places:
        """Return the examples of an epoch, shape (examples, 1 + negatives): places of the candidates.

        The first of a list is cited; `MISSING` fills a list with too few negatives.
        """
        rng = np.random.default_rng([self.config.seed, number])
        if self.config.list_negatives:
            drawn = self._lists(rng, easy=self.config.easy_first if number == 0 else 0.0)
        else:
            drawn = np.arange(len(self), dtype=np.int32)[:, None]
        drawn = drawn[np.random.default_rng([self.config.seed, number, 1]).permutation(len(drawn))]
        return self._windowed(drawn, rng)

    @cached_property
    def positives(self) -> Lists:
        """The places of the cited candidates of each query; none for a query without a negative."""
        return self._places(self.labelled.cited & (self.negatives.lengths > 0)[self._segment_ids])

    @cached_property
    def negatives(self) -> Lists:
        """The places of the negatives of each query, best first."""
        ranks = self.labelled.candidates.ranks
        near = (ranks >= self.config.negatives_from) & (ranks <= self.config.last_rank)
        return self._places(self.labelled.usable & (near | (ranks == 0)))

    @property
    def _segment_ids(self) -> npt.NDArray[np.int64]:
        return self.labelled.candidates.lists.segment_ids

    @property
    def _counts(self) -> npt.NDArray[np.int64]:
        """The number of positives of each query in an epoch, shape (queries,)."""
        most = self.config.examples or np.iinfo(np.int64).max
        return np.minimum(self.positives.lengths, most)

    def _places(self, flagged: Flags) -> Lists:
        places = np.flatnonzero(flagged)
        return Lists.of(self._segment_ids[places], places, len(self.labelled.data.queries))

    def _lists(self, rng: np.random.Generator, easy: float) -> Places:
        count = self.config.list_negatives
        lists: list[Places] = []
        for query in np.flatnonzero(self._counts).tolist():
            for positive in rng.permutation(self.positives[query])[: self._counts[query]]:
                one = np.full(1 + count, MISSING, np.int32)
                one[0] = positive
                drawn = self._drawn(self.negatives[query], int(positive), rng, easy)
                one[1 : 1 + len(drawn)] = drawn
                lists.append(one)
        return np.stack(lists)

    def _drawn(
        self, negatives: Places, positive: int, rng: np.random.Generator, easy: float
    ) -> Places:
        """Draw negatives for a positive; `easy` is the share from the deeper half of the ranking."""
        scores = self.labelled.candidates.scores
        if self.config.margin:
            below = negatives[scores[negatives] <= self.config.margin * scores[positive]]
            negatives = (
                below if len(below) else negatives[-1:]
            )  # the last one is the least likely citation
        count = min(self.config.list_negatives, len(negatives))
        deep = min(round(easy * count), len(negatives) // 2)
        half = len(negatives) - len(negatives) // 2
        chosen = rng.choice(negatives[half:], deep, replace=False) if deep else negatives[:0]
        others = np.setdiff1d(negatives, chosen)
        return np.concatenate([chosen, rng.choice(others, count - deep, replace=False)])

    def _windowed(self, drawn: Places, rng: np.random.Generator) -> Places:
        """Sort the examples within each window of batches by length, then shuffle the batches of the window."""
        batch, window = self.config.batch, self.config.window
        if window == 1:
            return drawn
        pieces: list[Places] = []
        for start in range(0, len(drawn), batch * window):
            examples = drawn[start : start + batch * window]
            lengths = self.lengths(examples.ravel()).reshape(examples.shape).max(1)
            examples = examples[np.argsort(-lengths, kind="stable")]
            batches = [examples[i : i + batch] for i in range(0, len(examples), batch)]
            self.progress("reading texts", start + len(examples), len(drawn))
            last = start + batch * window >= len(drawn)
            order = rng.permutation(len(batches) - last).tolist()
            pieces += [batches[i] for i in order] + (batches[-1:] if last else [])
        return np.concatenate(pieces)
