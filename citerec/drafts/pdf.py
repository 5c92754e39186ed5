"""Reads a draft from a PDF, by pypdfium2.

pdfium divides a page into lines, in the order in which the file draws them; in nearly all files that is the order of
columns and paragraphs. Size and place of the lines tell the title, the end of the abstract and each reference.
"""

import re
from collections import Counter
from collections.abc import Sequence
from ctypes import c_double, create_string_buffer
from itertools import dropwhile, pairwise
from math import hypot, inf
from statistics import mode
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

from citerec.bibliography.entry import Entry, PaperList
from citerec.corpus.headings import SECTIONS, Part, label_of, part_at, part_of
from citerec.drafts import TITLE_PAGE, Document, continues_title
from citerec.drafts.cited import (
    each_once,
    joined,
    marked,
    reference_lists,
    references_at,
)
from citerec.errors import BadInputError, extra
from citerec.files.isolated import MAX_SECONDS
from citerec.text import normalized

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

PAGES = 4  # from the first; the abstract is on one of them
_FRONT = 20  # pages of a thesis that may be before its abstract
MAX_CHARACTERS = 40_000
_LETTERS = re.compile(r"[^\W\d_]")


def read(data: bytes, name: str) -> Document:
    """Read a PDF draft: the title by the largest font of page one, the abstract by its heading.

    BadInputError if it is encrypted, damaged or has no text; MissingExtraError if pypdfium2 is not installed.
    """
    lines = without_heads(read_lines(data, name))
    # without a table of contents and its heading
    rows = pairwise([*lines, *lines[-1:]])
    lines = [a for a, b in rows if not _LEADER.search(f"{a.text}\n{b.text}")]
    headings = _headings(lines)
    texts = [line.text for line in lines]
    heads = [n for n in headings if part_at(texts[n]) is Part.ABSTRACT]
    page = lines[min(heads)].page if heads else 0
    pages = max(PAGES, page + 2 if page < _FRONT else 0)
    first = [line for line in lines if line.page < pages]
    starts = (
        n
        for n, text in enumerate(texts)
        if _abstract_label(text) or part_at(text) is Part.INTRODUCTION
    )
    start = next(starts, 0)
    text = texts[start:]  # without title and authors
    body = joined([line for line in text if part_at(line) is not Part.INTRODUCTION])
    return Document(
        draft=Entry(title=title_of(first), abstract=abstract_of(first)),
        body=body[:MAX_CHARACTERS],
        cited=references_of(lines),
        lines=[
            f"# {line}" if number in headings else line
            for number, line in enumerate(text, start)
        ],
    )


def read_lines(data: bytes, name: str) -> "list[Line]":
    """Return the lines of a PDF, running heads and page numbers among them.

    BadInputError if it is encrypted, damaged or has no text; MissingExtraError if pypdfium2 is not installed.
    """
    with extra("drafts"):
        import pypdfium2
    lines: list[Line] = []
    fault = "has no text: it is a scan or a picture; run OCR first (ocrmypdf in.pdf out.pdf)"
    try:
        lines = _lines(pypdfium2.PdfDocument(data))
    except pypdfium2.PdfiumError as error:
        fault = f"is damaged ({error})"
        if error.err_code in (
            pypdfium2.raw.FPDF_ERR_PASSWORD,
            pypdfium2.raw.FPDF_ERR_SECURITY,
        ):
            fault = "is encrypted; save it without a password"
    start = "".join(line.text for line in lines[:1_000])
    if _is_garbled(start):
        fault = (
            "has fonts that do not say which letters they draw; give its source (LaTeX, Word), "
            "or run OCR (ocrmypdf --force-ocr in.pdf out.pdf)"
        )
        start = ""
    if len(_LETTERS.findall(start)) < 20:
        raise BadInputError(
            name,
            f"this is a PDF; citerec reads the text of a PDF, but this one {fault}; "
            "else pass title and abstract alone, or its text: pdftotext paper.pdf - | citerec recommend --query -",
        )
    return lines


_NO_LETTER = re.compile(r"[^\S ]|[\x00-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd]|\(cid:\d+\)")
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)


