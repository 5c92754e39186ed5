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

WINDOW = 4  # batches whose pairs are sorted by length, for less padding

Places = npt.NDArray[np.int32]  # numbers of entries of the candidate lists
Lengths = Callable[[Places], npt.NDArray[np.int64]]  # returns the tokens of the pairs at places


@dataclass(frozen=True)
class RerankerExamples:
    """Draws the examples of an epoch; the same settings and epoch give the same examples in the same order."""

    labelled: LabelledCandidates
    config: RerankerTraining
    lengths: Lengths
    progress: Progress = no_progress  # of the sorting; in the first epoch it tokenizes the texts

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
        of_lists = self.config.list_negatives > 0
        drawn = self._lists(rng) if of_lists else np.arange(len(self), dtype=np.int32)[:, None]
        drawn = drawn[np.random.default_rng([self.config.seed, number, 1]).permutation(len(drawn))]
        return self._windowed(drawn, rng)

    @cached_property
    def positives(self) -> Lists:
        """The places of the cited candidates of each query; none for a query without a negative."""
        return self._places(self.labelled.cited & (self.negatives.lengths > 0)[self._segment_ids])

    @cached_property
    def negatives(self) -> Lists:
        """The places of the negatives of each query, best first."""
        return self._places(self.labelled.usable)

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

    def _lists(self, rng: np.random.Generator) -> Places:
        count = self.config.list_negatives
        lists: list[Places] = []
        for query in np.flatnonzero(self._counts).tolist():
            negatives = self.negatives[query]
            for positive in rng.permutation(self.positives[query])[: self._counts[query]]:
                one = np.full(1 + count, MISSING, np.int32)
                one[0] = positive
                drawn = rng.choice(negatives, min(count, len(negatives)), replace=False)
                one[1 : 1 + len(drawn)] = drawn
                lists.append(one)
        return np.stack(lists)

    def _windowed(self, drawn: Places, rng: np.random.Generator) -> Places:
        """Sort the examples within each window of batches by length, then shuffle the batches of the window."""
        batch = self.config.batch
        pieces: list[Places] = []
        for start in range(0, len(drawn), batch * WINDOW):
            examples = drawn[start : start + batch * WINDOW]
            lengths = self.lengths(examples.ravel()).reshape(examples.shape).max(1)
            examples = examples[np.argsort(-lengths, kind="stable")]
            batches = [examples[i : i + batch] for i in range(0, len(examples), batch)]
            self.progress("reading texts", start + len(examples), len(drawn))
            last = start + batch * WINDOW >= len(drawn)
            order = rng.permutation(len(batches) - last).tolist()
            pieces += [batches[i] for i in order] + (batches[-1:] if last else [])
        return np.concatenate(pieces)
