"""Finds the parts of a draft in its text, as a PDF or a Word document has it: lines or paragraphs without markup."""

import re

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


def without_label(text: str) -> str:
    """Return an abstract without the word "Abstract" before it."""
    label = ABSTRACT.match(text) or _BEFORE_SENTENCE.match(text)
    return text[label.end() :] if label else text


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
