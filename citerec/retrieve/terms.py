"""Turns a query into index terms; Java is used only for texts that `citerec.index.analysis` does not cover."""

import math
from collections import Counter
from collections.abc import Mapping
from string import punctuation
from typing import Protocol

from citerec.config import Bm25Config, StopWords
from citerec.index.analysis import analyze
from citerec.index.lucene_analysis import analyze_by_lucene
from citerec.index.lucene_postings import Statistics
from citerec.index.postings import NO_TERM
from citerec.text import WORD, QueryForm, query_text, without_stop_words
from citerec.types import Query


def searched_text(query: Query, config: Bm25Config) -> str:
    """Return the text of a query that BM25 reads."""
    # An unpaired surrogate (a byte from the shell that is not UTF-8) is not allowed in a Java string.
    utf16 = query_text(query, config.form).encode("utf-16", "surrogatepass")
    text = utf16.decode("utf-16", "replace")
    return without_stop_words(text) if config.stop_words is StopWords.LONG else text


class Terms(Protocol):
    """The terms of a collection; `Postings` holds those of an index."""

    @property
    def statistics(self) -> Statistics:
        """What is counted in the collection."""
        ...

    def number(self, term: str) -> int:
        """Return the number of a term, `NO_TERM` if no document has it."""
        ...

    def df(self, number: int) -> int:
        """Return how many documents have a term."""
        ...


def terms_of(query: Query, config: Bm25Config) -> list[str]:
    """Return the index terms of a query, whether a paper has them or not."""
    return _analyzed(searched_text(query, config))


def counted_terms(query: Query, config: Bm25Config, postings: Terms) -> dict[str, int]:
    """Return the index terms of a query that papers have, and how often the query has each.

    Args:
        query: The query.
        config: Which terms are searched.
        postings: The terms of the papers.
    """
    counts = Counter(terms_of(query, config))
    numbers = {term: postings.number(term) for term in counts}
    known = {term: count for term, count in counts.items() if numbers[term] != NO_TERM}
    if config.form is not QueryForm.KEY_TERMS:
        return known
    df = {term: postings.df(numbers[term]) for term in known}
    chosen = key_terms(known, df, postings.statistics.documents, config.key_terms)
    return {term: counts[term] for term in chosen}


def key_terms(
    counts: Mapping[str, int], df: Mapping[str, int], papers: int, most: int
) -> list[str]:
    """Return the terms of highest tf * idf, where idf is ln(papers / (1 + papers with the term)).

    Terms that no paper has are left out: they would take the place of useful ones.

    Args:
        counts: How often the query has each term.
        df: How many papers have each.
        papers: The number of papers.
        most: The maximal number of terms.
    """
    weight = {t: counts[t] * math.log(papers / (1 + df[t])) for t in counts if df[t]}
    return sorted(weight, key=lambda term: (-weight[term], term))[:most]


def surface_forms(query: Query, config: Bm25Config) -> dict[str, str]:
    """Return for each index term of a query the first word that it comes from."""
    forms: dict[str, str] = {}
    text = searched_text(query, config)
    # 3.14 is two words, but one term
    tokens = (token.strip(punctuation) for token in text.split())
    for word in dict.fromkeys([*WORD.findall(text), *tokens]):
        for term in _analyzed(word):
            forms.setdefault(term, word.lower() if word[1:].islower() else word)
    return forms


def _analyzed(text: str) -> list[str]:
    terms = analyze(text)
    return analyze_by_lucene(text) if terms is None else terms
