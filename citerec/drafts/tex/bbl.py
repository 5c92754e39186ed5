r"""References that LaTeX has formatted already: `\bibitem`s of BibTeX styles, `\entry`s of biblatex."""

import re
from collections.abc import Collection
from itertools import islice, zip_longest

from citerec.bibliography.doi import doi_of
from citerec.bibliography.keys import title_key
from citerec.bibliography.paper_list import Entry
from citerec.drafts.cited import EVERY_KEY
from citerec.drafts.document import document_year
from citerec.drafts.tex.braces import argument, optional
from citerec.drafts.tex.plain import as_text

MAX_ITEMS = 20_000
MAX_ITEM = 10_000  # characters
_ITEM = re.compile(r"\\bibitem(?![A-Za-z@])\s*")
_ENTRY = re.compile(r"\\entry\s*\{([^{}]{1,300})\}")
_FIELD = re.compile(r"\\field\s*\{(title|subtitle|year)\}\s*")
_VERB_DOI = re.compile(r"\\verb\s*\{doi\}\s*\\verb\s+(\S+)")
_MARKED_TITLE = re.compile(
    r"\\(?:showarticletitle|bibinfo\s*\{\s*(?:title|booktitle)\s*\}|bibtitle|articletitle)\s*(?=\{)"
)
_BLOCK = re.compile(r"\\newblock(?![A-Za-z@])")
_QUOTES = (("``", "''"), ("``", '"'), ("“", "”"), ('"', '"'), ("\\enquote{", "}"))
_LEAST_QUOTED = 8  # characters
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s{},\\]+")
_AFTER_AUTHORS = re.compile(r":\s+")
_SENTENCE = re.compile(r"(?<![A-Z])(?<!al)(?<!eds)[.?!]\s+")
_YEAR = re.compile(r"(?<![0-9-])(?:19|20)[0-9]{2}[a-z]?(?![0-9])")


def bbl_entries(source: str, keys: Collection[str]) -> dict[str, Entry]:
    r"""Return the references in formatted source by key; those without a recognisable title or DOI are left out.

    Args:
        source: LaTeX with `\bibitem`s or the `\entry`s of biblatex.
        keys: The keys to read; with `*`, all.
    """
    entries: dict[str, Entry] = {}

    def wanted(key: str) -> bool:
        return key not in entries and (key in keys or EVERY_KEY in keys)

    for match in islice(_ENTRY.finditer(source), MAX_ITEMS):
        end = source.find("\\endentry", match.end(), match.end() + MAX_ITEM)
        if end >= 0 and wanted(key := match[1].strip()):
            entries[key] = _from_biblatex(source[match.end() : end])
    starts = [match.end() for match in islice(_ITEM.finditer(source), MAX_ITEMS)]
    for start, following in zip_longest(starts, starts[1:], fillvalue=len(source)):
        _, at = optional(source, start)
        key, at = argument(source, at)
        if key is not None and wanted(key.strip()):
            entries[key.strip()] = _from_item(source[at : min(following, at + MAX_ITEM)])
    return {key: entry for key, entry in entries.items() if entry.ids or title_key(entry.title)}


def _from_biblatex(text: str) -> Entry:
    fields = {m[1]: argument(text, m.end())[0] or "" for m in _FIELD.finditer(text)}
    doi = _VERB_DOI.search(text)
    title = ": ".join(filter(None, (as_text(fields.get(n, "")) for n in ("title", "subtitle"))))
    return Entry(
        ids=(doi[1],) if doi and doi_of(doi[1]) else (),
        title=title,
        year=document_year(fields.get("year", "")),
        place=title[:60],
    )


def _from_item(latex: str) -> Entry:
    r"""Return the title, the DOI and the year of one `\bibitem`."""
    latex = latex.split("\\end{thebibliography}", maxsplit=1)[0].split("\\bibitem", maxsplit=1)[0]
    doi = _DOI.search(latex.replace("\\_", "_"))
    years = _YEAR.findall(latex)
    title = _item_title(latex).strip(" .,;:")
    return Entry(
        ids=(doi[0].rstrip(".;"),) if doi else (),
        title=title,
        year=int(years[-1][:4]) if years else None,
        place=title[:60] or as_text(latex)[:60],
    )


def _item_title(latex: str) -> str:
    """Return the title: marked as such, quoted, or by its position after the authors."""
    if marked := _MARKED_TITLE.search(latex):
        return as_text(argument(latex, marked.end())[0] or "")
    if quoted := _quoted(latex):
        return as_text(quoted)
    blocks = [text for part in _BLOCK.split(latex) if (text := as_text(part))]
    if len(blocks) > 1:
        return re.sub(r"^\(?[12][0-9]{3}[a-z]?\)?\.\s*", "", blocks[1])
    text = blocks[0] if blocks else ""
    colon = _AFTER_AUTHORS.search(text[:400])
    if colon and re.search(r"[.,]", text[: colon.start()]):  # Springer: authors: title. venue
        return _SENTENCE.split(text[colon.end() :])[0]
    sentences = [
        s for s in _SENTENCE.split(text) if not re.fullmatch(r"\(?[12]\d{3}[a-z]?\)?\.?", s.strip())
    ]
    return sentences[1] if len(sentences) > 1 else ""


def _quoted(latex: str) -> str:
    """Return the first text in quotes that is long enough for a title; empty if there is none."""
    for opening, closing in _QUOTES:
        start = latex.find(opening)
        end = latex.find(closing, start + len(opening)) if start >= 0 else -1
        if end - start - len(opening) >= _LEAST_QUOTED:
            return latex[start + len(opening) : end]
    return ""
