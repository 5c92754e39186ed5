"""Searches the shards of an index by BM25 and merges their best papers: the hits are those of the whole index.

`ShardedBm25` is a first-stage retriever: expansion, the learning-to-rank model and the reranker follow once, over the
merged candidates: `citerec.Recommender(index, retrievers=[bm25])`.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.config import Bm25Config
from citerec.distributed.cluster import Cluster
from citerec.distributed.holders import Ask, asking
from citerec.distributed.records import present, read_list
from citerec.distributed.shards import LIST, Bm25Shard, open_files, total
from citerec.errors import ClusterError
from citerec.folder import IndexFolder
from citerec.index.lucene_postings import Statistics
from citerec.index.postings import NO_TERM
from citerec.retrieve.bm25 import resolve
from citerec.retrieve.retriever import PARTIAL
from citerec.retrieve.scoring import PostingsScorer
from citerec.retrieve.terms import counted_terms, terms_of
from citerec.types import Eligibility, Hits, Log, Query

Rows = npt.NDArray[np.integer]
Table = npt.NDArray[np.float32]  # shape (queries, papers)
TermCounts = Mapping[str, int]  # how often a query has each term
Found = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]  # rows and scores


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """A query for all shards."""

    counts: TermCounts
    eligible: Eligibility


class OpenShard:
    """A shard that is open for searching, in an actor or in this process."""

    def __init__(self, folder: Path, statistics: Statistics, k1: float, b: float) -> None:
        """Open the files.

        Args:
            folder: The shard.
            statistics: Those of all shards.
            k1: As in `Bm25Config`.
            b: As in `Bm25Config`.

        Raises:
            ClusterError: If it is missing or damaged.
        """
        postings, self._rows, years = open_files(folder)
        self._postings = replace(postings, statistics=statistics)
        self._scorer = PostingsScorer(self._postings, years, k1, b)
        if not self._scorer.is_exact:
            raise ClusterError(f"{folder} holds texts so long that BM25 cannot score them exactly")

    def dfs(self, terms: Sequence[str]) -> list[int]:
        """Return how many papers of the shard have each term."""
        numbers = [self._postings.number(term) for term in terms]
        return [0 if number == NO_TERM else self._postings.df(number) for number in numbers]

    def search(self, queries: Sequence[ShardQuery], dfs: Mapping[str, int], k: int) -> list[Found]:
        """Return the best `k` papers of each query and those that tie with the last of them, in no order.

        Args:
            queries: The queries.
            dfs: How many papers of all shards have each term.
            k: How many papers.
        """
        self._scorer.expect(len(queries))
        return [self._search(query, dfs, k) for query in queries]

    def scores(
        self, queries: Sequence[TermCounts], dfs: Mapping[str, int], rows: Rows
    ) -> tuple[Rows, Table]:
        """Return which of some papers the shard has, as positions, and their scores, shape (queries, positions).

        Args:
            queries: How often each query has each term.
            dfs: How many papers of all shards have each term.
            rows: Distinct papers.
        """
        documents, there = self._documents(rows)
        known = [self._known(counts) for counts in queries]
        terms = [
            {number: counts[term] for term, number in of_query.items()}
            for counts, of_query in zip(queries, known, strict=True)
        ]
        of_terms = {number: dfs[term] for one in known for term, number in one.items()}
        return np.flatnonzero(there), self._scorer.table(terms, documents, of_terms)

    def _search(self, query: ShardQuery, dfs: Mapping[str, int], k: int) -> Found:
        known = self._known(query.counts)
        terms = {number: query.counts[term] for term, number in known.items()}
        of_terms = np.array([dfs[term] for term in known], np.int64)
        excluded, _ = self._documents(np.array(sorted(query.eligible.excluded), np.int64))
        documents, scores = self._scorer.top(terms, k, query.eligible.year_max, excluded, of_terms)
        return np.asarray(self._rows[documents]), scores

    def _known(self, counts: TermCounts) -> dict[str, int]:
        """Return the numbers of the terms that the shard has."""
        numbers = {term: self._postings.number(term) for term in counts}
        return {term: number for term, number in numbers.items() if number != NO_TERM}

    def _documents(self, rows: Rows) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return the documents of the papers that the shard has, and which these are, shape of `rows`."""
        places = np.searchsorted(self._rows, rows)
        there = places < len(self._rows)
        there[there] = self._rows[places[there]] == rows[there]
        return places[there].astype(np.int32), there


