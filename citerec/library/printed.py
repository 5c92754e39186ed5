"""Resolves the marks of a printed text: numbers in brackets or parentheses or above the line, names with years."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from citerec.bibliography.entry import Entry
from citerec.library.lookup import letters_of
from citerec.library.texts import CitingSentence, citing_sentences, mark

_NUMBERS = r"(?P<numbers>\d{1,3}(?:\s?[,;–—-]\s?\d{1,3}){0,40})"
_BRACKETS = re.compile(rf"\[\s?{_NUMBERS}\s?\](?P<stop>)")
_PARENTHESES = re.compile(rf"\(\s?{_NUMBERS}\s?\)(?P<stop>)")
_RAISED = (
    re.compile(  # numbers above the line, which a PDF sets after a word: hygiene.7,8
        r"(?<=[^\W\d_A-Z]{3}|[^\W\d_A-Z]{2}[)\]”’\"])(?P<stop>[.,;:]?)"
        r"(?P<numbers>[1-9]\d{0,2}(?:[,–-][1-9]\d{0,2}){0,20})(?=[\s.,;:)]|$)"
    )
)
_LABEL = re.compile(r"\W{0,2}(\d{1,3})(?!\d)")
_YEAR = r"(?:1[89]|20)\d\d[a-z]?(?![\da-z])"
_NAME = r"[^\W\d_a-z][\w'’-]+"
# Lovelace et al., 2010; Hopper and Allen (1952, 1953a)
_DATED = re.compile(
    rf"(?P<names>{_NAME}[^;()\d]{{0,60}}?)(?P<between>,?\s[(\[]?)(?P<years>{_YEAR}(?:(?:,\s?|\sand\s){_YEAR})*)"
)
_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")
_FIRST = 3  # words of a reference, of which one is the family name of its first author


def printed_sentences(
    paragraphs: Sequence[str], references: Sequence[Entry]
) -> list[CitingSentence]:
    """Return the sentences that cite, by the one style of marks that names the most references of the text."""
    numbered = _numbered(references)
    styles = (
        (_BRACKETS, numbered),
        (_PARENTHESES, numbered),
        (_RAISED, numbered),
        (_DATED, _dated(references)),
    )
    found = [
        [*citing_sentences(pattern.sub(resolve, text) for text in paragraphs)]
        for pattern, resolve in styles
    ]
    return max(found, key=lambda style: len({p for s in style for p in s.cites}))


def _numbered(references: Sequence[Entry]) -> Callable[[re.Match[str]], str]:
    """Return what replaces a mark by the printed numbers of references; by their order if most have none."""
    labels = [_LABEL.match(reference.text) for reference in references]
    places = {
        label[1]: place for place, label in reversed([*enumerate(labels)]) if label
    }
    if len(places) <= len(references) / 2:
        places = {f"{place + 1}": place for place in range(len(references))}

    def resolve(match: re.Match[str]) -> str:
        if not places.keys() >= {*re.findall(r"\d+", match["numbers"])}:
            return match[0]  # a year, an interval, a quantity
        named = re.sub(r"\d+", lambda n: mark([places[n[0]]]), match["numbers"])
        return named + match["stop"]

    return resolve


def _dated(references: Sequence[Entry]) -> Callable[[re.Match[str]], str]:
    """Return what replaces a name with years: by a name at the start of a reference, and a year that it states."""
    places: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for place, reference in enumerate(references):
        years = re.findall(_YEAR, reference.text)
        for name in _WORD.findall(reference.text)[:_FIRST]:
            for year in (*years, *(year[:4] for year in years)):
                places[letters_of(name), year].add(place)

    def resolve(match: re.Match[str]) -> str:
        years = re.findall(_YEAR, match["years"])
        for name in re.finditer(_NAME, match["names"]):
            found = [places.get((letters_of(name[0]), year), set()) for year in years]
            # several of one author and year: it is not clear which
            named = [place for rows in found if len(rows) == 1 for place in rows]
            if named and "(" in match["between"]:
                return f"{match['names']}{match['between']}{mark(named)}"
            if named:
                return match["names"][: name.start()] + mark(named)
        return match[0]

    return resolve
