"""The text of papers: what a stage reads of a paper or a draft."""

import re
import unicodedata
from enum import StrEnum
from functools import cache
from typing import Literal

from citerec.types import Paper, Query

# Snowball's English list (https://snowballstem.org/algorithms/english/stop.txt), without contractions.
STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves what which
    who whom this that these those am is are was were be been being have has had having do
    does did doing would should could ought cannot a an the and but if or because as until
    while of at by for with about against between into through during before after above
    below to from up down in out on off over under again further then once here there when
    where why how all any both each few more most other some such no nor not only own same
    so than too very
    """.split()
)
MAX_MARKS = 30  # combining marks on a letter; no language uses more
# no combining mark is below U+0300
_MANY_MARKS = re.compile(f"[\u0300-\U0010ffff]{{{MAX_MARKS + 1}}}")
# "3.14" and "e.g" are one word, "C++" is none
WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*(?![+#])")
# letters of scripts that put no blank between words
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_END = re.compile(
    r"(?<=[.!?])[\"')\]”“’»«]*\s+(?=[\"'(\[“„‘»«]*[A-Z0-9])|(?<=[。！？])[\"'”’」』）)\]]*\s*(?=[^\s\"'”’」』）)\]])"
)
_SHORT = re.compile(  # abbreviations, whose full stop does not end a sentence
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|etc|resp|approx|figs?|eqs?|sec|refs?|dr|prof|mr)|\b[A-Z])\.$",
    re.IGNORECASE,
)
_LONGEST = 10  # more characters than `_SHORT` can match


class QueryForm(StrEnum):
    """The parts of a query that BM25 reads (the forms that the reranker paper compares)."""

    TITLE = "title"
    TITLE_ABSTRACT = "title+abstract"
    KEY_TERMS = "key-terms"


class EncoderForm(StrEnum):
    """The parts of a paper that an encoder reads (SPECTER's table 2 compares them)."""

    TITLE = "title"
    TITLE_ABSTRACT = "title+abstract"
    VENUE = "title+venue+abstract"
    AUTHORS = "title+authors+abstract"


def contents(paper: Paper | Query) -> str:
    """Return title and abstract: the indexed text, and the BM25 query of the form title + abstract."""
    return f"{paper.title}\n{paper.abstract}" if paper.abstract else paper.title


def pair_text(paper: Paper | Query) -> str:
    """Return the text that a cross-encoder reads of either side of a pair, before it is truncated.

    Of a query with a context, that is the sentence and the title: the abstract is about other places of the draft, too.
    """
    if isinstance(paper, Query) and paper.context:
        return f"{paper.context} {paper.title}"
    return f"{paper.title} {paper.abstract}".strip()


def encoder_text(paper: Paper | Query, form: EncoderForm, separator: str) -> str:
    """Return the text that an encoder reads of a paper or a draft, before it is truncated.

    SPECTER's is title + "[SEP]" + abstract, with the separator even without an abstract
    (https://huggingface.co/allenai/specter). Venue and authors precede the abstract, so that a long abstract does not
    push them out. The separator between the parts is the tokenizer's separator token, or a space.
    """
    between = {
        EncoderForm.VENUE: [paper.venue],
        EncoderForm.AUTHORS: [", ".join(paper.authors)],
    }.get(form, [])
    after = [] if form is EncoderForm.TITLE else [*between, paper.abstract]
    return separator.join([paper.title, *after]).strip()


def sentences(text: str) -> list[str]:
    """Split a text into sentences: at a full stop, question mark or exclamation mark before a capital or a digit.

    Those of Chinese and Japanese need none after them.

    "et al.", "e.g." and single letters do not end a sentence.
    """
    complete: list[str] = []
    first = 0
    for end in _END.finditer(text):
        # Only the last characters are searched: otherwise a text of abbreviations would take quadratic time.
        if not _SHORT.search(text, max(first, end.start() - _LONGEST), end.start()):
            complete.append(text[first : end.end()].strip())
            first = end.end()
    return [sentence for sentence in (*complete, text[first:].strip()) if sentence]


def normalized(form: Literal["NFC", "NFKD"], text: str) -> str:
    """Return `text` in a normal form of Unicode, with at most `MAX_MARKS` combining marks on one letter.

    Normalisation sorts the marks of a letter in quadratic time: 160 kB of them took 7 s.

    Source: Stream-Safe Text Format, Unicode Standard Annex 15, https://unicode.org/reports/tr15/#Stream_Safe_Text_Format.
    """
    return unicodedata.normalize(form, stream_safe(text))  # noqa: TID251 (here alone)


def word_count(text: str) -> int:
    """Return the number of words; of a script without blanks between words, two letters count as one."""
    rest, letters = _UNSPACED.subn(" ", text)
    return len(WORD.findall(rest)) + (letters + 1) // 2


def stream_safe(text: str) -> str:
    """Return `text` without the combining marks that follow `MAX_MARKS` others."""
    if not _MANY_MARKS.search(text):
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if _is_mark(char) else 0
        if marks <= MAX_MARKS:
            kept.append(char)
    return "".join(kept)


@cache
def _is_mark(char: str) -> bool:
    """Whether the decomposition of a character begins with a combining mark, which normalisation sorts."""
    return unicodedata.combining(unicodedata.normalize("NFKD", char)[0]) > 0  # noqa: TID251


def without_stop_words(text: str) -> str:
    """Drop function words and single characters; a text that has only these is returned unchanged."""

    def content(match: re.Match[str]) -> str:
        word = match[0]
        return "" if len(word) == 1 or word.lower() in STOP_WORDS else word

    kept = WORD.sub(content, text)
    return kept if WORD.search(kept) else text