def _is_garbled(text: str) -> bool:
    """Whether a text is codes of a font: control and private characters, or Latin letters with hardly a vowel."""
    text = normalized("NFKD", text)
    codes = sum(len(match[0]) for match in _NO_LETTER.finditer(text))
    latin = len(_LATIN.findall(text))
    is_latin = latin > max(500, len(_LETTERS.findall(text)) / 2)
    few_vowels = is_latin and len(_VOWEL.findall(text)) < 0.2 * latin
    return codes > len(text) / 5 or few_vowels


def without_heads(lines: "Sequence[Line]") -> "list[Line]":
    """Return lines without running heads and page numbers: what repeats at the top or the bottom of pages.

    A title in larger letters is none, also on a page before the first one.
    """
    size = _text_size(lines)
    heads = Counter((line.head, round(line.size)) for line in lines if line.head)
    return [
        line
        for line in lines
        if heads[line.head, round(line.size)] < (3 if line.size > 1.1 * size else 2)
    ]


# --- the lines of the pages

_CHARACTERS = str.maketrans(
    {
        "ﬀ": "ff",
        "ﬁ": "fi",
        "ﬂ": "fl",
        "ﬃ": "ffi",
        "ﬄ": "ffl",
        "ﬅ": "st",
        "ﬆ": "st",
        "\ufffe": "-",
    }
)
# U+FFFE is a hyphen that ends a line
_LINE = re.compile(r"[^\s\ufffe][^\r\n\ufffe]*\ufffe?")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # two characters for pdfium
# where a word begins tells the size of a line: past a drop cap, before small capitals and superscripts
_SAMPLE = re.compile(r"[^\W\d_]+|\S|$")
_NUMBER = re.compile(r"^\d{1,4}(?:\s+|$)")  # of a line of a manuscript
_FIFTH = re.compile(r"^\d{0,3}[05]\s+(?=\D)")  # of every fifth line
_BOLD = re.compile(rb"(?i)bold|medi$|bx\d")
_NOISE = re.compile(r"a1{9,}|arXiv:\d{4}\.\d+.*")  # the button of PLOS; a stamp


class Line(NamedTuple):
    """A line of a page; sizes and places in points."""

    text: str
    page: int
    left: float
    y: float  # of the base line, from the bottom of the page
    size: float  # of the font
    is_bold: bool
    head: str  # its letters and "#", if it is at the top or the bottom of the page; else empty


def _lines(document: "PdfDocument") -> list[Line]:
    """Return the lines of all pages, without numbers of lines and rotated text."""
    from pypdfium2 import raw

    matrix = raw.FS_MATRIX()
    x = c_double()
    y = c_double()
    font = create_string_buffer(100)  # its name
    lines: list[Line] = []
    end = process_time() + MAX_SECONDS / 2
    for number, page in enumerate(document):
        if number >= PAGES and process_time() > end:
            break
        content = page.get_textpage()
        for match in _LINE.finditer(
            _ASTRAL.sub("\\g<0>\u00ad", content.get_text_range())
        ):
            words = [*_SAMPLE.finditer(match[0], 1)]
            if _NUMBER.match(match[0]):  # of the line, perhaps
                words.reverse()
            word = max(words, key=lambda word: len(word[0]))
            places = (match.start(), match.start() + word.start())
            start, inner = (
                raw.FPDFText_GetCharIndexFromTextIndex(content, at) for at in places
            )
            raw.FPDFText_GetMatrix(content, inner, matrix)
            raw.FPDFText_GetCharOrigin(content, start, x, y)
            raw.FPDFText_GetFontInfo(content, inner, font, len(font), None)
            text = " ".join(match[0].translate(_CHARACTERS).split())
            is_inner = 0.1 < y.value / page.get_height() < 0.9
            line = Line(
                text=text,
                page=number,
                left=x.value,
                y=y.value,
                size=raw.FPDFText_GetFontSize(content, inner)
                * hypot(matrix.c, matrix.d),
                is_bold=bool(_BOLD.search(font.value)),
                head="" if is_inner else "".join([*_LETTERS.findall(text), "#"]),
            )
            if abs(matrix.b) < abs(matrix.a) and not _NOISE.fullmatch(text):
                lines.append(line)
        page.close()
    numbered, fifths = (
        sum(bool(number.match(line.text)) for line in lines)
        for number in (_NUMBER, _FIFTH)
    )
    is_every = numbered > len(lines) / 2
    # a numbered list has other numbers, too
    if is_every or fifths > max(0.6 * numbered, len(lines) / 20):
        number = _NUMBER if is_every else _FIFTH
        lines = [line._replace(text=number.sub("", line.text)) for line in lines]
    return [line for line in lines if line.text]


