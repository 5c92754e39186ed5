"""Splits a text into index terms as Lucene's English analysis does, without Java.

It covers texts of the characters in `_KNOWN`: ASCII, Latin-1 and Greek letters, common punctuation. The slow tests
compare it with Lucene on every title and abstract of five corpora. Other texts need Lucene itself.

Source: DefaultEnglishAnalyzer of Anserini: StandardTokenizer (Unicode Annex 29), possessives, lower case, stop words,
PorterStemFilter.
"""

import re

from citerec.index.porter import stem

STOP_WORDS = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    """.split()
)
MAX_TOKEN = 255  # characters; Lucene splits longer ones
KEPT = 200_000  # words whose terms are kept in memory

# capital sigma has two lower forms
_LETTER = "A-Za-zªµºÀ-ÖØ-öø-ÿα-ωΓΔΘΛΞΠΦΨΩ"
_JOINS_LETTERS, _JOINS_DIGITS = r"[.:'‘’·]", r"[.,;'‘’]"
_PART = (
    rf"(?:[0-9](?:(?:_*|{_JOINS_DIGITS})[0-9])*|[{_LETTER}](?:(?:_*|{_JOINS_LETTERS})[{_LETTER}])*)"
)
# A run of underscores is tried at its beginning alone: at each of them, a long one would take quadratic time.
_TOKEN = re.compile(rf"(?<!_)_*{_PART}+(?:_+{_PART}+)*_*")
_KNOWN = re.compile(
    rf"[\x00-\x7f{_LETTER}\xa0-\xa8\xab\xac\xaf-\xb4\xb6-\xb9\xbb-\xbf×÷‐–—‘’“”•…′→−√∈∼≈≤≥]*"
)
_terms: dict[str, str] = {}


def analyze(text: str) -> list[str] | None:
    """Return the index terms of a text, in their order; None if it is not covered."""
    if not _KNOWN.fullmatch(text):
        return None
    terms: list[str] = []
    for token in _TOKEN.findall(text):
        term = _terms.get(token)
        if term is None:
            if len(token) > MAX_TOKEN:
                return None
            if len(_terms) >= KEPT:
                _terms.clear()
            term = _terms[token] = _term(token)
        if term:
            terms.append(term)
    return terms


def _term(token: str) -> str:
    """Return the index term of a token; empty for a stop word."""
    word = token[:-2] if token[-2:] in {"'s", "'S", "’s", "’S"} else token
    word = word.lower()
    return "" if word in STOP_WORDS else stem(word)
