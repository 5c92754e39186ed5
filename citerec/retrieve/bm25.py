"""BM25: turns queries into index terms and finds the best eligible papers in the postings of an index."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property
from string import punctuation
from typing import Self

import numpy as np
import numpy.typing as npt

from citerec.arrays import check_distinct, open_array
from citerec.config import Bm25Config, StopWords
from citerec.errors import IndexDamagedError
from citerec.folder import BM25, IndexFolder
from citerec.index.analysis import analyze
from citerec.index.bm25 import ROWS
from citerec.index.postings import FOLDER as POSTINGS
from citerec.index.postings import NO_TERM, Postings, open_postings
from citerec.retrieve.scoring import PostingsScorer
from citerec.text import STOP_WORDS, WORD, QueryForm, query_text, without_stop_words
from citerec.types import Eligibility, Hits, Query

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


def terms_of(query: Query, config: Bm25Config) -> list[str]:
    """Return the index terms of a query, whether a paper has them or not."""
    return analyze(_searched_text(query, config))


class Bm25Retriever:
    """Finds papers by the words of the query."""

    name = "bm25"

    def __init__(self, index: IndexFolder, config: Bm25Config | None = None) -> None:
        """Map the postings.

        Raises:
            IndexDamagedError: If a file is missing or does not fit the others.
        """
        self.config = resolve(config or Bm25Config(), index)
        self._papers = len(index.papers)
        self._id_rank = index.id_rank
        part = BM25
        try:
            self._rows: npt.NDArray[np.int32] = open_array(index.bm25 / ROWS, np.int32)
            check_distinct(ROWS, self._rows, self._papers)
            part = POSTINGS
            tokens = index.manifest.counts.get("bm25_tokens", 0)
            postings = open_postings(index.path / POSTINGS, len(self._rows), tokens)
        except (OSError, ValueError) as error:
            raise IndexDamagedError(index.path, [f"{part}/ cannot be read ({error})"]) from error
        years = index.papers.years[self._rows]
        self._scorer = PostingsScorer(postings, years, self.config.k1, self.config.b)

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; queries are searched in parallel.

        Raises:
            ValueError: If `k` is less than 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        self._scorer.expect(len(queries))
        # in this thread: the analysis holds Python's lock, and a thread that calls Java would have to leave it
        terms = [self._numbered_terms(query) for query in queries]

        def search(number: int) -> Hits:
            rules = eligible[number]
            excluded = self._documents[list(rules.excluded)]
            documents, scores = self._scorer.top(
                terms[number], k, rules.year_max, excluded[excluded >= 0]
            )
            return Hits.ordered(self._rows[documents], scores, self._id_rank, k)

        threads = min(self.config.threads or os.cpu_count() or 1, len(queries))
        if threads <= 1:
            return [*map(search, range(len(queries)))]
        pool = ThreadPoolExecutor(threads)
        try:
            return [*pool.map(search, range(len(queries)))]
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no further search starts

    def scores_of_papers(self, queries: Sequence[Query], rows: npt.NDArray[np.int32]) -> Table:
        """Return the score of each paper for each query, 0 without a common term, shape (queries, papers).

        Args:
            queries: The queries.
            rows: Distinct papers, eligible or not.
        """
        documents = self._documents[rows]
        has_text = documents >= 0
        table = np.zeros((len(queries), len(rows)), np.float32)
        terms = [self._numbered_terms(query) for query in queries]
        table[:, has_text] = self._scorer.table(terms, documents[has_text])
        return table

    def by_key_terms(self, key_terms: int) -> Self:
        """Return a retriever over the same open files that searches only the best terms of a query."""
        other = copy(self)
        other.config = self.config.replace(form=QueryForm.KEY_TERMS, key_terms=key_terms)
        return other

    def matches(self, query: Query, rows: Sequence[int], *, most: int) -> list[list[str]]:
        """Return, for each paper at `rows`, the words of the query with the highest weights in its score.

        Args:
            query: The query.
            rows: Papers, of which some may be asked for twice.
            most: The maximal number of words per paper.
        """
        counts = _counted_terms(query, self.config, self._scorer.postings)
        words = _surface_forms(query, self.config)
        distinct = np.array(sorted({row for row in rows if self._documents[row] >= 0}), np.int32)
        terms = [{self._scorer.postings.number(term): count} for term, count in counts.items()]
        weights = self._scorer.table(terms, self._documents[distinct])
        columns = {int(row): column for column, row in enumerate(distinct)}
        matching_words: list[list[str]] = []
        for row in rows:
            column = columns.get(int(row))
            in_paper = {} if column is None else dict(zip(counts, weights[:, column], strict=True))
            best = sorted(in_paper, key=lambda term: (-in_paper[term], term))
            results = dict.fromkeys(words.get(term, term) for term in best if in_paper[term])
            matching_words.append([w for w in results if w.lower() not in STOP_WORDS][:most])
        return matching_words

    @cached_property
    def _documents(self) -> npt.NDArray[np.int32]:
        """The Lucene document of each row, shape (papers,); -1 for a paper without text."""
        documents = np.full(self._papers, -1, np.int32)
        documents[self._rows] = np.arange(len(self._rows), dtype=np.int32)
        return documents

    def _numbered_terms(self, query: Query) -> dict[int, float]:
        """Return the numbers of the terms of a query, and how often it has each."""
        postings = self._scorer.postings
        counts = _counted_terms(query, self.config, postings)
        return {postings.number(term): count for term, count in counts.items()}


def _searched_text(query: Query, config: Bm25Config) -> str:
    # An unpaired surrogate (a byte from the shell that is not UTF-8) is not allowed in a Java string.
    utf16 = query_text(query, config.form).encode("utf-16", "surrogatepass")
    text = utf16.decode("utf-16", "replace")
    return without_stop_words(text) if config.stop_words is StopWords.LONG else text


def _counted_terms(query: Query, config: Bm25Config, postings: Postings) -> dict[str, int]:
    """Return the index terms of a query that papers have, and how often the query has each."""
    counts = Counter(terms_of(query, config))
    dfs = {t: postings.df(n) for t in counts if (n := postings.number(t)) != NO_TERM}
    if config.form is not QueryForm.KEY_TERMS:
        return {term: counts[term] for term in dfs}
    chosen = _key_terms(counts, dfs, len(postings.norms), config.key_terms)
    return {term: counts[term] for term in chosen}


def _key_terms(
    counts: Mapping[str, int], dfs: Mapping[str, int], papers: int, most: int
) -> list[str]:
    """Return the terms of highest tf * idf, where idf is ln(papers / (1 + papers with the term))."""
    weight = {term: counts[term] * math.log(papers / (1 + df)) for term, df in dfs.items()}
    return sorted(weight, key=lambda term: (-weight[term], term))[:most]


def _surface_forms(query: Query, config: Bm25Config) -> dict[str, str]:
    """Return for each index term of a query the first word that it comes from."""
    forms: dict[str, str] = {}
    text = _searched_text(query, config)
    # 3.14 is two words, but one term
    tokens = (token.strip(punctuation) for token in text.split())
    for word in dict.fromkeys([*WORD.findall(text), *tokens]):
        for term in analyze(word):
            forms.setdefault(term, word.lower() if word[1:].islower() else word)
    return forms