def _blocks(lines: Sequence[Line], wide: float = inf) -> list[list[Line]]:
    """Divide lines into runs of one size that follow each other closely, at double space those of a title.

    They are larger than `wide`, or bold.
    """
    blocks = [[line] for line in lines[:1]]
    for last, line in pairwise(lines):
        is_bold = last.is_bold and line.is_bold
        is_title = is_bold and continues_title(line.text, last.text)
        most = (2.9 if line.size > wide or is_title else 1.9) * line.size
        is_near = last.page == line.page and abs(last.y - line.y) < most
        if is_near and abs(line.size - last.size) < 0.04 * last.size:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


_HEADING = re.compile(
    r"(?:[\dIVX]+\.?[\d.]*\s+)?[^\W\d_a-z][^\W\d_]{2}[^.;!?]{0,76}[^\W_]"
)


def _headings(lines: Sequence[Line]) -> set[int]:
    """Return which lines are larger than the text, or set off from what is above and below them, as headings are."""
    size = _text_size(lines)
    texts = [*(line.text for line in lines), ""]
    gaps = [
        above.y - line.y if above.page == line.page else inf
        for above, line in pairwise([*lines[:1], *lines, *lines[-1:]])
    ]
    usual = mode([round(gap) for gap in gaps if 0.5 < gap < inf] or [inf])
    return {
        number
        for number, line in enumerate(lines)
        if _HEADING.fullmatch(line.text)
        and not texts[number + 1][:1].islower()
        and (
            line.size > 1.1 * size
            or (gaps[number] > 1.4 * usual and 1.2 * usual < gaps[number + 1] < inf)
        )
    }


def _text_size(lines: Sequence[Line]) -> float:
    """Return the size of most characters before the references."""
    ends = (n for n, line in enumerate(lines) if part_at(line.text) is Part.REFERENCES)
    sizes = Counter[float]()
    for line in lines[: next(ends, None)]:
        sizes[float(f"{line.size:.2g}")] += len(line.text)
    return max(sizes, key=sizes.__getitem__, default=0)


# --- the title

_VOLUME = r"\W{0,4}(?:\d+\W+){0,3}(?:19|20)\d\d"  # after the name of a journal
_NO_TITLE = re.compile(
    r"(?:\w+[\s-]+){0,2}(?:articles?|papers?|communications?|reports?|stud(?:y|ies)|research|reviews?|notes?|letters?|trial)"
    r"|open access|author.s personal copy|editorial|corrigendum|erratum|letter to the editor|running head:.*"
    r"|(?:the\s)?(?:\w+\s){0,4}journal(?:\sof\s.*)?|(?:annals|archives|bulletin|proceedings)\sof\s.*",
    re.IGNORECASE,
)


# below "defended on 12 May by", or with its last name in capitals below the kind of the thesis
_AUTHOR = re.compile(
    r"""(?:.*\s)?(?i:by|par|von|por|di|door|av|af|przez)\W*\n(?:[^\W\d_a-z]\S*\s(?:[a-z]+\s)?){1,3}[^\W\d_a-z]\S+
    |.*(?i:thes[ei]s|thèse|tes[ei]|doctora|dissertation).*\n(?:[^\W\d_a-z]\S*[a-zß-ÿ.]\s){1,3}[A-ZÀ-Þ][A-ZÀ-Þ’'\s-]+""",
    re.VERBOSE,
)


