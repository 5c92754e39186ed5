"""Porter's stemmer, as Lucene's PorterStemFilter has it.

Source: Porter 1980, An algorithm for suffix stripping, with the changes of its author's own program
(https://tartarus.org/martin/PorterStemmer/): "bli" and "logi" are suffixes of step 2.
"""

from itertools import pairwise

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
