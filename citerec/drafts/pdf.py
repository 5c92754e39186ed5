"""Reads a draft from a PDF, by pypdf in a process of its own with limits on time and memory.

A PDF may be made to loop, to recurse or to fill the memory; the process ends then, and one line says so.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from citerec.drafts.document import Document
from citerec.errors import BadInputError, MissingExtraError

MAX_SECONDS = 20  # of a processor, for the first pages of one PDF
MAX_WAIT = 60  # seconds until the process ends
MAX_MEMORY = 2 * 2**30  # bytes of the process that reads it
_INSTEAD = "pass its text: pdftotext paper.pdf - | citerec recommend --query -"
_PROGRAM = "from citerec.drafts.pdf import main; main()"
_FAULTS = {
    "encrypted": "this one is encrypted; save it without a password",
    "no text": "this one has no text: it is a scan or a picture; run OCR first: ocrmypdf in.pdf out.pdf",
}


def read(data: bytes, name: str) -> Document:
    """Read a PDF draft: the title by the largest font of page one, the abstract by its heading.

    Args:
        data: The PDF.
        name: The name of the draft in messages.

    Raises:
        BadInputError: If it is encrypted, damaged, has no text, or takes too much time or memory.
        MissingExtraError: If pypdf is not installed.
    """
    answer = _extracted(data, name)
    if missing := answer.get("missing"):
        raise MissingExtraError(str(missing), "drafts")
    if fault := answer.get("fault"):
        known = _FAULTS.get(fault)
        raise _unreadable(name, known or f"this one is damaged ({fault}); {_INSTEAD}")
    lines: list[str] = answer["lines"]
    abstract = abstract_of(lines)
    return Document(
        title=answer["title"],
        abstract=abstract,
        body="" if abstract else introduction_of(lines) or answer["rest"],
    )


def _unreadable(name: str, fault: str) -> BadInputError:
    return BadInputError(name, f"this is a PDF; citerec reads the text of a PDF, but {fault}")


def _extracted(data: bytes, name: str) -> dict[str, Any]:
    """Return what the process found in a PDF, or its fault."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
        "PYTHONIOENCODING": "utf-8",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM, str(MAX_MEMORY), str(MAX_SECONDS)],
            input=data,
            capture_output=True,
            timeout=MAX_WAIT,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fault = f"the first pages of this one take more than {MAX_WAIT} seconds; {_INSTEAD}"
        raise _unreadable(name, fault) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        fault = f"reading this one needs too much time or memory; {_INSTEAD}"
        raise _unreadable(name, fault) from None
    return answer


# --- the process: the file on standard input, what was found as JSON on standard output