def title_of(lines: Sequence[Line]) -> str:
    """Return the title: the first lines of the largest font of page one that are no journal, logo or kind of article.

    The title has at least two words; empty if there are none.
    """
    page = [line for line in lines if not line.page]
    text = "\n".join(line.text for line in page)
    authors = {
        line
        for last, line in pairwise(page)
        if _AUTHOR.fullmatch(f"{last.text}\n{line.text}")
    }
    page = [line for line in page if line not in authors]
    wide = 1.1 * _text_size(lines)
    for block in sorted(_blocks(page, wide), key=lambda block: -round(block[0].size)):
        # no mark of a footnote
        parts = (line.text for line in block if len(line.text) > 1)
        parts = dropwhile(_is_kind, parts)
        # a hyphen at the end of a line is one of the title
        title = re.sub(
            r"(?<=\w[-\u2010]) (?!and\b|or\b|und\b|et\b)", "", " ".join(parts)
        )
        # marks of footnotes; the version of an article of F1000
        title = re.sub(
            r"\s*(?:[*\u2217\u2020\u2021§¶]+$|\[(?:v\d|version\s).*)", "", title
        )
        is_journal = re.search(re.escape(title) + _VOLUME, text)
        is_other = is_journal or _is_kind(title) or TITLE_PAGE.match(title)
        if not is_other and " " in title and 8 <= len(_LETTERS.findall(title)) <= 300:
            return "" if part_of(title) in SECTIONS else title
    return ""


def _is_kind(text: str) -> bool:
    """Whether a text is the kind of a document, or a journal."""
    return bool(_NO_TITLE.fullmatch(text)) or part_of(text) is Part.FRONT


# --- the references


_AFTER_REFERENCES = re.compile(
    r"(?:conflicts?\sof\sinterest|competing\sinterests?|disclosures?:|publisher.s\snote|licen[cs]e\sstatement|this\sis\san\sopen"
    r"|(?:copyright\s?)?©)",
    re.IGNORECASE,
)


def references_of(lines: Sequence[Line]) -> PaperList:
    """Return the references after the headings "References"; without one, the last list from 1 to 5 or more."""
    texts = [line.text for line in lines]
    headings = _headings(lines)
    known = [part_at(text) for text in texts]
    parts = [
        part if part is Part.REFERENCES else number in headings
        for number, part in enumerate(known)
    ]
    places = reference_lists(texts, parts)
    if Part.REFERENCES not in known:  # as in Nature
        firsts = [n for n, text in enumerate(texts) if re.match(r"\W?1\W", text)]
        starts = [n for n in firsts[-20:] if len(marked(texts[n:])) > 4]
        places = [range(start, len(lines)) for start in starts[-1:]]
    return each_once(_listed(lines[place.start : place.stop]) for place in places)


def _listed(lines: Sequence[Line]) -> tuple[Entry, ...]:
    """Return the references of one list."""
    size = mode([round(line.size, 1) for line in lines[:12]] or [0.0])
    # captions, tables and most of what follows have another size
    tail = [line for line in lines if abs(line.size - size) < 0.06 * size]
    texts = [line.text for line in tail]
    ends = (n for n, text in enumerate(texts) if _AFTER_REFERENCES.match(text))
    texts = texts[: next((n for n in ends if 2 * n > len(tail)), None)]
    starts = marked(texts) or _indented(tail[: len(texts)])
    if len(starts) > 4:  # captions and appendices may follow the last one
        longest = max(end - start for start, end in pairwise(starts))
        texts = texts[: starts[-1] + longest + 2]
    return references_at(texts, starts).entries


def _indented(lines: Sequence[Line]) -> list[int]:
    """Return where references begin: at the left edge of their column, or indented; empty if all lines begin alike."""
    # pdfium begins a line after a superscript, too
    pairs = pairwise([*lines[:1], *lines])
    rows = [
        n
        for n, (last, line) in enumerate(pairs)
        if not n or abs(last.y - line.y) > line.size / 2
    ]
    # left and right pages may have other margins
    lefts = Counter((lines[row].page % 2, round(lines[row].left)) for row in rows)
    columns = [place for place, count in lefts.items() if count > len(rows) / 100]
    inner = [
        row
        for row in rows
        if any(
            page == lines[row].page % 2 and 3 < lines[row].left - left < 40
            for page, left in columns
        )
    ]
    starts = inner if 0 in inner else sorted({*rows} - {*inner})
    return starts if len(lines) / 10 < len(starts) < len(lines) * 0.9 else []


