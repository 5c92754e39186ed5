"""The names of the parts of a draft, such as Abstract or References, in the languages of `headings.toml`."""

import re
from enum import StrEnum
from functools import cache
from pathlib import Path

from citerec.bibliography.keys import title_key
from citerec.files.reading import read_toml

_MOST = 80  # characters of a heading
_NUMBER = re.compile(  # of a chapter or section
    r"\W*(?:(?:chapter|section|part|appendix|kapitel|chapitre|cap[ií]tulo|capitolo|hoofdstuk|rozdział|kapitola|luku|bölüm"
    r"|глава|раздел|розділ|κεφάλαιο|fejezet|bab|chương|الفصل)\s+)?"
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}|[IVXLC]{1,6}|[A-Z](?=\s*[.:)])|one|two|three|[一二三四五六七八九十]{1,3})(?:\s*[.:)、．，—–-]+\s*|\s+)"
    r"|\W*[第제]\s*[\d一二三四五六七八九十]{1,4}\s*[章节節部編编篇장절]\s*",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]\W*$")  # References (APA)
_SEPARATOR = re.compile(r"\s*(?:[.:：。】\]—–]+|-+(?=\s|[A-Z]))\s*")
# before a sentence, none is needed: Abstract We show, AbstractWe show
_RUN_IN = re.compile(
    _SEPARATOR.pattern + r"|\s*(?=[A-ZÀ-Þ](?:[a-zß-ÿ]|\s[a-zß-ÿ]))|(?<=[^\x00-\x7f])\s"
)
_SENTENCE = 150  # characters; more are no title


class Part(StrEnum):
    """What a heading or a label begins."""

    ABSTRACT = "abstract"
    # an abstract before the introduction, else the end of a chapter
    SUMMARY = "summary"
    INTRODUCTION = "introduction"
    REFERENCES = "references"
    KEYWORDS = "keywords"
    AUTHORS = "authors"  # what is about the authors and their work
    SECTION = "section"  # any other
    FRONT = "front"  # a kind of document
    FIELD = "field"  # a label before a title or after an abstract
    TITLE = "title"  # its label or its style


SECTIONS = frozenset(Part) - {Part.FRONT, Part.FIELD, Part.TITLE}


def part_of(line: str) -> Part | None:
    """Return the part of which a line is the heading, numbered or not; None if it is no heading of a known name."""
    if len(line) > _MOST:
        return None
    names = _names()
    text = _REMARK.sub("", line)
    return names.get(_key(text)) or names.get(_key(_NUMBER.sub("", text, count=1)))


def part_at(line: str) -> Part | None:
    """Return the part of which a line of a text is the heading; it is no end of a sentence, such as `results.`."""
    return None if line[:1].islower() or line.endswith(".") else part_of(line)


def label_of(text: str) -> tuple[Part, int] | None:
    """Return the part that a label before a text names, as in `Abstract: We`, and where the text begins."""
    separator = _SEPARATOR if len(text) < _SENTENCE else _RUN_IN
    for end in separator.finditer(text[:_MOST]):
        if part := part_of(text[: end.start()]):
            return part, end.end()
    return None


def without_label(text: str) -> str:
    """Return an abstract without its label."""
    label = label_of(text)
    return (
        text[label[1] :]
        if label and label[0] in {Part.ABSTRACT, Part.SUMMARY}
        else text
    )


def _key(text: str) -> str:
    return title_key(text).replace(" ", "")


@cache
def _names() -> dict[str, Part]:
    """Return the part of each name; the first of a name that several have."""
    table = read_toml(Path(__file__).with_name("headings.toml"))
    names = [
        (_key(n), part)
        for part in Part
        for words in table[part].values()
        for n in words
    ]
    return dict(reversed(names))
