"""What a whole text says of its paper: its record, its references, and the sentences that cite them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citerec.bibliography.entry import Entry
from citerec.display import one_line
from citerec.drafts.sentences import AFTER_STOP, LEAST_WORDS
from citerec.text import sentences, word_count

_MOST_LETTERS = 1_500  # of a sentence; a longer one is a table
_MOST_IN_RANGE = 40  # references
_MARK = r"\[CITE:[^\[\]]*\]"
_GROUP = re.compile(  # marks that stand together, with the brackets around them
    rf"(?P<open>[(\[]\s*)?{_MARK}(?:[\s,;–—-]*(?:and\s*)?{_MARK})*(?(open)\s*[)\]])"
)
_NUMBER = re.compile(r"(\d+)\]?\s?([–—-]?)")


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """A sentence that cites."""

    text: str  # with `[CITE]` at each group of marks
    cites: tuple[int, ...]  # places in the list of references, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FullText:
    """What a reader finds in a whole text of a paper; what it does not find is empty."""

    entry: Entry  # the paper
    start: str = ""  # of a PDF: its first page, which may name the paper
    references: tuple[Entry, ...]  # `text` has all that they state
    sentences: tuple[CitingSentence, ...]


def mark(places: Iterable[int]) -> str:
    """Return what stands in a text for a mark that names some references, by their places."""
    return f"[CITE:{' '.join(map(str, places))}]"


def citing_sentences(paragraphs: Iterable[str]) -> Iterator[CitingSentence]:
    """Yield the sentences of paragraphs whose marks name references."""
    for paragraph in paragraphs:
        text = _GROUP.sub(lambda group: f" {mark(_named(group[0]))}", paragraph)
        text = AFTER_STOP.sub(r" \2\1 ", one_line(text))
        for sentence in sentences(text):
            plain = re.sub(_MARK, "[CITE]", sentence)
            marks = " ".join(re.findall(_MARK, sentence))
            cites = tuple(_named(marks))
            is_sentence = word_count(plain) >= LEAST_WORDS
            if cites and is_sentence and len(plain) <= _MOST_LETTERS:
                yield CitingSentence(plain, cites)


def _named(marks: str) -> list[int]:
    """Return the places that marks name, each once; of a range also those between its ends."""
    places: list[int] = []
    first = None  # of a range
    for number in _NUMBER.finditer(marks):
        place = int(number[1])
        if first is not None and place - first <= _MOST_IN_RANGE:
            places += range(first, place)
        places.append(place)
        first = place if number[2] else None
    return list(dict.fromkeys(places))
