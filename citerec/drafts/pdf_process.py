"""The process that reads a PDF: the file on standard input, what was found as JSON on standard output."""

import json
import re
import sys
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from citerec.drafts.prose import joined

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
