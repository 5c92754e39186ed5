"""The candidates of each train query from the first stage, with their labels and teacher scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.bibliography.keys import title_key
from citerec.config import FuseConfig, RecommendConfig
from citerec.folder import IndexFolder
from citerec.retrieve.fuse import ranks_and_scores
from citerec.retrieve.hybrid import open_hybrid
from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.train.settings import (
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
    def joined(cls, parts: Sequence["CandidateLists"]) -> "CandidateLists":
        """Concatenate the lists of several parts."""
        return cls(
            Lists.joined([part.lists for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.similarity for part in parts]),
        )

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
            least = np.full(len(self.lists), np.inf, np.float32)
            np.minimum.at(least, self.lists.segment_ids, values)
            least = np.where(np.isfinite(least), least, 0).astype(np.float32)
            return np.concatenate([values, least[added.segment_ids]])[order]

        lists = Lists.of(segment_ids, rows, len(added))
        return CandidateLists(lists, extended(self.scores), extended(self.similarity))

    def standardised(self, values: Numbers) -> Numbers:
        """Return values of the entries with mean 0 and standard deviation 1 in each list; 0 if all are equal."""
        segment_ids = self.lists.segment_ids
        counts = np.maximum(self.lists.lengths, 1)
        mean = np.bincount(segment_ids, values, len(self.lists)) / counts
        centred = values - mean[segment_ids]
        deviation = np.sqrt(np.bincount(segment_ids, centred**2, len(self.lists)) / counts)
        return (centred / np.maximum(deviation, 1e-9)[segment_ids]).astype(np.float32)


class CandidateFinder:
    """Retrieves the candidates of queries as `recommend` does."""

    def __init__(self, index: IndexFolder, config: RerankerTraining, log: Log) -> None:
        """Open the first-stage retrievers of an index; BM25 alone without vectors."""
        self._fused = config.candidates is CandidateSource.FUSED
        needs_vectors = self._fused or config.teacher == BY_ENCODER
        retrieval = RecommendConfig(encoder="auto" if needs_vectors else "none", fuse=FuseConfig())
        self._first_stage = open_hybrid(index, retrieval, log)
        if needs_vectors and not index.is_embedded:
            log(f"{index.path} has no vectors: candidates and teacher scores are those of BM25")

    def train(self, data: TrainingData, depth: int, progress: Progress) -> CandidateLists:
        """Return the candidates of the train queries: papers of the pool, of no later year, not the query."""
        blocks: list[CandidateLists] = []
        for start in range(0, len(data.queries), BLOCK):
            block = data.queries[start : start + BLOCK]
            papers = data.index.papers.at(block.tolist())
            queries = [Query.of(papers[row]) for row in block.tolist()]
            blocks.append(self.find(queries, data.rules(block), depth))
            progress("searching", start + len(block), len(data.queries))
        return CandidateLists.joined(blocks)

    def find(
        self, queries: Sequence[Query], rules: Sequence[Eligibility], depth: int
    ) -> CandidateLists:
        """Return the candidates of some queries, at most `depth` each."""
        hits: list[Hits] = []
        similarity: list[Numbers] = [np.zeros(0, np.float32)]
        for one in self._first_stage.candidates(queries, rules, depth):
            ranking = one.hits if self._fused else one.hits_by_source["bm25"]
            hits.append(Hits(ranking.rows[:depth], ranking.scores[:depth]))
            similarity.append(_similarity(one.hits_by_source.get("dense"), hits[-1].rows))
        rows = [np.zeros(0, np.int32), *(one.rows for one in hits)]
        scores = [np.zeros(0, np.float32), *(one.scores for one in hits)]
        lists = Lists(np.cumsum([0, *map(len, hits)]), np.concatenate(rows))
        return CandidateLists(lists, np.concatenate(scores), np.concatenate(similarity))


def _similarity(dense: Hits | None, rows: Rows) -> Numbers:
    """Return the similarity of some papers to the query; papers that are no dense hit get that of the last hit."""
    if dense is None or not len(dense):
        return np.zeros(len(rows), np.float32)
    _, scores = ranks_and_scores(dense, rows)
    return np.where(np.isnan(scores), dense.scores[-1], scores).astype(np.float32)


@dataclass(frozen=True)
class LabelledCandidates:
    """Candidates with their labels and teacher scores; the arrays have the shape of the entries."""

    data: TrainingData
    candidates: CandidateLists
    cited: Flags
    usable: Flags  # as a negative: not cited, and of another title than query and references
    teacher: Numbers  # teacher scores, standardised in each list; 0 without a teacher

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
    if config.positives is RerankerPositives.ALL:
        query_rows = data.queries[candidates.lists.segment_ids]
        retrieved = Pairs(query_rows, candidates.lists.indices, data.papers)
        gold = data.gold
        missing = ~retrieved.holds(data.queries[gold.segment_ids], gold.indices)
        candidates = candidates.with_added(gold.where(missing))
    if config.negatives is RerankerNegatives.RANDOM:
        rng = np.random.default_rng([config.seed, 4])
        candidates = candidates.with_added(_random(data, candidates, config.random_negatives, rng))
    query_rows = data.queries[candidates.lists.segment_ids]
    cited = citations.holds(query_rows, candidates.lists.indices)
    usable = ~cited & ~_same_titles(data, query_rows, candidates.lists)
    scores = {BY_FUSION: candidates.scores, BY_ENCODER: candidates.similarity}.get(config.teacher)
    none = np.zeros(len(cited), np.float32)
    teacher = none if scores is None else candidates.standardised(scores)
    return LabelledCandidates(data, candidates, cited, usable, teacher)


def _random(
    data: TrainingData, candidates: CandidateLists, count: int, rng: np.random.Generator
) -> Lists:
    """Draw up to `count` papers of the pool per query that are eligible, not cited and no candidate."""
    seen = [data.cited, candidates.lists]
    first = np.concatenate([*(data.queries[one.segment_ids] for one in seen), data.queries])
    second = np.concatenate([*(one.indices for one in seen), data.queries])
    excluded = Pairs(first, second, data.papers)
    drawn = rng.choice(np.flatnonzero(data.pool).astype(np.int32), (len(data.queries), 3 * count))
    query_rows = np.broadcast_to(data.queries[:, None], drawn.shape)
    chosen = ~excluded.holds(query_rows, drawn) & data.eligible(query_rows, drawn)
    chosen &= np.cumsum(chosen, axis=1) <= count
    segment_ids, columns = np.nonzero(chosen)
    pairs = np.unique(np.column_stack([segment_ids, drawn[segment_ids, columns]]), axis=0)
    return Lists.of(pairs[:, 0], pairs[:, 1], len(data.queries))


def _same_titles(data: TrainingData, query_rows: Rows, lists: Lists) -> Flags:
    """Return which candidates have the title of the query, or of one of its references."""
    numbers: dict[str, int] = {}
    titles = np.array(
        [
            numbers.setdefault(title_key(title) or f"#{row}", len(numbers))
            for row, title in enumerate(data.index.papers.titles())
        ],
        np.int64,
    )
    cited = Pairs(data.cited.segment_ids, titles[data.cited.indices], len(titles) + 1)
    entry_titles = titles[lists.indices]
    return (entry_titles == titles[query_rows]) | cited.holds(lists.segment_ids, entry_titles)
