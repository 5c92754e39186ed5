"""Resolves the marks of a printed text: numbers in brackets or parentheses, names with years."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from citerec.bibliography.keys import title_key
from citerec.library.texts import Marks, Reference, Sentence

_NUMBERS = r"\d{1,3}(?:\s?[,;–—-]\s?\d{1,3}){0,40}"
_BRACKETS = re.compile(rf"\[\s?(?P<numbers>{_NUMBERS})\s?\]")
_PARENTHESES = re.compile(rf"\(\s?(?P<numbers>{_NUMBERS})\s?\)")
_RAISED = (
    re.compile(  # numbers above the line, which a PDF sets after a word: hygiene.7,8
        r"(?<=[^\W\d_A-Z]{3})(?P<closing>[)\]”’\"]?)(?P<stop>[.,;:]?)"
        r"(?P<numbers>[1-9]\d{0,2}(?:[,–-][1-9]\d{0,2}){0,20})(?=[\s.,;:)]|$)"
    )
)
_NUMBER = re.compile(r"(\d+)\s?([–—-]?)")
_LABEL = re.compile(r"\W{0,2}(\d{1,3})(?!\d)")
_YEAR = r"(?:1[89]|20)\d\d[a-z]?(?![\da-z])"
_YEARS = re.compile(_YEAR)
_NAME = r"[^\W\d_a-z][\w'’-]+"
_NAMES = rf"(?:{_NAME}(?:\s(?:and|&)\s{_NAME}|,?\set\sal\.?)?)"
_INSIDE = (
    re.compile(  # parentheses: Lovelace et al., 2010; Hopper and Allen, 1952, 1953a
        rf"({_NAME})[^;()\d]{{0,60}}?,?\s((?:{_YEAR}(?:,\s?|\sand\s)?)+)"
    )
)
_DATED = re.compile(
    rf"\((?P<inside>[^()]{{0,400}}\b{_YEAR}[^()]{{0,200}})\)|(?P<names>{_NAMES})\s[(\[](?P<years>{_YEAR}(?:,\s?{_YEAR})*)[)\]]"
)
_MOST_IN_RANGE = 40  # references
_FIRST = 3  # words of a reference, of which one is the family name of its first author

# returns a mark with a token for what it names, or as it is
Resolve = Callable[[re.Match[str]], str]


def numbers_of(references: Sequence[Reference]) -> dict[int, int]:
    """Return the places of references by their printed numbers; by their order if most have none."""
    labels = [_LABEL.match(reference.text) for reference in references]
    printed = {
        int(label[1]): place for place, label in reversed([*enumerate(labels)]) if label
    }
    if len(printed) > len(references) / 2:
        return printed
    return {place + 1: place for place in range(len(references))}


def cited_numbers(text: str) -> list[int]:
    """Return the numbers of a mark such as `3, 5-7`."""
    numbers: list[int] = []
    begin = 0
    for match in _NUMBER.finditer(text):
        number = int(match[1])
        if begin and 0 < number - begin <= _MOST_IN_RANGE:
            numbers += range(begin + 1, number)
        numbers.append(number)
        begin = number if match[2] else 0
    return numbers


def printed_sentences(
    paragraphs: Sequence[str], references: Sequence[Reference]
) -> list[Sentence]:
    """Return the sentences that cite, by the one style of marks that names the most references of the text."""
    numbers = numbers_of(references)
    by_name = _by_name(references)
    styles: list[list[Sentence]] = []
    for pattern, resolve in (
        (_BRACKETS, _numeric(numbers)),
        (_PARENTHESES, _numeric(numbers)),
        (_RAISED, _numeric(numbers)),
        (_DATED, _dated(by_name)),
    ):
        marks = Marks()
        found = [
            sentence
            for paragraph in paragraphs
            for sentence in marks.sentences(
                pattern.sub(lambda match: resolve(match, marks), paragraph)  # noqa: B023
            )
        ]
        styles.append(found)
    return max(styles, key=lambda found: len({row for s in found for row in s.cites}))


def _numeric(numbers: Mapping[int, int]) -> Callable[[re.Match[str], Marks], str]:
    def resolve(match: re.Match[str], marks: Marks) -> str:
        named = cited_numbers(match["numbers"])
        if not all(number in numbers for number in named):
            return match[0]  # a year, an interval, a quantity
        around = match.groupdict(default="")
        token = marks.token(numbers[number] for number in named)
        return f"{around.get('closing', '')}{token}{around.get('stop', '')}"

    return resolve


def _dated(
    by_name: Mapping[tuple[str, str], Sequence[int]],
) -> Callable[[re.Match[str], Marks], str]:
    def places(name: str, years: str) -> list[int]:
        family = title_key(name).replace(" ", "")
        found = (by_name.get((family, year), ()) for year in _YEARS.findall(years))
        # several of one author and year: it is not clear which
        return [rows[0] for rows in found if len(rows) == 1]

    def resolve(match: re.Match[str], marks: Marks) -> str:
        if match["names"]:
            name = match["names"].split()[0].rstrip(",")
            named = places(name, match["years"])
            return f"{match['names']} {marks.token(named)}" if named else match[0]
        named = [
            place
            for cited in _INSIDE.finditer(match["inside"])
            for place in places(cited[1], cited[2])
        ]
        return marks.token(named) if named else match[0]

    return resolve


def _by_name(references: Sequence[Reference]) -> dict[tuple[str, str], list[int]]:
    """Return the places of references by a name at their start and a year, with its letter if it has one."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, reference in enumerate(references):
        start = _LABEL.sub("", reference.text).lstrip("[]().:, ")
        words = re.findall(r"[\w'’-]{3,}", start)[:_FIRST]
        years = Counter(_YEARS.findall(reference.text))
        for name in dict.fromkeys(title_key(w).replace(" ", "") for w in words):
            for year in {*years, *(year[:4] for year in years)}:
                places[name, year].append(place)
    return places
