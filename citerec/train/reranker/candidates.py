"""The candidates of each train query from the first stage, with their labels and teacher scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.bibliography.keys import title_key
from citerec.config import FuseConfig, RecommendConfig
from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.retrieve.fuse import ranks_and_scores
from citerec.retrieve.hybrid import open_hybrid
from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.train.reranker.config import (
    BY_ENCODER,
    BY_FUSION,
    CandidateSource,
    RerankerNegatives,
    RerankerPositives,
    RerankerTraining,
)
from citerec.types import Eligibility, Hits, Log, Progress, Query

BLOCK = 256  # queries searched at once

Numbers = npt.NDArray[np.float32]


@dataclass(frozen=True)
class CandidateLists:
    """The candidates of queries, best first; the arrays have the shape of the entries of `lists`."""

    lists: Lists
    scores: Numbers  # first-stage scores, falling in each list
    similarity: Numbers  # by the encoder of the index; 0 without vectors

    @classmethod
    def of(cls, hits: Sequence[Hits], similarity: Sequence[Numbers]) -> "CandidateLists":
        """Combine the hits of several queries."""
        empty: list[Any] = [np.zeros(0, np.float32)]
        return cls(
            Lists(
                np.cumsum([0, *map(len, hits)]),
                np.concatenate(
                    [np.zeros(0, np.int32), *(hits_of_query.rows for hits_of_query in hits)]
                ),
            ),
            np.concatenate([*empty, *(hits_of_query.scores for hits_of_query in hits)]),
            np.concatenate([*empty, *similarity]),
        )

    @classmethod
    def joined(cls, parts: Sequence["CandidateLists"]) -> "CandidateLists":
        """Concatenate the lists of several parts."""
        return cls(
            Lists.joined([part.lists for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.similarity for part in parts]),
        )

    def shifted(self, by: int) -> "CandidateLists":
        """Return the lists with a number added to every row."""
        return replace(self, lists=self.lists.shifted(by))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as `from_arrays` takes them."""
        lists = {"indptr": self.lists.indptr, "indices": self.lists.indices}
        return {**lists, "scores": self.scores, "similarity": self.similarity}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> "CandidateLists":
        """Build the lists from `arrays`."""
        lists = Lists(arrays["indptr"], arrays["indices"])
        return cls(lists, arrays["scores"], arrays["similarity"])

    def with_added(self, added: Lists) -> "CandidateLists":
        """Return the lists with further papers at their ends, with the lowest values of the list."""
        segment_ids = np.concatenate([self.lists.segment_ids, added.segment_ids])
        rows = np.concatenate([self.lists.indices, added.indices])
        order = np.argsort(segment_ids, kind="stable")

        def extended(values: Numbers) -> Numbers:
            return np.concatenate([values, _least(self.lists, values)[added.segment_ids]])[order]

        lists = Lists.of(segment_ids, rows, len(added))
        return CandidateLists(lists, extended(self.scores), extended(self.similarity))

    def standardised(self, values: Numbers) -> Numbers:
        """Return values of the entries with mean 0 and standard deviation 1 in each list; 0 if all are equal."""
        segment_ids = self.lists.segment_ids
        counts = np.maximum(self.lists.lengths, 1)
        mean = np.bincount(segment_ids, values, len(self.lists)) / counts
        centred = values - mean[segment_ids]
        standardised = np.sqrt(np.bincount(segment_ids, centred**2, len(self.lists)) / counts)
        return (centred / np.maximum(standardised, 1e-9)[segment_ids]).astype(np.float32)


class CandidateFinder:
    """Retrieves the candidates of queries as `recommend` does."""

    def __init__(self, index: IndexFolder, config: RerankerTraining, log: Log) -> None:
        """Open the first-stage retrievers of an index.

        Raises:
            ConfigError: If the encoder is the teacher and the index has no vectors.
        """
        self._config = config
        fused, by_encoder = config.candidates is CandidateSource.FUSED, config.teacher == BY_ENCODER
        if by_encoder and not index.is_embedded:
            raise ConfigError(
                f"{index.path} has no vectors for the teacher; run citerec encode, or choose another teacher"
            )
        retrieval = RecommendConfig(
            encoder="auto" if fused or by_encoder else "none", fuse=FuseConfig()
        )
        self._first_stage = open_hybrid(index, retrieval, log)
        if fused and self._first_stage.dense is None:
            log(f"{index.path} has no vectors: the candidates are those of BM25")

    def train(self, data: TrainingData, progress: Progress) -> CandidateLists:
        """Return the candidates of the train queries: papers of the pool, of no later year, not the query."""
        blocks: list[CandidateLists] = []
        for start in range(0, len(data.queries), BLOCK):
            block = data.queries[start : start + BLOCK]
            rows, rules = block.tolist(), data.rules(block)
            papers = data.index.papers.at(rows)
            queries = [Query.of(papers[row]) for row in rows]
            blocks.append(self.find(queries, rules, self._config.depth))
            progress("searching", start + len(rows), len(data.queries))
        return CandidateLists.joined(blocks)

    def find(
        self, queries: Sequence[Query], rules: Sequence[Eligibility], depth: int
    ) -> CandidateLists:
        """Return the candidates of some queries, at most `depth` each."""
        hits: list[Hits] = []
        similarity: list[Numbers] = []
        for one in self._first_stage.candidates(queries, rules, depth):
            ranking = (
                one.hits
                if self._config.candidates is CandidateSource.FUSED
                else one.hits_by_source["bm25"]
            )
            hits.append(Hits(ranking.rows[:depth], ranking.scores[:depth]))
            similarity.append(_similarity(one.hits_by_source.get("dense"), hits[-1].rows))
        return CandidateLists.of(hits, similarity)


