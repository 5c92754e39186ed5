r"""Reads the whole text of a paper from its LaTeX sources, with the `.bbl` or `.bib` beside them."""

import re
from collections import ChainMap
from dataclasses import replace
from pathlib import Path

from citerec.bibliography.entry import Entry
from citerec.drafts import DocumentFormat, latex, pandoc
from citerec.drafts.cited import entries_by_source
from citerec.library.texts import FullText, citing_sentences, mark

MAIN = re.compile(rb"^[ \t]*\\document(?:class|style)\b", re.MULTILINE)
_CITE = re.compile(
    r"~?\\[A-Za-z]*cite[A-Za-z]*\*?\s*(?:\[[^\[\]]{0,300}\]\s*){0,2}\{([^{}]{1,9000})\}"
)


def read_latex(data: bytes, file: Path) -> FullText:
    """Read the main file of a paper; what it includes is read from its folder alone. BadInputError as of a draft."""
    notices: list[str] = []
    source = latex.flatten(data, file.name, file.parent, notices)
    files = latex.bibliographies(source, file, notices)
    by_source = entries_by_source(files, source, file, notices)
    entries = dict(ChainMap(*(entries for _, entries in by_source)))
    places: dict[str, int] = {}

    def resolve(match: re.Match[str]) -> str:
        keys = [key for key in map(str.strip, match[1].split(",")) if key in entries]
        if not keys:
            return match[0]
        return " " + mark(places.setdefault(key, len(places)) for key in keys)

    marked = _CITE.sub(resolve, source).encode()
    document = pandoc.read(marked, DocumentFormat.LATEX, file.name, file)
    return FullText(
        entry=document.draft,
        references=tuple(_stated(entries[key]) for key in places),
        sentences=tuple(citing_sentences(document.lines)),
    )


def _stated(entry: Entry) -> Entry:
    """Return a reference with its text: as it is printed, or its fields."""
    dois = (*entry.dois, *entry.preprints)
    fields = (*entry.authors, entry.year, entry.title, entry.venue)
    text = entry.text or " ".join(f"{field or ''}" for field in fields)
    return replace(entry, text=" ".join([text, *dois]), dois=dois)
