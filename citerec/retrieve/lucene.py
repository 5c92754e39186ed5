"""Lucene through pyjnius: builds queries, runs them, and explains scores.

The hits of a query are transferred as one text: fetching a thousand of them one by one costs more than the search. The
text is that of commons-lang, which loads in a tenth of the time of a Java JSON library.

pyjnius stores the object of a method call in the method, which all instances of a class share, so two threads that call
the same method of two objects can use the wrong object. Short calls are therefore made under one lock; the two long
ones, which run in parallel, call a static method and the only object of its class.
"""

import re
from collections import Counter
from collections.abc import Iterator
from copy import copy
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import Bm25Config
from citerec.index.bm25 import open_reader, year_term
from citerec.index.lucene_analysis import analyze_by_lucene, analyzer
from citerec.index.lucene_documents import CONTENTS, YEAR
from citerec.java import as_type, java_class, static_method
from citerec.retrieve.terms import key_terms, searched_text
from citerec.text import QueryForm
from citerec.types import Query

MAX_CLAUSES = 2**31 - 1  # distinct terms in a query; Lucene's default limit is 1024
MAX_INT = 2**31 - 1
_TERM = re.compile(rf"weight\({CONTENTS}:(.*) in \d+\)")
_HIT = re.compile(r"doc=(\d+) score=(\S+) ")  # in the text of a ScoreDoc
_short_calls = RLock()


class Lucene:
    """An open Lucene index; several threads may use it."""

    def __init__(self, folder: Path, config: Bm25Config) -> None:
        self._config = config
        with _short_calls:
            self._reader = open_reader(folder)
            self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(self._reader)
            bm25 = java_class("org.apache.lucene.search.similarities.BM25Similarity")
            self._searcher.setSimilarity(bm25(config.k1, config.b))
            self._searcher.setMaxClauseCount(MAX_CLAUSES)
            self._generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
            for load in (_call, _to_text):
                load()

    def with_terms(self, config: Bm25Config) -> Self:
        """Return a searcher of the same open files that makes queries by another `form` and `key_terms`."""
        other = copy(self)
        other._config = self._config.replace(form=config.form, key_terms=config.key_terms)
        return other

    def close(self) -> None:
        """Unmap the files; no search may be running or follow."""
        with _short_calls:
            self._reader.close()

    def check_documents(self, count: int) -> None:
        """Check that Lucene holds `count` documents.

        Raises:
            ValueError: If it holds another number.
        """
        with _short_calls:
            if (held := int(self._reader.maxDoc())) != count:
                raise ValueError(f"Lucene holds {held:,} documents, expected {count:,}")

    def bag(self, query: Query, year_max: int | None = None) -> Any:
        """Build the query: its terms, each as often as it occurs; a year bound is a filter."""
        text = searched_text(query, self._config)
        with _short_calls:
            if self._config.form is QueryForm.KEY_TERMS:
                bag = self._key_terms(text)
            else:
                bag = self._generator.buildQuery(CONTENTS, analyzer(), text)
            if year_max is not None:
                bag = _not_after(year_max, bag)
            return as_type("org.apache.lucene.search.Query", bag)

    def top(
        self, bag: Any, k: int, *, exhaustive: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the Lucene documents and scores of the best `k`, each of shape (at most k,).

        Args:
            bag: The query.
            k: The maximal number of hits.
            exhaustive: Whether to score every match instead of skipping blocks of papers that cannot be among the best:
                skipping costs more if few blocks can be skipped.
        """
        if exhaustive:
            collector = java_class("org.apache.lucene.search.TopScoreDocCollector")
            manager = collector.createSharedManager(k, None, MAX_INT)
            manager_or_count = as_type("org.apache.lucene.search.CollectorManager", manager)
        else:
            manager_or_count = java_class("java.lang.Integer")(k)
        top_docs = _call()(self._searcher, "search", bag, manager_or_count)
        hits = _HIT.findall(_to_text()(top_docs))
        documents = np.array([document for document, _ in hits], np.int64)
        return documents, np.array([score for _, score in hits], np.float64).astype(np.float32)

    def weights(self, bag: Any, document: int) -> list[tuple[str, float]]:
        """Return the matching terms of a document and the weight of each in the score, heaviest first."""
        term_weights: dict[str, float] = {}
        with _short_calls:
            for part in _parts(self._searcher.explain(bag, document)):
                if match := _TERM.search(part.getDescription()):
                    term_weights[match[1]] = float(part.getValue().doubleValue())
        return sorted(term_weights.items(), key=lambda item: (-item[1], item[0]))

    def _key_terms(self, text: str) -> Any:
        """Build a query of the terms of highest tf * idf."""
        counts = Counter(analyze_by_lucene(text))
        term_class = java_class("org.apache.lucene.index.Term")
        terms = {word: term_class(CONTENTS, word) for word in counts}
        papers = self._reader.numDocs()
        df = {word: int(self._reader.docFreq(term)) for word, term in terms.items()}
        chosen = key_terms(counts, df, papers, self._config.key_terms)
        term_query = java_class("org.apache.lucene.search.TermQuery")
        boost = java_class("org.apache.lucene.search.BoostQuery")
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        for word in chosen:
            builder.add(boost(term_query(terms[word]), float(counts[word])), _occur().SHOULD)
        return builder.build()


def _not_after(year: int, bag: Any) -> Any:
    term_range = java_class("org.apache.lucene.search.TermRangeQuery")
    last = year_term(max(year, 0))  # a paper without a year has 0000, and passes the filter
    years = term_range.newStringRange(YEAR, year_term(None), last, True, True)
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    builder.add(bag, _occur().MUST)
    builder.add(years, _occur().FILTER)
    return builder.build()


def _parts(explanation: Any) -> Iterator[Any]:
    """Yield the parts of an explanation that are weights of terms."""
    if _TERM.search(explanation.getDescription()):
        yield explanation
        return
    for part in explanation.getDetails():
        yield from _parts(part)


def _occur() -> Any:
    return java_class("org.apache.lucene.search.BooleanClause$Occur")


@cache
def _call() -> Any:
    """Return a static Java method that calls a method of an object, given as an argument."""
    signature = "(Ljava/lang/Object;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;"
    return static_method("org.apache.commons.lang3.reflect.MethodUtils", "invokeMethod", signature)


@cache
def _to_text() -> Any:
    """Return a static Java method that writes the fields of an object as text."""
    builder = "org.apache.commons.lang3.builder.ToStringBuilder"
    return static_method(builder, "reflectionToString", "(Ljava/lang/Object;)Ljava/lang/String;")
