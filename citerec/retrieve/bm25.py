"""BM25 over the Lucene part of an index.

Hits come over from Java as one JSON text per query: asking for a thousand hits one by one costs more than the search.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.config import Bm25Config, StopWords
from citerec.corpus.papers import NO_YEAR
from citerec.eligibility import mask
from citerec.folder import IndexFolder
from citerec.index.bm25 import CONTENTS, ROWS, YEAR, open_reader, year_term
from citerec.java import java_class, leave_thread
from citerec.text import STOP_WORDS, WORD, QueryForm, query_text, without_stop_words
from citerec.types import Eligible, Hits, Query

MAX_CLAUSES = 1_000_000  # distinct terms in a query; Lucene's own limit is 1024
FILTER_BELOW = (
    0.4  # eligible share under which Lucene filters by year; above, fetching more is faster
)
ABSTRACT_SHARE = 0.5  # of the papers, under which function words are left out of queries
_TERM = re.compile(rf"weight\({CONTENTS}:(.*) in \d+\)")


def resolve(config: Bm25Config, index: IndexFolder) -> Bm25Config:
    """Decide what `StopWords.AUTO` means for an index.

    Where most papers have a title only, few hold a "we" or an "among": such words look rare there, BM25
    overrates them, and the papers that have an abstract come first for no better reason.
    """
    if config.stop_words is not StopWords.AUTO:
        return config
    counts = index.manifest.counts
    mostly_titles = counts["with_abstract"] < ABSTRACT_SHARE * counts["papers"]
    return replace(config, stop_words=StopWords.LONG if mostly_titles else StopWords.ANSERINI)


class Bm25Retriever:
    """Finds papers by their words."""

    name = "bm25"

    def __init__(self, index: IndexFolder, config: Bm25Config | None = None) -> None:
        self.config = resolve(config or Bm25Config(), index)
        self._years = index.papers.years
        self._sorted_years = np.sort(self._years[self._years != NO_YEAR])
        self._id_rank = index.id_rank
        self._rows: npt.NDArray[np.int32] = np.load(index.bm25 / ROWS)
        self._lucene = _Lucene(index.bm25, self.config)

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligible], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; queries are searched in parallel."""
        pairs = list(zip(queries, eligible, strict=True))
        found: list[Hits | None] = [None] * len(pairs)

        def search(i: int) -> None:
            found[i] = self._search(*pairs[i], k)

        _in_threads(search, len(pairs), self.config.threads or os.cpu_count() or 1)
        return [hits for hits in found if hits is not None]

    def matches(self, query: Query, rows: Sequence[int], *, most: int) -> list[list[str]]:
        """Return, for each paper at `rows`, the words of the query that weighed most in its score.

        Args:
            query: What was searched with.
            rows: Papers that BM25 found.
            most: At most this many words each.
        """
        bag = self._lucene.bag(query)
        words = self._lucene.surface_forms(query)
        documents = {int(row): doc for doc, row in enumerate(self._rows) if row in {*rows}}
        weights = [
            self._lucene.weights(bag, documents[row]) if row in documents else [] for row in rows
        ]
        return [
            [words[term] for term, _ in found if words.get(term, "of").lower() not in STOP_WORDS][
                :most
            ]
            for found in weights
        ]

    def _search(self, query: Query, eligible: Eligible, k: int) -> Hits:
        """Fetch until `k` eligible hits are in and no hit left behind ties with the last of them."""
        later = self._later_than(eligible.year_max)
        filtered = later > (1 - FILTER_BELOW) * len(self._years)
        bag = self._lucene.bag(query, eligible.year_max if filtered else None)
        share = 1.0 if filtered else 1 - later / max(len(self._years), 1)
        fetch = math.ceil(1.1 * k / max(share, 0.01)) + len(eligible.excluded) + 1
        within = mask(eligible, self._years)
        while True:
            documents, scores = self._lucene.top(bag, min(fetch, max(len(self._rows), 1)))
            rows = self._rows[documents]
            keep = within[rows]
            kept = scores[keep]
            whole = len(documents) < fetch
            if whole or (len(kept) >= k and kept[k - 1] > scores[-1]):
                return self._ordered(rows[keep], kept, k)
            fetch *= 4

    def _ordered(
        self, rows: npt.NDArray[np.int32], scores: npt.NDArray[np.float32], k: int
    ) -> Hits:
        order = np.lexsort((self._id_rank[rows], -scores))[:k]
        return Hits(rows[order], scores[order])

    def _later_than(self, year: int | None) -> int:
        if year is None:
            return 0
        return len(self._sorted_years) - int(np.searchsorted(self._sorted_years, year, "right"))


