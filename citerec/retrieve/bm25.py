"""BM25: finds papers by the words of the query in the stored postings, with the ids and scores of Lucene to the bit.

Lucene computes the score of a term in 32 bits, sums the terms in 64, and rounds the sum to 32. The scores of a query
differ so little in magnitude that their sum is exact, whatever the order of its terms.

Source: BM25Similarity of Lucene 9.9.
"""

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache, cached_property, partial
from pathlib import Path
from string import punctuation
from typing import Any, Self
from zipfile import ZipFile

import numpy as np

from citerec.config import Bm25Config, StopWords
from citerec.errors import IndexDamagedError
from citerec.files.arrays import Array, Rows, Scores, open_array
from citerec.index.bm25 import (
    LENGTHS,
    NO_TERM,
    POSTINGS,
    ROWS,
    Postings,
    analyze,
)
from citerec.index.contexts import Contexts
from citerec.index.folder import IndexFolder
from citerec.index.java import find_jar
from citerec.rules.eligible import in_years
from citerec.text import STOP_WORDS, WORD, QueryForm, contents, without_stop_words
from citerec.types import Eligibility, Hits, Query

# share of papers with an abstract below which function words are dropped from queries
ABSTRACT_SHARE = 0.5
# queries after which the import of numba, about a second, has paid off
WORTH_COMPILING = 200
# words that a larger share of papers has are no reasons; in a small corpus some papers more
COMMON = 0.05
_FEW = 5
_ONE = np.float32(1)
_COMPLETIONS = 8  # of a word that is typed


def resolve(config: Bm25Config, index: IndexFolder | Contexts) -> Bm25Config:
    """Resolve `StopWords.AUTO` for an index.

    If most papers have only a title, few contain words such as "we" or "between": BM25 treats these words as rare, and
    papers with an abstract would rank first for that reason alone.
    """
    if config.stop_words is not StopWords.AUTO:
        return config
    mostly_titles = False
    if isinstance(index, IndexFolder):
        counts = index.manifest.counts
        mostly_titles = counts["with_abstract"] < ABSTRACT_SHARE * counts["papers"]
    return config.replace(
        stop_words=StopWords.LONG if mostly_titles else StopWords.ANSERINI
    )


def terms_of(query: Query, config: Bm25Config) -> list[str]:
    """Return the index terms of a query, whether a paper has them or not."""
    return analyze(_searched_text(query, config))


