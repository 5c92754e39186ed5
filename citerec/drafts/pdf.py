"""Reads a draft from a PDF, by pypdf."""

import re
from contextlib import suppress
from io import BytesIO
from itertools import groupby, islice
from time import process_time
from typing import Any, NamedTuple

from citerec.bibliography.entry import Entry
from citerec.drafts import Document
from citerec.drafts.cited import joined, printed_references
from citerec.errors import BadInputError, extra
from citerec.inputs import MAX_SECONDS

PAGES = 4  # from the first; the abstract is on one of them
MAX_CHARACTERS = 40_000
_INSTEAD = "pass its text: pdftotext paper.pdf - | citerec recommend --query -"


def read(data: bytes, name: str) -> Document:
    """Read a PDF draft: the title by the largest font of page one, the abstract by its heading.

    BadInputError if it is encrypted, damaged or has no text; MissingExtraError if pypdf is not installed.
    """
    with extra("drafts"):
        import pypdf  # noqa: F401  # pyright: ignore[reportUnusedImport]
    try:
        found = _content(data)
    except (MemoryError, TimeoutError):
        raise
    except Exception as error:  # of pypdf; a RecursionError, too
        fault = " ".join(f"{type(error).__name__}: {error}".split())[:100]
        found = {"fault": f"this one is damaged ({fault}); {_INSTEAD}"}
    if fault := found.get("fault"):
        raise BadInputError(name, f"this is a PDF; citerec reads the text of a PDF, but {fault}")
    lines = found["text"].splitlines()
    starts = (n for n, line in enumerate(lines) if ABSTRACT.match(line) or INTRODUCTION.match(line))
    return Document(
        draft=Entry(title=found["title"], abstract=found["abstract"]),
        body=found["body"],
        cited=printed_references(lines),
        lines=lines[next(starts, 0) :],  # without title and authors
    )


_SAME_SIZE = 0.93  # of the largest font
_LETTERS = re.compile(r"[^\W\d_]")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_STAMP = re.compile(r"arXiv:\d{4}\.\d+", re.IGNORECASE)


class Span(NamedTuple):
    """A piece of text on a page."""

    text: str
    size: float  # of the font, in points
    y: float  # of the base line, from the bottom


def _content(data: bytes) -> dict[str, str]:
    """Return title, abstract and body by the first pages and the whole text, or the fault of the file."""
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, WrongPasswordError

    logging.disable(logging.CRITICAL)
    reader = PdfReader(BytesIO(data), strict=False)
    spans, texts = list[Span](), list[str]()

    def collect(text: str, cm: list[float], tm: list[float], _font: Any, size: float) -> None:
        a, b = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
        if text.strip() and abs(b) <= abs(a):  # not rotated, as the stamp of arXiv at the margin
            scale = abs(tm[2] * cm[1] + tm[3] * cm[3])
            y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
            spans.append(Span(text.translate(_LIGATURES), round(abs(size) * scale, 1), y))

    encrypted = {"fault": "this one is encrypted; save it without a password"}
    try:
        if reader.is_encrypted and not reader.decrypt(""):  # many have an empty password
            return encrypted
        for number, page in enumerate(islice(reader.pages, PAGES)):
            texts.append(page.extract_text(visitor_text=None if number else collect))
    except (FileNotDecryptedError, WrongPasswordError, DependencyError):
        return encrypted
    with suppress(
        Exception
    ):  # pypdf may fail at a page; the rest of the lines, in half of the time
        for page in islice(reader.pages, PAGES, None):
            if process_time() > MAX_SECONDS / 2:
                break
            texts.append(page.extract_text())
    texts = [t.translate(_LIGATURES).encode("utf-8", "replace").decode() for t in texts]
    text = "\n".join(texts[:PAGES])[:MAX_CHARACTERS]
    if len(_LETTERS.findall(text)) < 20:
        scan = "it is a scan or a picture; run OCR first: ocrmypdf in.pdf out.pdf"
        return {"fault": f"this one has no text: {scan}"}
    lines = [line for line in text.split("\n") if line.strip() and not _STAMP.search(line)]
    # many programs write something else than the title into the properties of the file
    stated = " ".join(str((reader.metadata or {}).get("/Title") or "").split())
    words, page = (re.findall(r"\w+", one.lower()) for one in (stated, texts[0]))
    is_title = len(words) >= 3 and " ".join(words) in " ".join(page)
    abstract = abstract_of(lines)
    body = "" if abstract else introduction_of(lines) or joined(lines)
    return {
        "title": stated if is_title else title_of(spans),
        "abstract": abstract,
        "body": body,
        "text": "\n".join(line for text in texts for line in text.splitlines()),
    }


