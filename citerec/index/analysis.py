"""Splits texts into index terms as Lucene's English analysis does: in Python, and by Lucene for rare characters.

Python covers texts of the characters in `_KNOWN`: ASCII, Latin-1 and Greek letters, common punctuation. The slow tests
compare it with Lucene on every title and abstract of five corpora. Starting Java for each query would take longer than
the search.

Source: DefaultEnglishAnalyzer of Anserini: StandardTokenizer (Unicode Annex 29), possessives, lower case, stop words,
PorterStemFilter: Porter 1980, An algorithm for suffix stripping, with the changes of its author's own program
(https://tartarus.org/martin/PorterStemmer/): "bli" and "logi" are suffixes of step 2.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise
from threading import RLock
from typing import Any

from citerec.java import java_class

STOP_WORDS = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    """.split()
)
MAX_TOKEN = 255  # characters; Lucene splits longer ones

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
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
)  # fmt: skip
_SHORTEST = 3  # characters; shorter words stay as they are
_calls = RLock()  # pyjnius stores the object of a call in the method, which all threads share


def analyze(text: str) -> list[str]:
    """Return the index terms of a text, in their order; Java is started for rare characters alone."""
    terms = analyze_in_python(text)
    return analyze_by_lucene(text) if terms is None else terms


def analyze_in_python(text: str) -> list[str] | None:
    """Return the index terms of a text; None if it is not covered."""
    if not _KNOWN.fullmatch(text):
        return None
    tokens = _TOKEN.findall(text)
    if any(len(token) > MAX_TOKEN for token in tokens):
        return None
    return [term for token in tokens if (term := _term(token))]


def analyze_by_lucene(text: str) -> list[str]:
    """Return the index terms of a text as Anserini's analyzer gives them."""
    utils = java_class("io.anserini.analysis.AnalyzerUtils")
    with _calls:
        # one text: a call for each term would take longer; no term has a space
        listed = utils.analyze(analyzer(), text).toString()[1:-1]
    return listed.split(", ") if listed else []


@cache
def analyzer() -> Any:
    """Return Anserini's English analyzer."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()


@lru_cache(200_000)  # words recur: stemming takes ten times as long as the look-up
def _term(token: str) -> str:
    """Return the index term of a token; empty for a stop word."""
    word = token[:-2] if token[-2:] in {"'s", "'S", "’s", "’S"} else token
    word = word.lower()
    return "" if word in STOP_WORDS else stem(word)


def stem(word: str) -> str:
    """Return the stem of a word in lower case; any character but a, e, i, o, u and y counts as a consonant."""
    if len(word) < _SHORTEST:
        return word
    word = _step_1c(_step_1b(_step_1a(word)))
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    return _step_5(_step_4(word))


def _step_1a(word: str) -> str:
    """Remove plurals."""
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step_1b(word: str) -> str:
    """Remove -eed, -ed and -ing."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((s for s in ("ed", "ing") if word.endswith(s)), "")
    if not suffix or not _has_vowel(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double(word):
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_cvc(word) else word


def _step_1c(word: str) -> str:
    """Turn a final y into i if there is another vowel."""
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _replaced(word: str, suffixes: dict[str, str]) -> str:
    """Replace the longest of some suffixes, if its stem has a measure above 0."""
    for length in range(min(7, len(word) - 1), 2, -1):
        if (suffix := word[-length:]) in suffixes:
            stem_of = word[:-length]
            return stem_of + suffixes[suffix] if _measure(stem_of) > 0 else word
    return word


def _step_4(word: str) -> str:
    """Remove -ant, -ence and others, if the stem has a measure above 1."""
    suffix = next((s for s in _STEP_4 if word.endswith(s)), "")
    if not suffix:
        return word
    stem_of = word[: -len(suffix)]
    if suffix == "ion" and not stem_of.endswith(("s", "t")):
        return word
    return stem_of if _measure(stem_of) > 1 else word


def _step_5(word: str) -> str:
    """Remove a final e, and one l of a final ll, if the stem is long."""
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _vowels(word: str) -> list[bool]:
    """Return which letters are vowels; y is one after a consonant."""
    vowels: list[bool] = []
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and bool(vowels) and not vowels[-1])
        vowels.append(is_vowel)
    return vowels


def _has_vowel(word: str) -> bool:
    return any(_vowels(word))


def _measure(word: str) -> int:
    """Return how often a consonant follows a vowel."""
    vowels = _vowels(word)
    return sum(a and not b for a, b in pairwise(vowels))


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and not _vowels(word)[-1]


def _ends_cvc(word: str) -> bool:
    """Whether a word ends in consonant, vowel, consonant, and the last is not w, x or y."""
    return len(word) > 2 and _vowels(word)[-3:] == [False, True, False] and word[-1] not in "wxy"
