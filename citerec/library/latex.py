r"""Reads the whole text of a paper from its LaTeX sources, with the `.bbl` or `.bib` beside them."""

import re
from collections import ChainMap
from pathlib import Path

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import to_text
from citerec.display import one_line
from citerec.drafts import DocumentFormat, latex, pandoc
from citerec.drafts.cited import entries_by_source
from citerec.library.texts import FullText, Marks, Reference

MAIN = re.compile(rb"^[ \t]*\\document(?:class|style)\b", re.MULTILINE)
_CITE = re.compile(
    r"~?\\[A-Za-z]*cite[A-Za-z]*\*?\s*(?:\[[^\[\]]{0,300}\]\s*){0,2}\{([^{}]{1,9000})\}"
)
_BODY = re.compile(
    r"\\begin\s*\{document\}(.*?)(?:\\begin\s*\{thebibliography\}|\\bibliography\b|\\printbibliography|\\end\s*\{document\}|\Z)",
    re.DOTALL,
)
_LEFT_OUT = re.compile(
    r"\\begin\s*\{((?:figure|table|tabular|equation|align|eqnarray|gather|multline|lstlisting|verbatim|algorithm|tikzpicture)\w*\*?)\}"
    r".*?\\end\s*\{\1\}|(?<!\\)\$\$.*?\$\$|\\\[.*?\\\]|(?<!\\)%[^\n]*",
    re.DOTALL,
)
_BREAK = re.compile(
    r"\n\s*\n|\\(?:part|chapter|(?:sub)*section|paragraph)\*?\s*(?:\[[^\]]*\])?\{[^{}]*\}|\\item\b|\\(?:begin|end)\s*\{[^{}]*\}"
)


def read_latex(data: bytes, name: str, path: Path) -> FullText:
    """Read the main file of a paper; what it includes is read from its folder alone. BadInputError as of a draft."""
    notices: list[str] = []
    draft = pandoc.read(data, DocumentFormat.LATEX, name, path).draft
    source = latex.flatten(data, name, path.parent, notices)
    files = latex.bibliographies(source, path, notices)
    by_source = entries_by_source(files, source, path, notices)
    entries = dict(ChainMap(*(entries for _, entries in by_source)))
    body = _BODY.search(source)
    text = _LEFT_OUT.sub(" ", body[1] if body else source)
    cited = [key for match in _CITE.finditer(text) for key in _keys(match)]
    keys = [key for key in dict.fromkeys(cited) if key in entries]
    places = {key: place for place, key in enumerate(keys)}
    marks = Marks()

    def token(match: re.Match[str]) -> str:
        return marks.token(places[key] for key in _keys(match) if key in places)

    paragraphs = map(to_text, _BREAK.split(_CITE.sub(token, text)))
    return FullText(
        title=one_line(draft.title),
        abstract=one_line(draft.abstract),
        year=draft.year,
        authors=draft.authors,
        ids=draft.dois,
        references=tuple(_reference(entries[key]) for key in keys),
        sentences=tuple(s for text in paragraphs for s in marks.sentences(text)),
    )


def _keys(match: re.Match[str]) -> list[str]:
    return [key.strip() for key in match[1].split(",")]


def _reference(entry: Entry) -> Reference:
    stated = (", ".join(entry.authors), f"{entry.year or ''}", entry.title, entry.venue)
    return Reference(
        text=entry.text or ". ".join(filter(None, stated)),
        ids=(*entry.dois, *entry.preprints, *entry.ids)
        if entry.text
        else (*entry.dois, *entry.preprints),
        title=entry.title,
        year=entry.year,
        authors=entry.authors,
    )
