"""BM25 over the Lucene part of an index.

`lucene` wraps the Java side; this module handles eligibility, ties and threads.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from copy import copy
from functools import cached_property, partial
from threading import Event
from typing import Self

import numpy as np
import numpy.typing as npt

from citerec.arrays import check_distinct, open_array
from citerec.config import Bm25Config, StopWords
from citerec.corpus.papers import NO_YEAR
from citerec.folder import BM25, IndexFolder
from citerec.index.bm25 import ROWS
from citerec.index.postings import Postings, open_postings
from citerec.index.write_postings import store_postings
from citerec.java import is_java_exception, leave_thread
from citerec.retrieve.lucene import Lucene
from citerec.retrieve.parts import UNREADABLE, opening
from citerec.retrieve.scoring import PostingsScorer
from citerec.retrieve.terms import counted_terms, surface_forms
from citerec.rules.eligible import within
from citerec.text import STOP_WORDS, QueryForm, contents
from citerec.types import Eligibility, Hits, Query

# eligible share below which Lucene filters by year; above, more hits are fetched
FILTER_BELOW = 0.4
BY_LUCENE = "CITEREC_BM25"  # an environment variable: with "lucene" Lucene searches
WORTH_STORING = 50  # queries after which storing the postings, one to two seconds, has paid off
# number of hits and characters from which Lucene scores every match
MANY_HITS, LONG_QUERY = (500, 400)
# share of papers with an abstract below which function words are dropped from queries
ABSTRACT_SHARE = 0.5

Table = npt.NDArray[np.float32]  # shape (queries, papers)


def resolve(config: Bm25Config, index: IndexFolder) -> Bm25Config:
    """Resolve `StopWords.AUTO` for an index.

    If most papers have only a title, few contain words such as "we" or "between": BM25 treats these words as rare, and
    papers with an abstract would rank first for that reason alone.
    """
    if config.stop_words is not StopWords.AUTO:
        return config
    counts = index.manifest.counts
    mostly_titles = counts["with_abstract"] < ABSTRACT_SHARE * counts["papers"]
    return config.replace(stop_words=StopWords.LONG if mostly_titles else StopWords.ANSERINI)


def needs_lucene(index: IndexFolder) -> bool:
    """Whether Lucene itself has to search an index: it has no postings, or the environment requests it."""
    by_lucene = os.environ.get(BY_LUCENE) == "lucene"
    return by_lucene or open_postings(index.path, index.manifest.checksums) is None


class Bm25Retriever:
    """Finds papers by the words of the query."""

    name = "bm25"

    def __init__(self, index: IndexFolder, config: Bm25Config | None = None) -> None:
        self.config = resolve(config or Bm25Config(), index)
        self._years = index.papers.years
        self._sorted_years = np.sort(self._years[self._years != NO_YEAR])
        self._id_rank = index.id_rank
        with opening(index, BM25, _is_fault):
            self._rows: npt.NDArray[np.int32] = open_array(index.bm25 / ROWS, np.int32)
            check_distinct(ROWS, self._rows, len(self._years))
            self._scorer: PostingsScorer | None = None  # None if Lucene searches
            self._unstored: IndexFolder | None = None  # the index, if its postings may be stored
            if os.environ.get(BY_LUCENE) != "lucene":
                postings = open_postings(index.path, index.manifest.checksums)
                self._scorer = self._scorer_of(postings)
                self._unstored = None if postings else index
            self._lucene: Lucene | None = None
            if not self._scorer:
                self._lucene = Lucene(index.bm25, self.config)
                self._lucene.check_documents(len(self._rows))
        self._queries = 0

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; queries are searched in parallel.

        Raises:
            ValueError: If `k` is less than 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        pairs = list(zip(queries, eligible, strict=True))
        results: list[Hits | None] = [None] * len(pairs)
        self._expect(len(pairs))

        def search(i: int) -> None:
            results[i] = self._search(*pairs[i], k)

        _in_threads(search, len(pairs), self.config.threads or os.cpu_count() or 1)
        return [hits for hits in results if hits is not None]

    def scores_of_papers(self, queries: Sequence[Query], rows: npt.NDArray[np.int32]) -> Table:
        """Return the score of each paper for each query, 0 without a common term, shape (queries, papers).

        Args:
            queries: The queries.
            rows: Distinct papers, eligible or not.
        """
        self._count(WORTH_STORING)  # Lucene would score all papers for each query
        documents = self._documents[rows]
        has_text = documents >= 0
        table = np.zeros((len(queries), len(rows)), np.float32)
        score = self._score if self._scorer else self._score_by_lucene
        table[:, has_text] = score(queries, documents[has_text])
        return table

    def by_key_terms(self, key_terms: int) -> Self:
        """Return a retriever over the same open files that searches only the best terms of a query."""
        other = copy(self)
        other.config = self.config.replace(form=QueryForm.KEY_TERMS, key_terms=key_terms)
        other._lucene = self._lucene and self._lucene.with_terms(other.config)
        return other

    def close(self) -> None:
        """Release the files of Lucene, which Java keeps open otherwise; no search may be running or follow."""
        if self._lucene:
            self._lucene.close()

    def matches(self, query: Query, rows: Sequence[int], *, most: int) -> list[list[str]]:
        """Return, for each paper at `rows`, the words of the query with the highest weights in its score.

        Args:
            query: The query.
            rows: Papers that BM25 found for it.
            most: The maximal number of words per paper.
        """
        weights_in = self._weights_of(query)
        words = surface_forms(query, self.config)
        matching_words: list[list[str]] = []
        for document in self._documents[list(rows)].tolist():
            weights = weights_in(document) if document >= 0 else []
            results = dict.fromkeys(words.get(term, term) for term, _ in weights)
            matching_words.append(
                [word for word in results if word.lower() not in STOP_WORDS][:most]
            )
        return matching_words

    @cached_property
    def _documents(self) -> npt.NDArray[np.int32]:
        """The Lucene document of each row, shape (papers,); -1 for a paper without text."""
        documents = np.full(len(self._years), -1, np.int32)
        documents[self._rows] = np.arange(len(self._rows), dtype=np.int32)
        return documents

    @property
    def _open_lucene(self) -> Lucene:
        """Lucene, which is open where there is no scorer."""
        assert self._lucene
        return self._lucene

    def _search(self, query: Query, eligible: Eligibility, k: int) -> Hits:
        if not (scorer := self._scorer):
            return self._search_lucene(query, eligible, k)
        terms = self._numbered_terms(query, scorer.postings)
        excluded = self._documents[list(eligible.excluded)]
        documents, scores = scorer.top(terms, k, eligible.year_max, excluded[excluded >= 0])
        return Hits.ordered(self._rows[documents], scores, self._id_rank, k)

    def _numbered_terms(self, query: Query, postings: Postings) -> dict[int, float]:
        """Return the numbers of the terms of a query, and how often it has each."""
        counts = counted_terms(query, self.config, postings)
        return {postings.number(term): count for term, count in counts.items()}

    def _score(self, queries: Sequence[Query], documents: npt.NDArray[np.int32]) -> Table:
        assert self._scorer
        terms = [self._numbered_terms(query, self._scorer.postings) for query in queries]
        return self._scorer.table(terms, documents)

    def _score_by_lucene(self, queries: Sequence[Query], documents: npt.NDArray[np.int32]) -> Table:
        """Have Lucene score all papers, which is slow."""
        table = np.zeros((len(queries), len(documents)), np.float32)
        for query, scores in zip(queries, table, strict=True):
            bag, most = self._open_lucene.bag(query), max(len(self._rows), 1)
            found, found_scores = self._open_lucene.top(bag, most, exhaustive=True)
            of_all = np.zeros(most, np.float32)
            of_all[found] = found_scores
            scores[:] = of_all[documents]
        return table

    def _search_lucene(self, query: Query, eligible: Eligibility, k: int) -> Hits:
        """Fetch until there are `k` eligible hits and no hit that was not fetched ties with the last of them."""
        later = self._later_than(eligible.year_max)
        filtered = later > (1 - FILTER_BELOW) * len(self._years)
        lucene = self._open_lucene
        bag = lucene.bag(query, eligible.year_max if filtered else None)
        share = 1.0 if filtered else 1 - later / max(len(self._years), 1)
        # Most excluded papers match badly or not at all; otherwise the loop fetches more.
        fetch = math.ceil(1.1 * k / max(share, 0.01)) + min(len(eligible.excluded), k) + 1
        long = not filtered and len(contents(query)) >= LONG_QUERY
        while True:
            most = min(fetch, max(len(self._rows), 1))
            documents, scores = lucene.top(bag, most, exhaustive=long and most >= MANY_HITS)
            rows = self._rows[documents]
            keep = within(eligible, self._years, rows)
            kept = scores[keep]
            is_complete = len(documents) < fetch
            if is_complete or (len(kept) >= k and kept[k - 1] > scores[-1]):
                return Hits.ordered(rows[keep], kept, self._id_rank, k)
            fetch *= 4

    def _weights_of(self, query: Query) -> Callable[[int], list[tuple[str, float]]]:
        """Return a function of a document that gives its terms in the query, heaviest first, with their weights."""
        if not (scorer := self._scorer):
            return partial(self._open_lucene.weights, self._open_lucene.bag(query))
        counts = counted_terms(query, self.config, scorer.postings)
        numbers = {term: scorer.postings.number(term) for term in counts}

        def weights(document: int) -> list[tuple[str, float]]:
            scores = {
                term: score
                for term, number in numbers.items()
                if (score := scorer.score(number, counts[term], document))
            }
            return sorted(scores.items(), key=lambda item: (-item[1], item[0]))

        return weights

    def _expect(self, queries: int) -> None:
        """Prepare for more searches."""
        self._count(queries)
        if self._scorer:
            self._scorer.expect(queries)

    def _count(self, queries: int) -> None:
        """Store the postings if there are none, and all queries so far are worth it."""
        self._queries += queries
        if self._unstored and self._queries >= WORTH_STORING:
            index, self._unstored = self._unstored, None
            self._scorer = self._scorer_of(store_postings(index))

    def _scorer_of(self, postings: Postings | None) -> PostingsScorer | None:
        """Return what scores the postings; None if there are none, or they cannot be scored as Lucene does."""
        if not postings:
            return None
        years = self._years[self._rows]
        scorer = PostingsScorer(postings, years, self.config.k1, self.config.b)
        return scorer if scorer.is_exact else None

    def _later_than(self, year: int | None) -> int:
        if year is None:
            return 0
        return len(self._sorted_years) - int(np.searchsorted(self._sorted_years, year, "right"))


def _is_fault(error: Exception) -> bool:
    return is_java_exception(error) or isinstance(error, UNREADABLE)


def _in_threads(work: Callable[[int], None], count: int, threads: int) -> None:
    """Call `work` with 0 to count - 1; in this thread if one thread is enough.

    After an error or Ctrl-C running calls are completed, and no further call is started.
    """
    if min(count, threads) <= 1:
        for i in range(count):
            work(i)
        return
    pending, stop = iter(range(count)), Event()

    def worker() -> None:
        try:
            for i in pending:
                if stop.is_set():
                    break
                work(i)
        finally:
            leave_thread()

    with ThreadPoolExecutor(min(count, threads)) as pool:
        workers = [pool.submit(worker) for _ in range(min(count, threads))]
        try:
            wait(workers, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
        for done in workers:
            done.result()
