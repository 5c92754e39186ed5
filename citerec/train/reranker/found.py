"""The candidates of each train query: what the first stages find for it, and which of that it cites."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import FuseConfig, RecommendConfig
from citerec.errors import ConfigError
from citerec.fuse import stage_hits
from citerec.query.exclude import title_key
from citerec.retrieve.hybrid import open_hybrid
from citerec.train.data import TrainingData
from citerec.train.lists import Flags, Lists, Pairs, Rows
from citerec.train.reranker.config import (
    BY_ENCODER,
    BY_FUSION,
    Candidates,
    Negatives,
    Positives,
    RerankerTraining,
)
from citerec.types import Eligible, Hits, Log, Progress, Query

BLOCK = 256  # queries searched at once

Numbers = npt.NDArray[np.float32]


@dataclass(frozen=True)
class CandidateLists:
    """Candidates of queries, best first; the arrays beside the lists have the shape of their entries."""

    lists: Lists
    scores: Numbers  # by which they are ordered
    similarity: Numbers  # as the encoder of the index has it; 0 where it has none
    ranks: npt.NDArray[np.int32]  # from 1; 0 for papers that were added

    @classmethod
    def of(cls, hits: Sequence[Hits], similarity: Sequence[Numbers]) -> "CandidateLists":
        """Put the hits of several queries together."""
        ends = np.cumsum([0, *map(len, hits)])
        empty: list[Any] = [np.zeros(0, np.float32)]
        ranks = [np.arange(1, len(mine) + 1, dtype=np.int32) for mine in hits]
        return cls(
            Lists(ends, np.concatenate([np.zeros(0, np.int32), *(h.rows for h in hits)])),
            np.concatenate([*empty, *(h.scores for h in hits)]),
            np.concatenate([*empty, *similarity]),
            np.concatenate([np.zeros(0, np.int32), *ranks]),
        )

    @property
    def parts(self) -> dict[str, npt.NDArray[Any]]:
        """Its arrays, by name."""
        beside = {name: getattr(self, name) for name in ("scores", "similarity", "ranks")}
        return {"indptr": self.lists.indptr, "indices": self.lists.indices, **beside}

    @classmethod
    def from_parts(cls, parts: dict[str, npt.NDArray[Any]]) -> "CandidateLists":
        """Put its arrays together again."""
        rest = {name: parts[name] for name in ("scores", "similarity", "ranks")}
        return cls(Lists(parts["indptr"], parts["indices"]), **rest)

    def with_added(self, added: Lists) -> "CandidateLists":
        """Return the same with more papers at the end of each list, of rank 0 and the least score."""
        owners = np.concatenate([self.lists.owners, added.owners])
        order = np.argsort(owners, kind="stable")
        lists = Lists.of(owners, np.concatenate([self.lists.indices, added.indices]), len(added))
        rows = len(added.indices)
        ranks = np.concatenate([self.ranks, np.zeros(rows, np.int32)])[order]
        return CandidateLists(
            lists,
            np.concatenate([self.scores, _least(self.lists, self.scores)[added.owners]])[order],
            np.concatenate([self.similarity, _least(self.lists, self.similarity)[added.owners]])[
                order
            ],
            ranks,
        )

    def spread(self, values: Numbers) -> Numbers:
        """Return values of the entries with a mean of 0 and a spread of 1 in each list; 0 where all are the same."""
        owners = self.lists.owners
        counts = np.maximum(self.lists.lengths, 1)
        mean = np.bincount(owners, values, len(self.lists)) / counts
        centred = values - mean[owners]
        spread = np.sqrt(np.bincount(owners, centred**2, len(self.lists)) / counts)
        return (centred / np.maximum(spread, 1e-9)[owners]).astype(np.float32)


class Finder:
    """Finds the candidates of queries as `recommend` does."""

    def __init__(self, data: TrainingData, config: RerankerTraining, log: Log) -> None:
        """Open the first stages of an index.

        Raises:
            ConfigError: If the encoder is to teach, and the index has no vectors.
        """
        self._data, self._config = data, config
        fused, taught = config.candidates is Candidates.FUSED, config.teacher == BY_ENCODER
        if taught and not data.index.is_embedded:
            raise ConfigError(
                f"{data.index.path} has no vectors that could teach; embed its papers, or choose another teacher"
            )
        asked = RecommendConfig(encoder="auto" if fused or taught else "none", fuse=FuseConfig())
        self._stages = open_hybrid(data.index, asked, log)
        if fused and self._stages.dense is None:
            log(f"{data.index.path} has no vectors: the candidates are BM25's")

    def train(self, progress: Progress) -> CandidateLists:
        """Return the candidates of the train queries: papers of the pool, of no later year, not the query."""
        data = self._data
        found: list[CandidateLists] = []
        for start in range(0, len(data.queries), BLOCK):
            block = data.queries[start : start + BLOCK]
            rows, rules = block.tolist(), data.rules(block)
            papers = data.index.papers.at(rows)
            queries = [Query.of(papers[row]) for row in rows]
            found.append(self.find(queries, rules, self._config.depth))
            progress("searching", start + len(rows), len(data.queries))
        return CandidateLists(
            Lists.joined([part.lists for part in found]),
            *(
                np.concatenate([getattr(part, name) for part in found])
                for name in ("scores", "similarity", "ranks")
            ),
        )

    def find(
        self, queries: Sequence[Query], rules: Sequence[Eligible], depth: int
    ) -> CandidateLists:
        """Return the candidates of some queries."""
        hits: list[Hits] = []
        near: list[Numbers] = []
        for one in self._stages.find(queries, rules, depth):
            mine = one.hits if self._config.candidates is Candidates.FUSED else one.stages["bm25"]
            hits.append(Hits(mine.rows[:depth], mine.scores[:depth]))
            near.append(_similarity(one.stages.get("dense"), hits[-1].rows))
        return CandidateLists.of(hits, near)


def _similarity(dense: Hits | None, rows: Rows) -> Numbers:
    """Return how close the encoder finds some papers; those that it did not find are as far as its last."""
    if dense is None or not len(dense):
        return np.zeros(len(rows), np.float32)
    _, scores = stage_hits(dense, rows)
    return np.where(np.isnan(scores), dense.scores[-1], scores).astype(np.float32)


def _least(lists: Lists, values: Numbers) -> Numbers:
    """Return the least value of each list, 0 for an empty one."""
    least = np.full(len(lists), np.inf, np.float32)
    np.minimum.at(least, lists.owners, values)
    return np.where(np.isfinite(least), least, 0).astype(np.float32)


@dataclass(frozen=True)
class Labelled:
    """Candidates, and what is known of each; the arrays have the shape of the entries."""

    data: TrainingData
    found: CandidateLists
    cited: Flags
    usable: Flags  # as a negative of a list: neither cited nor of the title of the query or of what it cites
    teacher: Numbers  # its score, of a spread of 1 in each list; 0 where there is no teacher
    raw: Numbers  # as a cross-encoder gives it, whose differences mean something; of any other teacher the same

    @property
    def query_rows(self) -> Rows:
        """The query of each entry."""
        return self.data.queries[self.found.lists.owners]


def labelled(data: TrainingData, found: CandidateLists, config: RerankerTraining) -> Labelled:
    """Say of each candidate whether the query cites it; add the papers that the config adds."""
    cites = Pairs(data.queries[data.cited.owners], data.cited.indices, data.papers)
    rng = np.random.default_rng([config.seed, 4])
    if config.positives is Positives.ALL:
        asked = data.queries[found.lists.owners]
        there = Pairs(asked, found.lists.indices, data.papers)
        gold = data.gold
        found = found.with_added(gold.where(~there.holds(data.queries[gold.owners], gold.indices)))
    if config.negatives is Negatives.RANDOM:
        found = found.with_added(_random(data, found, config.random_negatives, rng))
    asked = data.queries[found.lists.owners]
    cited = cites.holds(asked, found.lists.indices)
    usable = ~cited & ~_same_titles(data, asked, found.lists)
    taught = {BY_FUSION: found.scores, BY_ENCODER: found.similarity}.get(config.teacher)
    teacher = np.zeros(len(cited), np.float32) if taught is None else found.spread(taught)
    return Labelled(data, found, cited, usable, teacher, teacher)


def with_teacher(known: Labelled, scores: Numbers) -> Labelled:
    """Return the same with the scores of a teacher, one for each entry."""
    return replace(known, teacher=known.found.spread(scores), raw=scores)


def _random(
    data: TrainingData, found: CandidateLists, count: int, rng: np.random.Generator
) -> Lists:
    """Draw papers of the pool for each query that it may cite, does not, and was not given."""
    known = Pairs(
        np.concatenate([data.queries[data.cited.owners], data.queries[found.lists.owners], data.queries]),
        np.concatenate([data.cited.indices, found.lists.indices, data.queries]),
        data.papers,
    )  # fmt: skip
    drawn = rng.choice(np.flatnonzero(data.pool).astype(np.int32), (len(data.queries), 3 * count))
    asked = np.broadcast_to(data.queries[:, None], drawn.shape)
    fit = ~known.holds(asked, drawn) & data.eligible(asked, drawn)
    fit &= np.cumsum(fit, axis=1) <= count
    owners, columns = np.nonzero(fit)
    pairs = np.unique(np.column_stack([owners, drawn[owners, columns]]), axis=0)
    return Lists.of(pairs[:, 0], pairs[:, 1], len(data.queries))


def _same_titles(data: TrainingData, asked: Rows, lists: Lists) -> Flags:
    """Return which entries have the title of their query, or of a paper that it cites."""
    numbers: dict[str, int] = {}
    titles = np.array(
        [numbers.setdefault(title_key(title) or f" {row}", len(numbers))
         for row, title in enumerate(data.index.papers.titles())], np.int64,
    )  # fmt: skip
    cited = Pairs(data.cited.owners, titles[data.cited.indices], len(titles) + 1)
    mine = titles[lists.indices]
    return (mine == titles[asked]) | cited.holds(lists.owners, mine)