class Bm25Retriever:
    """Finds papers by the words of the query; several threads may use it.

    The first queries are scored by NumPy, since the import of numba takes as long as a hundred of them; the others, or
    all if numba is imported already, by numba.
    """

    name = "bm25"

    def __init__(
        self, index: IndexFolder | Contexts, config: Bm25Config | None = None
    ) -> None:
        """Map the postings; an IndexDamagedError if a file is missing or does not fit the others.

        Of the contexts of an index, hits and rules hold their numbers in place of rows.
        """
        self.config = resolve(config or Bm25Config(), index)
        self._papers = len(index.years)
        self._id_rank = index.id_rank
        try:
            # of each document
            self._rows: Rows = open_array(index.bm25 / ROWS, np.int32)
            self._postings = Postings(
                index.path / POSTINGS, len(self._rows), index.tokens
            )
        except (OSError, ValueError) as error:
            raise IndexDamagedError(
                index.path, [f"BM25 cannot be read ({error})"]
            ) from error
        self._years = index.years[self._rows]
        k1 = np.float32(self.config.k1)
        b = np.float32(self.config.b)
        mean = (
            np.float32(self._postings.tokens / max(self._postings.with_terms, 1))
            or _ONE
        )
        with np.errstate(divide="ignore"):
            # 1 / (k1 * (1 - b + b * length / mean length)) for each length that a byte stands for
            self._inverse: Scores = _ONE / (
                k1 * ((_ONE - b) + b * LENGTHS.astype(np.float32) / mean)
            )
        self._queries = 0  # so far

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; queries are searched in parallel."""
        self._queries += len(queries)
        # in this thread: the analysis holds Python's lock, and a thread that calls Java would have to leave it
        terms = [dict(self._terms(query).values()) for query in queries]
        search = partial(self._search, k, compiled=self._is_compiled)
        threads = min(self.config.threads or os.cpu_count() or 1, len(queries))
        if threads <= 1:
            return [*map(search, terms, eligible)]
        pool = ThreadPoolExecutor(threads)
        try:
            return [*pool.map(search, terms, eligible)]
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C no further search starts

    @property
    def _is_compiled(self) -> bool:
        return self._queries >= WORTH_COMPILING or "numba" in sys.modules

    def _search(
        self, k: int, terms: Mapping[int, int], rule: Eligibility, *, compiled: bool
    ) -> Hits:
        """Return the `k` best eligible papers, by the numbers of the query's terms and how often it holds each."""
        postings = self._postings
        numbers = np.fromiter(terms, np.int64, len(terms))
        starts = postings.indptr[numbers]
        ends = postings.indptr[numbers + 1]
        weights = self._weights(
            ends - starts, np.fromiter(terms.values(), np.float32, len(terms))
        )
        totals = np.zeros(len(self._years))
        if compiled:
            lists = postings.docs, postings.freqs, postings.norms
            compiled_loop()(starts, ends, weights, *lists, self._inverse, totals)
        else:
            for start, end, weight in zip(
                starts.tolist(), ends.tolist(), weights, strict=True
            ):
                docs = postings.docs[start:end]
                freqs = postings.freqs[start:end].astype(np.float32)
                x = freqs * self._inverse[postings.norms[docs]]
                totals[docs] += weight - weight / (_ONE + x)
        scores = totals.astype(np.float32)
        excluded = self._documents[list(rule.excluded)]
        scores[excluded[excluded >= 0]] = 0
        scores[~in_years(rule, self._years)] = 0
        found = np.flatnonzero(scores > 0)
        scores = scores[found]
        if len(found) > k:  # the best, and all that tie with the last of them
            # of positive scores alone: among a million equal ones numpy takes 100 ms where it has AVX-512
            is_best = scores >= np.partition(scores, -k)[-k]
            found = found[is_best]
            scores = scores[is_best]
        return Hits.ordered(self._rows[found], scores, self._id_rank, k)

    def scores_of_papers(self, queries: Sequence[Query], rows: Rows) -> Scores:
        """Return the score of each distinct paper for each query, shape (queries, papers); 0 without a common term."""
        terms = [dict(self._terms(query).values()) for query in queries]
        return self._table(terms, rows)

    def by_key_terms(self, key_terms: int) -> Self:
        """Return a retriever over the same open files that searches only the best terms of a query."""
        other = copy(self)
        other.config = self.config.replace(
            form=QueryForm.KEY_TERMS, key_terms=key_terms
        )
        return other

    def matches(
        self, query: Query, rows: Sequence[int], *, most: int
    ) -> list[list[str]]:
        """Return, for each paper at `rows`, at most `most` words of the query, those with the highest weights first.

        Words that more papers have than `COMMON` are left out, and function words.
        """
        most_papers = COMMON * self._postings.with_terms + _FEW
        known = {
            term: {number: count}
            for term, (number, count) in self._terms(query).items()
            if self._postings.df(number) <= most_papers
        }
        language = self.foreign_language(query)
        function_words = _function_words()[language] if language else STOP_WORDS
        # of each term the first word
        forms = dict[str, str]()
        text = _searched_text(query, self.config)
        # 3.14: two words, one term
        tokens = (token.strip(punctuation) for token in text.split())
        for word in dict.fromkeys([*WORD.findall(text), *tokens]):
            for term in analyze(word):
                forms.setdefault(term, word.lower() if word[1:].islower() else word)
        matching: list[list[str]] = []
        table = self._table([*known.values()], np.array(rows, np.int32))
        for weights in table.T.tolist():
            weight = dict(zip(known, weights, strict=True))
            best = sorted(
                filter(weight.get, weight), key=lambda term: (-weight[term], term)
            )
            words = dict.fromkeys(forms.get(term, term) for term in best)
            matching.append(
                [word for word in words if word.casefold() not in function_words][:most]
            )
        return matching

    def foreign_language(self, query: Query) -> str:
        """Return the language of a query of whose terms most are in no paper; empty if they are, or it is English."""
        terms = {*terms_of(query, self.config)}
        unknown = [term for term in terms if self._postings.number(term) == NO_TERM]
        if 2 * len(unknown) <= len(terms):
            return ""
        words = WORD.findall(contents(query).casefold())
        times = {
            language: sum(word in function_words for word in words)
            for language, function_words in _function_words().items()
        }
        language = max(times, key=times.__getitem__)
        return language if times[language] > max(times["English"], 1) else ""

    def completions(self, text: str) -> list[str]:
        """Return frequent terms that the last word of a text may become: of stems, so its end may be left out."""
        word = text.lower().split()[-1]
        for end in range(len(word), 2, -1):
            if found := self._postings.starting(word[:end], _COMPLETIONS):
                return found
        return []

    def term_weights(self, query: Query) -> dict[str, float]:
        """Return the weight in a score of each term of a query that papers have."""
        known = self._terms(query)
        df = self._postings.df
        dfs = np.array([df(number) for number, _ in known.values()], np.int64)
        times = np.array([count for _, count in known.values()], np.float32)
        return dict(zip(known, self._weights(dfs, times).tolist(), strict=True))

    def _table(self, queries: Sequence[Mapping[int, int]], rows: Rows) -> Scores:
        """Return the scores of distinct papers, eligible or not, shape (queries, papers); 0 without a term.

        The costs depend on the papers, and hardly on the size of the index.
        """
        documents = self._documents[rows]
        order = np.argsort(documents, kind="stable")
        order = order[documents[order] >= 0]
        docs = documents[order]
        norms = self._inverse[self._postings.norms[docs]]
        totals = np.zeros((len(queries), len(docs)))
        for term in {term: None for terms in queries for term in terms}:
            places, freqs = self._postings.freqs_in(term, docs)
            x = freqs.astype(np.float32) * norms[places]
            df = np.array([self._postings.df(term)])
            for total, terms in zip(totals, queries, strict=True):
                if count := terms.get(term):
                    [weight] = self._weights(df, np.array([count], np.float32))
                    total[places] += weight - weight / (_ONE + x)
        scores = np.zeros((len(queries), len(rows)), np.float32)
        scores[:, order] = totals
        return scores

    def _weights(self, dfs: Array, counts: Scores) -> Scores:
        """Return the weight of terms, from their numbers of documents and how often the query has them."""
        idf = np.log(1 + (self._postings.with_terms - dfs + 0.5) / (dfs + 0.5))
        return counts * idf.astype(np.float32)

    @cached_property
    def _documents(self) -> Rows:
        """The document of each row, shape (papers,); -1 for a paper without text."""
        documents = np.full(self._papers, -1, np.int32)
        documents[self._rows] = np.arange(len(self._rows), dtype=np.int32)
        return documents

    def _terms(self, query: Query) -> dict[str, tuple[int, int]]:
        """Return the searched terms of a query that papers have: the number of each, and how often the query has it."""
        postings = self._postings
        counts = Counter(terms_of(query, self.config)).items()
        known = {
            term: (number, count)
            for term, count in counts
            if (number := postings.number(term)) != NO_TERM
        }
        if self.config.form is QueryForm.KEY_TERMS:  # those of highest tf * idf
            papers = len(postings.norms)
            weight = {
                term: count * math.log(papers / (1 + postings.df(number)))
                for term, (number, count) in known.items()
            }
            best = sorted(weight, key=lambda term: (-weight[term], term))
            known = {term: known[term] for term in best[: self.config.key_terms]}
        return known