PAGES = 4  # from the first; the abstract is on one of them
MAX_CHARACTERS = 40_000
MAX_SPANS = 20_000
_SAME_SIZE = 0.93  # of the largest font
_LETTERS = re.compile(r"[^\W\d_]")
_STAMP = re.compile(r"arXiv:\d{4}\.\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text on a page."""

    text: str
    size: float  # of the font, in points
    y: float  # of the base line, from the bottom


def main() -> None:
    """Read a PDF within the limits that the arguments state: bytes of memory, seconds."""
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    try:
        answer = _found(sys.stdin.buffer.read())
    except ModuleNotFoundError as error:
        answer = {"missing": error.name or str(error)}
    except RecursionError:
        answer = {"fault": "its objects are nested too deeply"}
    except MemoryError:
        answer = {"fault": "it needs too much memory"}
    except Exception as error:
        answer = {"fault": " ".join(f"{type(error).__name__}: {error}".split())[:100]}
    json.dump(answer, sys.stdout)


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _found(data: bytes) -> dict[str, Any]:
    """Return the title, the lines of the first pages, and the text of page one below the title."""
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, WrongPasswordError

    logging.disable(logging.CRITICAL)
    reader = PdfReader(BytesIO(data), strict=False)
    try:
        if reader.is_encrypted and not reader.decrypt(
            ""
        ):  # many are encrypted with an empty password
            return {"fault": "encrypted"}
        spans: list[Span] = []
        texts: list[str] = []
        for number in range(min(PAGES, len(reader.pages))):
            collect = _collector(spans) if number == 0 else None
            texts.append(reader.pages[number].extract_text(visitor_text=collect))
            if sum(map(len, texts)) > MAX_CHARACTERS:
                break
    except (FileNotDecryptedError, WrongPasswordError, DependencyError):
        return {"fault": "encrypted"}
    text = "\n".join(texts)[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
    if len(_LETTERS.findall(text)) < 20:
        return {"fault": "no text"}
    lines = [line for line in text.split("\n") if line.strip() and not _STAMP.search(line)]
    title, below = title_of(spans)
    title = _stated_title(reader, texts[0]) or title
    return {"title": title, "lines": lines, "rest": below}


def _collector(spans: list[Span]) -> Any:
    def collect(text: str, cm: list[float], tm: list[float], _font: Any, size: float) -> None:
        if not text.strip() or len(spans) >= MAX_SPANS:
            return
        a, b = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
        if abs(b) > abs(a):  # rotated, as the stamp of arXiv at the margin
            return
        scale = abs(tm[2] * cm[1] + tm[3] * cm[3])
        y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
        spans.append(Span(text, round(abs(size) * scale, 1), y))

    return collect


def title_of(spans: list[Span]) -> tuple[str, str]:
    """Return the title of page one and the text below it: the first run of at least two words in the largest font.

    Spans are in the order of the file; a drop cap, a logo of one word and the like are no title.
    """
    sizes = sorted({span.size for span in spans if _LETTERS.search(span.text)}, reverse=True)
    for least_words in (2, 1):
        for size in sizes[:8]:
            run = _run(spans, size)
            text = _joined(spans[slice(*run)])
            if len(text.split()) >= least_words and len(_LETTERS.findall(text)) >= 5:
                return text[:1000], _joined(spans[run[1] :])[:6000]
    return "", ""


def _joined(spans: list[Span]) -> str:
    """Return the text of spans; one of another height begins a line."""
    lines: list[str] = []
    height = None
    for span in spans:
        if span.y == height:
            lines[-1] += span.text
        else:
            lines.append(span.text)
        height = span.y
    return joined([line for text in lines for line in text.split("\n")])


def _run(spans: list[Span], size: float) -> tuple[int, int]:
    """Return the longest range of consecutive spans of at least nearly `size`, but not much larger."""
    best = start = end = 0
    best_range = (0, 0)
    for place, span in enumerate(spans):
        if size * _SAME_SIZE <= span.size <= size * 1.02:
            if place != end:
                start, best = place, 0
            end = place + 1
            best += len(span.text)
            if best > sum(len(s.text) for s in spans[slice(*best_range)]):
                best_range = (start, end)
    return best_range


def _stated_title(reader: Any, page: str) -> str:
    """Return the title in the properties of the file if page one has it, too; many programs write another there."""
    try:
        stated = " ".join(str(reader.metadata.title or "").split()) if reader.metadata else ""
    except Exception:
        return ""
    words = re.findall(r"\w+", stated.lower())
    on_page = " ".join(re.findall(r"\w+", page.lower()))
    return stated if len(words) >= 3 and " ".join(words) in on_page else ""


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
_NUMBERED = re.compile(r"\s*(?:1|I)[.)]?\s+(?=[A-Z])")
_HYPHEN = re.compile(r"([a-zß-ÿ])[-\u00ad\u2010]\n([a-zß-ÿ])")


def joined(lines: list[str]) -> str:
    """Return lines as one text: a word that a hyphen splits at the end of a line is whole again."""
    text = _HYPHEN.sub(r"\1\2", "\n".join(line.strip() for line in lines))
    return " ".join(text.replace("\u00ad", "").split())


def abstract_of(lines: list[str]) -> str:
    """Return the text from a heading or label "Abstract" to the next heading or the keywords; empty without one."""
    labels = [(n, m.end()) for n, line in enumerate(lines) if (m := ABSTRACT.match(line))]
    labels += [
        (n, m.end())
        for n, line in enumerate(lines)
        if len(line) >= _LEAST_LINE and (m := _BEFORE_SENTENCE.match(line))
    ]
    for place, end in labels:
        first = lines[place][end:].strip()
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