class _Lucene:
    """The Java side: builds queries and runs them. Safe to call from several threads."""

    def __init__(self, folder: Path, config: Bm25Config) -> None:
        self._config = config
        self._reader = open_reader(folder)
        searcher = java_class("org.apache.lucene.search.IndexSearcher")
        searcher.setMaxClauseCount(MAX_CLAUSES)
        self._searcher = searcher(self._reader)
        bm25 = java_class("org.apache.lucene.search.similarities.BM25Similarity")
        self._searcher.setSimilarity(bm25(config.k1, config.b))
        analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
        self._analyzer = analyzer.newDefaultInstance()
        self._generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._utils = java_class("io.anserini.analysis.AnalyzerUtils")
        self._builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")
        self._occur = java_class("org.apache.lucene.search.BooleanClause$Occur")
        self._to_json = java_class("com.fasterxml.jackson.databind.ObjectMapper")()

    def bag(self, query: Query, year_max: int | None = None) -> Any:
        """Build the query; a year bound becomes a filter clause."""
        text = self._text(query)
        if self._config.form is QueryForm.KEY_TERMS:
            bag = self._key_terms(text)
        else:
            bag = self._generator.buildQuery(CONTENTS, self._analyzer, text)
        if year_max is None:
            return bag
        term_range = java_class("org.apache.lucene.search.TermRangeQuery")
        years = term_range.newStringRange(YEAR, year_term(None), year_term(year_max), True, True)
        builder = self._builder()
        builder.add(bag, self._occur.MUST)
        builder.add(years, self._occur.FILTER)
        return builder.build()

    def top(self, query: Any, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the Lucene documents and scores of the best `k`, each of shape (at most k,)."""
        text: str = self._to_json.writeValueAsString(self._searcher.search(query, k))
        hits: list[dict[str, Any]] = orjson.loads(text)["scoreDocs"]
        documents = np.fromiter((hit["doc"] for hit in hits), np.int64, len(hits))
        return documents, np.fromiter((hit["score"] for hit in hits), np.float32, len(hits))

    def weights(self, bag: Any, document: int) -> list[tuple[str, float]]:
        """Return the terms of a document that match, with what each adds, heaviest first."""
        explanation = self._searcher.explain(bag, document)
        found: dict[str, float] = {}
        for part in _parts(explanation):
            if match := _TERM.search(part.getDescription()):
                found[match[1]] = float(part.getValue().doubleValue())
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    def surface_forms(self, query: Query) -> dict[str, str]:
        """Return the first word of a query that stands behind each of its index terms."""
        forms: dict[str, str] = {}
        for word in dict.fromkeys(WORD.findall(self._text(query))):
            for term in self._analyze(word):
                forms.setdefault(term, word.lower() if word[1:].islower() else word)
        return forms

    def _text(self, query: Query) -> str:
        text = query_text(query, self._config.form)
        return without_stop_words(text) if self._config.stop_words is StopWords.LONG else text

    def _analyze(self, text: str) -> list[str]:
        return list(self._utils.analyze(self._analyzer, text))

    def _key_terms(self, text: str) -> Any:
        counts = Counter(self._analyze(text))
        term_class = java_class("org.apache.lucene.index.Term")
        terms = {word: term_class(CONTENTS, word) for word in counts}
        papers = self._reader.numDocs()
        weight = {
            word: count * math.log(papers / (1 + self._reader.docFreq(terms[word])))
            for word, count in counts.items()
        }
        chosen = sorted(counts, key=lambda word: (-weight[word], word))[: self._config.key_terms]
        term_query = java_class("org.apache.lucene.search.TermQuery")
        boost = java_class("org.apache.lucene.search.BoostQuery")
        builder = self._builder()
        for word in chosen:
            clause = boost(term_query(terms[word]), float(counts[word]))
            builder.add(clause, self._occur.SHOULD)
        return builder.build()


def _parts(explanation: Any) -> Iterator[Any]:
    """Walk an explanation down to the weights of its terms."""
    if _TERM.search(explanation.getDescription()):
        yield explanation
        return
    for part in explanation.getDetails():
        yield from _parts(part)


def _in_threads(work: Callable[[int], None], count: int, threads: int) -> None:
    """Call `work` with 0 … count - 1; in this thread if one is enough."""
    if min(count, threads) <= 1:
        for i in range(count):
            work(i)
        return
    pending = iter(range(count))

    def worker() -> None:
        try:
            for i in pending:
                work(i)
        finally:
            leave_thread()

    with ThreadPoolExecutor(min(count, threads)) as pool:
        for done in [pool.submit(worker) for _ in range(min(count, threads))]:
            done.result()