@cache
def _function_words() -> dict[str, frozenset[str]]:
    """Return the function words of each language: Snowball's lists, which Lucene has."""
    end = "_stop.txt"
    with ZipFile(find_jar()) as jar:
        return {
            Path(name).name.removesuffix(end).title(): frozenset(
                re.findall(r"(?m)^ *(\w+)", jar.read(name).decode().casefold())
            )
            for name in jar.namelist()
            if name.endswith(end)
        }


def _searched_text(query: Query, config: Bm25Config) -> str:
    # An unpaired surrogate (a byte from the shell that is not UTF-8) is not allowed in a Java string.
    text = query.title if config.form is QueryForm.TITLE else contents(query)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return without_stop_words(text) if config.stop_words is StopWords.LONG else text


@cache
def compiled_loop() -> Any:
    """Import numba and compile `_add_scores`; the compiled code is cached on disk, where a folder can be written."""
    from numba import njit

    try:
        return njit(cache=True, nogil=True, error_model="numpy")(_add_scores)
    except RuntimeError:  # no folder can be written, as in a read-only container
        return njit(nogil=True, error_model="numpy")(_add_scores)


def _add_scores(
    starts: Any,
    ends: Any,
    weights: Any,
    docs: Any,
    freqs: Any,
    norms: Any,
    inverse: Any,
    totals: Any,
) -> None:
    """Add the score of each term, whose postings lie from its start to its end, to the totals of its documents.

    That all documents exist is checked where an index is opened; see `check_content`.
    """
    for term in range(len(starts)):
        weight = weights[term]
        places = slice(starts[term], ends[term])
        term_docs = docs[places]
        term_freqs = freqs[places]
        # from 0, so that numba compiles no test for a negative place
        for i in range(len(term_docs)):
            doc = np.uint32(term_docs[i])
            x = np.float32(term_freqs[i]) * inverse[norms[doc]]
            totals[doc] += np.float64(weight - weight / (_ONE + x))