@dataclass(frozen=True, slots=True)
class _GlobalTerms:
    """The terms of a batch in all shards, numbered as they come."""

    statistics: Statistics
    numbers: Mapping[str, int]
    dfs: Sequence[int]  # papers that have each

    def number(self, term: str) -> int:
        number = self.numbers[term]
        return number if self.dfs[number] else NO_TERM

    def df(self, number: int) -> int:
        return self.dfs[number]


class ShardedBm25:
    """Finds papers by the words of the query in shards; a `Retriever`."""

    def __init__(
        self,
        index: IndexFolder,
        ask: Ask,
        statistics: Statistics,
        config: Bm25Config | None = None,
        *,
        name: str = "bm25",
    ) -> None:
        """Prepare.

        Args:
            index: The index that was divided.
            ask: Calls a method of each shard and returns their results.
            statistics: Those of all shards.
            config: As for `Bm25Retriever`.
            name: The name of the hits.
        """
        self.name, self.config = name, resolve(config or Bm25Config(), index)
        self._ask, self._statistics, self._id_rank = ask, statistics, index.id_rank

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query.

        Raises:
            ValueError: If `k` is less than 1.
            ClusterError: If a shard is lost.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        counts, dfs = self._counted(queries)
        requests = [ShardQuery(*one) for one in zip(counts, eligible, strict=True)]
        found: list[list[Found]] = self._ask("search", requests, dfs, k)
        return [merged(parts, self._id_rank, k) for parts in zip(*found, strict=True)]

    def _counted(self, queries: Sequence[Query]) -> tuple[list[TermCounts], dict[str, int]]:
        """Return how often each query has each term, and how many papers of all shards have each."""
        terms = tuple({term: 0 for query in queries for term in terms_of(query, self.config)})
        dfs = [sum(of_term) for of_term in zip(*self._ask("dfs", terms), strict=True)]
        numbers = {term: number for number, term in enumerate(terms)}
        known = _GlobalTerms(self._statistics, numbers, dfs)
        counts: list[TermCounts] = [counted_terms(query, self.config, known) for query in queries]
        return counts, dict(zip(terms, dfs, strict=True))


class CompleteBm25(ShardedBm25):
    """The same where no shard is missing, so that any paper can be scored."""

    def scores_of_papers(self, queries: Sequence[Query], rows: Rows) -> Table:
        """Return the score of each paper for each query, 0 without a common term, shape (queries, papers).

        Args:
            queries: The queries.
            rows: Distinct papers, eligible or not.

        Raises:
            ClusterError: If a shard is lost.
        """
        counts, dfs = self._counted(queries)
        table = np.zeros((len(queries), len(rows)), np.float32)
        for positions, scores in self._ask("scores", counts, dfs, rows):
            table[:, positions] = scores
        return table


def merged(parts: Sequence[Found], id_rank: npt.NDArray[np.int32], k: int) -> Hits:
    """Return the best `k` of the papers of all shards: falling score, equal scores by rising docid."""
    rows = np.concatenate([rows for rows, _ in parts])
    return Hits.ordered(rows, np.concatenate([scores for _, scores in parts]), id_rank, k)


@contextmanager
def open_shards(
    index: IndexFolder,
    folder: Path,
    cluster: Cluster | None = None,
    config: Bm25Config | None = None,
    *,
    allow_missing: bool = False,
    log: Log | None = None,
) -> Generator[ShardedBm25]:
    """Open the shards of an index until the block ends, each in an actor.

    Args:
        index: The index that was divided.
        folder: The folder of the shards, at the same path on all nodes.
        cluster: Where the actors run; None to open all shards in this process.
        config: As for `Bm25Retriever`.
        allow_missing: Whether missing or damaged shards are left out: the hits then have the name `bm25-partial`.
        log: Receives a message for each shard that is left out.

    Raises:
        ConfigError: If the shards are of another index.
        ClusterError: If a shard is missing or damaged, unless `allow_missing` is set; if all are.
    """
    records = read_list(folder / LIST, Bm25Shard)
    there = present(
        folder, records, index, index.manifest.created, allow_missing=allow_missing, log=log
    )
    name = "bm25" if len(there) == len(records) else f"bm25{PARTIAL}"
    statistics, settings = total(records), resolve(config or Bm25Config(), index)
    opens = [
        _opener(folder.absolute() / one.name, statistics, settings.k1, settings.b) for one in there
    ]
    with asking(opens, cluster) as ask:
        kind = CompleteBm25 if len(there) == len(records) else ShardedBm25
        yield kind(index, ask, statistics, config, name=name)


def _opener(folder: Path, statistics: Statistics, k1: float, b: float) -> Callable[[], OpenShard]:
    return partial(OpenShard, folder, statistics, k1, b)
