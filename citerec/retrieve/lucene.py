"""Lucene through pyjnius: builds queries, runs them, says what a score is made of.

Hits come over as one text per query: asking for a thousand of them one by one costs more than the search. The text is
that of commons-lang, which takes a tenth of the time to load that a JSON library of Java takes.

pyjnius keeps the object of a method call in the method, which all instances of a class share, so two threads that call
the same method of two objects can hit each other's. Short calls are therefore made under one lock; the two
long ones, to run side by side, go to a static method and to the only object of its class.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import punctuation
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import Bm25Config, StopWords
from citerec.index.bm25 import CONTENTS, YEAR, open_reader, year_term
from citerec.java import as_type, java_class, static_method
from citerec.text import WORD, QueryForm, query_text, without_stop_words
from citerec.types import Query

MAX_CLAUSES = 2**31 - 1  # distinct terms in a query; Lucene's own limit is 1024
MAX_INT = 2**31 - 1
_TERM = re.compile(rf"weight\({CONTENTS}:(.*) in \d+\)")
_HIT = re.compile(r"doc=(\d+) score=(\S+) ")  # in the text of a ScoreDoc
_short_calls = RLock()


class Lucene:
    """An open Lucene index. Safe to use from several threads."""

    def __init__(self, folder: Path, config: Bm25Config) -> None:
        self._config = config
        with _short_calls:
            self._reader = open_reader(folder)
            self._searcher = java_class("org.apache.lucene.search.IndexSearcher")(self._reader)
            bm25 = java_class("org.apache.lucene.search.similarities.BM25Similarity")
            self._searcher.setSimilarity(bm25(config.k1, config.b))
            self._searcher.setMaxClauseCount(MAX_CLAUSES)
            self._analyzer = java_class(
                "io.anserini.analysis.DefaultEnglishAnalyzer"
            ).newDefaultInstance()
            self._generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
            for make_once in (_call, _to_text):
                make_once()

    def check_documents(self, count: int) -> None:
        """Check that Lucene holds so many documents.

        Raises:
            ValueError: If it does not.
        """
        with _short_calls:
            if (found := int(self._reader.maxDoc())) != count:
                raise ValueError(f"Lucene holds {found:,} documents, expected {count:,}")

    def bag(self, query: Query, year_max: int | None = None) -> Any:
        """Build the query: its terms, each as often as it stands there; a year bound is a filter."""
        text = self._text(query)
        with _short_calls:
            if self._config.form is QueryForm.KEY_TERMS:
                bag = self._key_terms(text)
            else:
                bag = self._generator.buildQuery(CONTENTS, self._analyzer, text)
            if year_max is not None:
                bag = _not_after(year_max, bag)
            return as_type("org.apache.lucene.search.Query", bag)

    def top(
        self, bag: Any, k: int, *, exhaustive: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the Lucene documents and scores of the best `k`, each of shape (at most k,).

        Args:
            bag: The query.
            k: How many.
            exhaustive: Whether to score every match, in place of leaving out blocks of papers that
                cannot be among the best: finding those out costs more where few can be left out.
        """
        if exhaustive:
            collector = java_class("org.apache.lucene.search.TopScoreDocCollector")
            manager = collector.createSharedManager(k, None, MAX_INT)
            wanted = as_type("org.apache.lucene.search.CollectorManager", manager)
        else:
            wanted = java_class("java.lang.Integer")(k)
        found = _call()(self._searcher, "search", bag, wanted)
        hits = _HIT.findall(_to_text()(found))
        documents = np.array([document for document, _ in hits], np.int64)
        return documents, np.array([score for _, score in hits], np.float64).astype(np.float32)

    def weights(self, bag: Any, document: int) -> list[tuple[str, float]]:
        """Return the terms of a document that match, with what each adds, heaviest first."""
        found: dict[str, float] = {}
        with _short_calls:
            for part in _parts(self._searcher.explain(bag, document)):
                if match := _TERM.search(part.getDescription()):
                    found[match[1]] = float(part.getValue().doubleValue())
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    def surface_forms(self, query: Query) -> dict[str, str]:
        """Return the first word of a query that stands behind each of its index terms."""
        forms: dict[str, str] = {}
        text = self._text(query)
        whole = (token.strip(punctuation) for token in text.split())  # 3.14 is two words, one term
        for word in dict.fromkeys([*WORD.findall(text), *whole]):
            for term in self._analyze(word):
                forms.setdefault(term, word.lower() if word[1:].islower() else word)
        return forms

    def _text(self, query: Query) -> str:
        # Half a surrogate pair (a shell's byte that is no UTF-8) has no place in a string of Java.
        utf16 = query_text(query, self._config.form).encode("utf-16", "surrogatepass")
        text = utf16.decode("utf-16", "replace")
        return without_stop_words(text) if self._config.stop_words is StopWords.LONG else text

    def _analyze(self, text: str) -> list[str]:
        utils = java_class("io.anserini.analysis.AnalyzerUtils")
        with _short_calls:
            terms = utils.analyze(self._analyzer, text)
            return [terms.get(i) for i in range(terms.size())]

    def _key_terms(self, text: str) -> Any:
        """Keep the terms of highest tf * idf, idf being ln(papers / (1 + papers with the term)).

        A term that no paper has would take a place and find nothing.
        """
        counts = Counter(self._analyze(text))
        term_class = java_class("org.apache.lucene.index.Term")
        terms = {word: term_class(CONTENTS, word) for word in counts}
        papers = self._reader.numDocs()
        df = {word: int(self._reader.docFreq(term)) for word, term in terms.items()}
        weight = {w: counts[w] * math.log(papers / (1 + df[w])) for w in counts if df[w]}
        chosen = sorted(weight, key=lambda word: (-weight[word], word))[: self._config.key_terms]
        term_query = java_class("org.apache.lucene.search.TermQuery")
        boost = java_class("org.apache.lucene.search.BoostQuery")
        builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
        for word in chosen:
            builder.add(boost(term_query(terms[word]), float(counts[word])), _occur().SHOULD)
        return builder.build()


def _not_after(year: int, bag: Any) -> Any:
    term_range = java_class("org.apache.lucene.search.TermRangeQuery")
    last = year_term(max(year, 0))  # a paper without a year has 0000, and stays in
    years = term_range.newStringRange(YEAR, year_term(None), last, True, True)
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    builder.add(bag, _occur().MUST)
    builder.add(years, _occur().FILTER)
    return builder.build()


def _parts(explanation: Any) -> Iterator[Any]:
    """Walk an explanation down to the weights of its terms."""
    if _TERM.search(explanation.getDescription()):
        yield explanation
        return
    for part in explanation.getDetails():
        yield from _parts(part)


def _occur() -> Any:
    return java_class("org.apache.lucene.search.BooleanClause$Occur")


@cache
def _call() -> Any:
    """Return what calls a method of a Java object, given as an argument: a static method."""
    signature = "(Ljava/lang/Object;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;"
    return static_method("org.apache.commons.lang3.reflect.MethodUtils", "invokeMethod", signature)


@cache
def _to_text() -> Any:
    """Return what writes the fields of a Java object as text: a static method."""
    builder = "org.apache.commons.lang3.builder.ToStringBuilder"
    return static_method(builder, "reflectionToString", "(Ljava/lang/Object;)Ljava/lang/String;")
