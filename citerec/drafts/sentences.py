"""Finds the sentences of a draft: those of its body, and those that make a claim without a reference."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter

from citerec.corpus.headings import Part, part_at, part_of, without_label
from citerec.display import one_line
from citerec.drafts.cited import CAPTION, joined, reference_lists
from citerec.drafts.context import WORD, has_marker, without_markers
from citerec.text import sentences, word_count
from citerec.types import MAX_TITLE, Query

LEAST_WORDS = 5  # of a sentence
_REPEATED = 3  # lines that occur as often are running heads
_HEADING = re.compile(
    r"#+\s+(?P<text>.+)|(?:\d{1,2}(?:\.\d{1,2}){0,3}|[IVX]{1,5})\.?\s+[A-Z][^.!?]{2,70}"
)
_STATED = re.compile(r"[.!。！]\W*$")  # no question, no cell of a table, no label
# what is said of one's own work, in English, German and French
_OWN = re.compile(
    r"(?:\W*\w+,?\s+){0,4}?(?:[Ww]e(?! know)|[Oo]ur|[Ww]ir|[Uu]nsere?|[Nn]ous|[Nn]otre)\b|(?:I|My)\s"
    r"|.*\b(?:[Tt]his|[Tt]he present) (?:paper|study|article|work|thesis|chapter|section|review)\b"
)
AFTER_STOP = re.compile(
    r"([.!?。！？][\"'”“’»«]*)\s?((?:\[[^\[\]]{0,50}(?:[@\d]|CITE)[^\[\]]{0,500}\](?:\s?(?=\[))?)++)"
    r"(?=\s|[^\x00-\x7f]|$)(?!\s+[a-z])"  # a textual citation, of whose sentence it is the subject
)
# of a note or reference, in a text that has lost what is above the line: century.12 The
_RAISED = re.compile(
    r"(?<=[a-zß-ÿ]{3}[.!?])([\"'”“’»«]*)\d{1,3}(?:[,–-]\d{1,3}){0,9}(?=\s+[\"“„‘(]?[A-ZÀ-Þ]|$)"
)
_STYLES = (  # of numbers that may cite
    # (1), (2, 3), (4–8), as in Science; before a number of an enumeration stands a mark or "and"
    re.compile(
        r"(?<![.,;:]\s)(?<!and\s)(?<!(?:able|gure)\s)(?<!(?:ig|Eq)\.\s)(?<!quation\s)\((\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,40})\)"
    ),
    # above the line, in a text that has lost that: trees16–19.
    re.compile(r"(?<=[^\W\d_A-Z]{3})(\d{1,3}(?:[,–-]\d{1,3}){0,40})(?=[\s.,;:)]|$)"),
)


def uncited(draft: Query, lines: Sequence[str]) -> Iterator[Query]:
    """Yield a query for each sentence of a draft without a citation marker; its id is the number of the sentence.

    Headings, the abstract of a longer text, captions, questions, sentences of fewer than `LEAST_WORDS` words, what is
    about the authors or their own work, and what follows the heading of the references are left out. In `lines`, an
    empty line ends a paragraph, and a heading has a line of its own.
    """
    found = _body(lines)
    parts = {part_of(heading) for heading, text in found if text}
    left_out = _NOT_BODY if parts - _NOT_BODY else {Part.AUTHORS}
    number = 0
    for heading, paragraph in found:
        for text in paragraph:
            number += 1
            is_claim = _STATED.search(text) and word_count(text) >= LEAST_WORDS
            is_prose = part_of(heading) not in left_out and not CAPTION.match(text)
            if (
                is_claim
                and WORD.search(text)  # no formula alone
                and is_prose
                and not _OWN.match(text)
                and not has_marker(text)
                and len(text) <= MAX_TITLE
            ):
                yield replace(
                    draft,
                    id=f"{number}",
                    named=False,
                    context=text,
                    section=heading,
                    body=(),
                )


_NOT_BODY = frozenset({Part.ABSTRACT, Part.AUTHORS, Part.KEYWORDS})


def body_of(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences of a draft from its introduction on, without citation markers; `lines` as in `uncited`.

    Without an introduction, all but the abstract; what is below its heading, if that is all there is. Captions and
    sentences of few words are left out.
    """
    found = list[str]()
    abstract = list[str]()
    for heading, paragraph in _body(lines):
        part = part_of(heading)
        if part in {Part.AUTHORS, Part.KEYWORDS}:
            continue
        for text in paragraph:
            plain = without_markers(text)
            is_prose = word_count(plain) >= LEAST_WORDS and not CAPTION.match(text)
            if is_prose and len(text) <= MAX_TITLE:
                (abstract if part is Part.ABSTRACT else found).append(plain)
    return tuple(dict.fromkeys(found or abstract))


def _body(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return headings and paragraphs; what is before the introduction, as names and addresses, is about the authors."""
    found = [*_paragraphs(_with_markers(_before_references(lines)))]
    starts = (
        n for n, (name, _) in enumerate(found) if part_of(name) is Part.INTRODUCTION
    )
    # a plan of chapters has no text
    begun = (n for n in starts if any(text for _, text in found[n : n + 4]))
    start = next(begun, 0)
    return [(Part.AUTHORS, text) for _, text in found[:start]] + found[start:]


def paragraphs(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of each paragraph up to the references, with the heading before it."""
    return filter(itemgetter(1), _paragraphs(_before_references(lines)))


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading without sentences, then those of its paragraphs; an abstract may have a label alone."""
    times = Counter(lines)
    heading = ""
    kept = list[str]()
    for line in (*lines, ""):
        title = _HEADING.fullmatch(line)
        if not line or title or part_at(line):
            if kept:
                labelled = one_line(joined(kept))
                paragraph = without_label(labelled)
                part = heading if paragraph == labelled else Part.ABSTRACT
                paragraph = _RAISED.sub(r"\1 [CITE]", paragraph)
                yield part, sentences(AFTER_STOP.sub(r" \2\1 ", paragraph))
            text = title["text"] if title else ""
            heading = text or line or heading
            kept = []
            yield heading, []
        elif times[line] < _REPEATED:
            kept.append(line)


def _before_references(lines: Sequence[str]) -> list[str]:
    """Return the lines before the last heading "References", without the lists of earlier ones."""
    lines = [line.strip() for line in lines]
    parts = [part_at(line.lstrip("# ")) or line.startswith("#") for line in lines]
    ends = [n for n, part in enumerate(parts) if part is Part.REFERENCES]
    listed = set(chain.from_iterable(reference_lists(lines, parts)))
    last = ends[-1] if ends else len(lines)
    return [line for n, line in enumerate(lines[:last]) if n not in listed]


def _with_markers(lines: Sequence[str]) -> Sequence[str]:
    """Return lines with the numbers that cite in brackets."""
    style = number_style(lines)
    return [style.sub(r" [\1]", line) for line in lines] if style else lines


def number_style(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return the pattern of the numbers that cite in a text; None where markers are more, or no number cites."""
    most = max(2, sum(map(has_marker, lines)))
    chosen = None
    for style in _STYLES:
        numbers = {
            found[1]
            for line in lines
            for found in style.finditer(line)
            if line[found.end() :][:1] in {".", ",", ";"}
        }
        if len(numbers) > most:
            most, chosen = len(numbers), style
    return chosen