def title_of(spans: list[Span]) -> str:
    """Return the title of page one: the first run of at least two words in the largest font.

    Spans are in the order of the file; a drop cap, a logo of one word and the like are no title.
    """
    sizes = sorted({span.size for span in spans if _LETTERS.search(span.text)}, reverse=True)
    texts: list[str] = []
    for size in sizes[:8]:
        # the longest run of consecutive spans of nearly this size; another height begins a line
        runs = groupby(spans, lambda span, size=size: size * _SAME_SIZE <= span.size <= size * 1.02)
        of_size = [[*run] for is_size, run in runs if is_size]
        longest = max(of_size, key=lambda run: sum(len(span.text) for span in run))
        rows = groupby(longest, lambda span: span.y)
        texts.append(joined("\n".join("".join(s.text for s in row) for _, row in rows).split("\n")))
    titles = [text for text in texts if len(_LETTERS.findall(text)) >= 5]
    longer = (text for text in titles if len(text.split()) >= 2)
    return next(longer, titles[0] if titles else "")[:1000]


# --- the parts of a draft in the lines of its text

_WORD = r"\s*(?:\d+\.?\s+)?(?:abstract|summary|a\s?b\s?s\s?t\s?r\s?a\s?c\s?t|zusammenfassung|résumé|resumen)"
# alone on its line, or before a colon, a full stop or a dash
ABSTRACT = re.compile(rf"{_WORD}\s*(?:[.:\u2014\u2013-]+\s*|$)", re.IGNORECASE)
_BEFORE_SENTENCE = re.compile(rf"{_WORD}\s+(?-i:(?=[A-Z]))", re.IGNORECASE)
_LEAST_LINE = 45  # characters of a line of text, rather than of a title
INTRODUCTION = re.compile(
    r"\s*(?:(?:\d+|I)[.)]?\s+)?(?:introduction|i\s?ntroduction)\s*[.:\u2014\u2013]?\s*(?P<rest>.*)$",
    re.IGNORECASE,
)
AFTER_ABSTRACT = re.compile(
    r"\s*(?:(?:key\s?-?words?(?:\s+and\s+phrases)?|index\s+terms|ccs\s+concepts|acm\s+reference\s+format"
    r"|categories\s+and\s+subject|general\s+terms|jel\s+(?:classification|codes)|pacs|msc\s+|subject\s+class"
    r"|article\s+history|author\s+summary|significance\s+statement|contents\s*$)"
    r"|(?:\d+|I)[.)]?\s+[A-Z][A-Za-z ]{3,50}$|\d+\s+I\s?NTRODUCTION|(?:\d+[.)]?\s+|I[.)]\s+)?introduction\s*[.:]?\s*$)",
    re.IGNORECASE,
)


def abstract_of(lines: list[str]) -> str:
    """Return the text from a heading or label "Abstract" to the next heading or the keywords; empty without one."""
    labels = [(n, m) for n, line in enumerate(lines) if (m := ABSTRACT.match(line))]
    long = [(n, line) for n, line in enumerate(lines) if len(line) >= _LEAST_LINE]
    labels += [(n, m) for n, line in long if (m := _BEFORE_SENTENCE.match(line))]
    for place, label in labels:
        first = lines[place][label.end() :].strip()
        kept = [first] if first else []
        for following in lines[place + 1 :]:
            if kept and AFTER_ABSTRACT.match(following):
                break
            kept.append(following)
        if text := joined(kept):
            return text
    return ""


def introduction_of(lines: list[str]) -> str:
    """Return the text after a heading "Introduction"; empty without one."""
    for place, line in enumerate(lines):
        match = INTRODUCTION.fullmatch(line.strip())
        if match and (not match["rest"] or match["rest"][:1].isupper()):
            return joined([match["rest"], *lines[place + 1 :]])
    return ""
