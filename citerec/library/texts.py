"""What a whole text says of its paper: title and abstract, its references, and the sentences that cite them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from citerec.display import one_line
from citerec.text import sentences, word_count

_LEAST_WORDS = 5  # of a sentence
_MOST_LETTERS = 1_500  # of a sentence; a longer one is a table
PLACE = "[CITE]"
# a mark that a reader has found: its number among the marks of a text
_OPEN = "\ue000"
_CLOSE = "\ue001"
_ONE = rf"{_OPEN}\d+{_CLOSE}"
_GROUP = re.compile(  # marks that stand together, with the brackets around them
    rf"(?P<open>[(\[]\s*)?(?P<marks>{_ONE}(?:[\s,;–—-]*(?:and\s*)?{_ONE})*)(?(open)\s*[)\]])"
)
_RANGE = re.compile(rf"{_OPEN}(\d+){_CLOSE}(?:\s*([–—-]+)\s*(?={_OPEN}))?")
_AFTER_STOP = re.compile(r"([.!?])\s?(\[CITE\])(?=\s|$)(?!\s+[a-z])")
_MOST_IN_RANGE = 40  # references


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference of a text."""

    text: str  # as it is printed, or what its fields say
    ids: tuple[str, ...] = ()  # that its source states: DOIs, `pmid:1`
    title: str = ""  # where the source tells it from the rest
    year: int | None = None
    authors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that cites."""

    text: str  # with `[CITE]` at each group of marks
    cites: tuple[int, ...]  # places in the list of references, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FullText:
    """What a reader finds in a whole text of a paper; what it does not find is empty."""

    title: str = ""
    abstract: str = ""
    year: int | None = None
    authors: tuple[str, ...] = ()
    venue: str = ""
    ids: tuple[str, ...] = ()  # of the paper: DOIs first
    start: str = ""  # of a PDF: its first page, which may name the paper
    references: tuple[Reference, ...] = ()
    sentences: tuple[Sentence, ...] = ()


class Marks:
    """The marks of one text: each stands in it as a token until the sentences are divided."""

    def __init__(self) -> None:
        self._cites: list[tuple[int, ...]] = []

    def token(self, cites: Iterable[int]) -> str:
        """Return what stands for a mark that names some references, by their places."""
        self._cites.append(tuple(cites))
        return f"{_OPEN}{len(self._cites) - 1}{_CLOSE}"

    def sentences(self, paragraph: str) -> list[Sentence]:
        """Return the sentences of a paragraph with tokens whose marks name references."""
        groups: list[tuple[int, ...]] = []

        def place(match: re.Match[str]) -> str:
            groups.append(tuple(dict.fromkeys(self._named(match["marks"]))))
            return f" {PLACE}"

        text = one_line(_GROUP.sub(place, paragraph.replace(PLACE, " ")))
        text = _AFTER_STOP.sub(r" \2\1 ", text)
        found: list[Sentence] = []
        first = 0
        for sentence in sentences(text):
            last = first + sentence.count(PLACE)
            cites = dict.fromkeys(row for group in groups[first:last] for row in group)
            first = last
            is_sentence = word_count(sentence) >= _LEAST_WORDS
            if cites and is_sentence and len(sentence) <= _MOST_LETTERS:
                found.append(Sentence(sentence, tuple(cites)))
        return found

    def _named(self, marks: str) -> Iterable[int]:
        """Yield the references of marks that stand together; of a range also those between its ends."""
        begin: Sequence[int] = ()
        for mark in _RANGE.finditer(marks):
            cites = self._cites[int(mark[1])]
            if begin and cites and 0 < cites[0] - begin[-1] <= _MOST_IN_RANGE:
                yield from range(begin[-1] + 1, cites[0])
            yield from cites
            begin = cites if mark[2] else ()