def train_candidates(
    data: TrainingData, config: RerankerTraining, progress: Progress, log: Log
) -> CandidateLists:
    """Return the candidates of the train queries, each from its own index."""
    found = [
        CandidateFinder(part.index, config, log).train(part.data, progress).shifted(part.start)
        for part in data.by_index()
    ]
    return CandidateLists.joined(found)


def _similarity(dense: Hits | None, rows: Rows) -> Numbers:
    """Return the similarity of some papers to the query; papers that are no dense hit get that of the last hit."""
    if dense is None or not len(dense):
        return np.zeros(len(rows), np.float32)
    _, scores = ranks_and_scores(dense, rows)
    return np.where(np.isnan(scores), dense.scores[-1], scores).astype(np.float32)


def _least(lists: Lists, values: Numbers) -> Numbers:
    """Return the lowest value of each list, 0 for an empty one."""
    least = np.full(len(lists), np.inf, np.float32)
    np.minimum.at(least, lists.segment_ids, values)
    return np.where(np.isfinite(least), least, 0).astype(np.float32)


@dataclass(frozen=True)
class LabelledCandidates:
    """Candidates with their labels and teacher scores; the arrays have the shape of the entries."""

    data: TrainingData
    candidates: CandidateLists
    cited: Flags
    usable: (
        Flags  # as a negative: not cited, and of another title than the query and its references
    )
    teacher: Numbers  # teacher scores, standardised in each list; 0 without a teacher
    raw: Numbers  # unstandardised scores of a cross-encoder; of any other teacher the same as `teacher`

    @property
    def query_rows(self) -> Rows:
        """The query of each entry."""
        return self.data.queries[self.candidates.lists.segment_ids]

    @cached_property
    def first_stage(self) -> Numbers:
        """The first-stage scores, standardised in each list."""
        return self.candidates.standardised(self.candidates.scores)


def labelled(
    data: TrainingData, candidates: CandidateLists, config: RerankerTraining
) -> LabelledCandidates:
    """Label the candidates; add the papers that the settings ask for."""
    citations = Pairs(data.queries[data.cited.segment_ids], data.cited.indices, data.papers)
    rng = np.random.default_rng([config.seed, 4])
    if config.positives is RerankerPositives.ALL:
        query_rows = data.queries[candidates.lists.segment_ids]
        retrieved = Pairs(query_rows, candidates.lists.indices, data.papers)
        gold = data.gold
        candidates = candidates.with_added(
            gold.where(~retrieved.holds(data.queries[gold.segment_ids], gold.indices))
        )
    if config.negatives is RerankerNegatives.RANDOM:
        candidates = candidates.with_added(_random(data, candidates, config.random_negatives, rng))
    query_rows = data.queries[candidates.lists.segment_ids]
    cited = citations.holds(query_rows, candidates.lists.indices)
    usable = ~cited & ~_same_titles(data, query_rows, candidates.lists)
    teacher_scores = {BY_FUSION: candidates.scores, BY_ENCODER: candidates.similarity}.get(
        config.teacher
    )
    teacher = (
        np.zeros(len(cited), np.float32)
        if teacher_scores is None
        else candidates.standardised(teacher_scores)
    )
    return LabelledCandidates(data, candidates, cited, usable, teacher, teacher)


def with_teacher(labels: LabelledCandidates, scores: Numbers) -> LabelledCandidates:
    """Return the candidates with the scores of a teacher, one per entry."""
    return replace(labels, teacher=labels.candidates.standardised(scores), raw=scores)


def _random(
    data: TrainingData, candidates: CandidateLists, count: int, rng: np.random.Generator
) -> Lists:
    """Draw up to `count` papers of the pool per query that are eligible, not cited and no candidate."""
    excluded = Pairs(
        np.concatenate(
            [
                data.queries[data.cited.segment_ids],
                data.queries[candidates.lists.segment_ids],
                data.queries,
            ]
        ),
        np.concatenate([data.cited.indices, candidates.lists.indices, data.queries]),
        data.papers,
    )
    drawn = rng.choice(np.flatnonzero(data.pool).astype(np.int32), (len(data.queries), 3 * count))
    query_rows = np.broadcast_to(data.queries[:, None], drawn.shape)
    chosen = ~excluded.holds(query_rows, drawn) & data.eligible(query_rows, drawn)
    chosen &= np.cumsum(chosen, axis=1) <= count
    segment_ids, columns = np.nonzero(chosen)
    pairs = np.unique(np.column_stack([segment_ids, drawn[segment_ids, columns]]), axis=0)
    return Lists.of(pairs[:, 0], pairs[:, 1], len(data.queries))


def _same_titles(data: TrainingData, query_rows: Rows, lists: Lists) -> Flags:
    """Return which entries have the title of their query, or of one of its references."""
    numbers: dict[str, int] = {}
    titles = np.array(
        [numbers.setdefault(title_key(title) or f" {row}", len(numbers))
         for row, title in enumerate(data.index.papers.titles())], np.int64,
    )  # fmt: skip
    cited = Pairs(data.cited.segment_ids, titles[data.cited.indices], len(titles) + 1)
    entry_titles = titles[lists.indices]
    return (entry_titles == titles[query_rows]) | cited.holds(lists.segment_ids, entry_titles)