# --- the abstract

# in a line of text, rather than of a title
_BEFORE_SENTENCE = re.compile(
    r"(?=.{45})\s*(?:abstract|summary)\s+(?-i:(?=[A-Z]))", re.IGNORECASE
)
_NUMBERED = re.compile(r"(?:\d\d?|I)[.)]?\s+[A-Z][A-Za-z ]{3,50}$")  # a heading
# what publishers print between an abstract and the text
_AFTER_ABSTRACT = re.compile(
    r"\s*(?:abbreviations|ccs\s+concepts|acm\s+reference\s+format|categories\s+and\s+subject|general\s+terms"
    r"|jel\s+(?:classification|codes)|pacs|msc\s+|subject\s+class|article\s+history|author\s+summary"
    r"|significance\s+statement|contents\s*$)",
    re.IGNORECASE,
)
_NO_ABSTRACT = re.compile(
    r"creative commons|licen[cs]e|©|permits|permission|\bdoi\b|citation:|@"
    r"|(?:(?:universi|departe?ment|institut|hospital|college|school|facult|cent(?:re|er)).*){4}",
    re.IGNORECASE,
)
_LEADER = re.compile(r"(?:\.\s?){4}|…\s?…")  # of a table of contents
_LEAST_ABSTRACT = 300  # characters of an abstract without a heading
# more are the text, where the heading is drawn after the abstract
_MOST_ABSTRACT = 6_000


def _abstract_label(text: str) -> int:
    """Return where the text after a heading or label "Abstract" begins; 0 without one."""
    part = part_at(text)
    label = (part, len(text)) if part else label_of(text)
    return label[1] if label and label[0] in {Part.ABSTRACT, Part.SUMMARY} else 0


def _ends_abstract(text: str) -> bool:
    """Whether a line is no longer of the abstract above it."""
    label = label_of(text)
    if {part_at(text), label and label[0]} & {Part.INTRODUCTION, Part.KEYWORDS}:
        return True
    return bool(_NUMBERED.match(text) or _AFTER_ABSTRACT.match(text))


def abstract_of(lines: Sequence[Line]) -> str:
    """Return the text from a heading or label "Abstract" to the next heading or the keywords.

    Without one, the first long paragraph of page one that is before the introduction or of another size than the body;
    empty if there is none.
    """
    texts = [line.text for line in lines]
    headings = _headings(lines)
    bottom = min((line.y for line in lines), default=0)
    begins = [
        (place, end)
        for place, text in enumerate(texts)
        if (end := _abstract_label(text))
    ]
    labels = enumerate(map(_BEFORE_SENTENCE.match, texts))
    begins += [(place, label.end()) for place, label in labels if label]
    for place, begin in begins:
        heading = lines[place]
        first = heading._replace(text=heading.text[begin:])
        kept = [first] if first.text else []
        near = kept or lines[place + 1 : place + 6]
        size = max(near, key=lambda line: len(line.text), default=heading).size
        for number, line in enumerate(lines[place + 1 :], place + 1):
            # a heading, but not of the parts of an abstract, or a page after one that is not full
            is_end = (
                line.size > max(1.1 * size, 0.97 * heading.size)
                or (number in headings and part_at(line.text) is not Part.SECTION)
                or (
                    line.page > lines[number - 1].page
                    and lines[number - 1].y > bottom + 6 * size
                )
            )
            if kept and (is_end or _ends_abstract(line.text)):
                break
            if line.size > 0.96 * size:
                kept.append(line)
        text = joined([line.text for line in kept])
        if 0 < len(text) <= _MOST_ABSTRACT:
            return text
    ends = (n for n, text in enumerate(texts) if part_at(text) is Part.INTRODUCTION)
    end = next(ends, len(lines))
    size = mode(round(line.size, 1) for line in lines)
    apart = [
        line
        for n, line in enumerate(lines)
        if not line.page and (n < end or abs(line.size - size) > 0.03 * size)
    ]
    texts = (joined([line.text for line in block]) for block in _blocks(apart))
    long = (text for text in texts if len(text) >= _LEAST_ABSTRACT)
    return next((text for text in long if not _NO_ABSTRACT.search(text)), "")
