"""Reads a draft from LaTeX, Typst, Word, OpenDocument, RTF, Markdown or HTML by the tree that pandoc makes of it.

Pandoc runs in its sandbox: it reads no file and no address that a draft names. It also expands the macros that a LaTeX
draft defines.
"""

import re
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from itertools import chain, groupby, takewhile
from pathlib import Path
from time import monotonic
from typing import Any

import orjson

from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import dois_of, title_key, to_text
from citerec.corpus.headings import SECTIONS, Part, label_of, part_of, without_label
from citerec.display import one_line, plural, shortened
from citerec.drafts import (
    INSTEAD,
    LEAST_ABSTRACT,
    TITLE_PAGE,
    Document,
    DocumentFormat,
    continues_title,
    document_year,
    latex,
)
from citerec.drafts import cited as references
from citerec.drafts.cited import cited_references, inside, is_citing
from citerec.drafts.office import field_references, readable_rtf, stated_title
from citerec.errors import BadInputError
from citerec.files.atomic import is_regular
from citerec.files.pandoc import run_pandoc
from citerec.files.reading import decoded
from citerec.text import word_count
from citerec.types import Json

MAX_INPUT = 16 * 2**20  # bytes of a draft
MAX_SEARCH = 30  # seconds to find what pandoc cannot read of a LaTeX draft
_READERS = {  # where they have another name than the format
    "LaTeX": "latex+raw_tex",  # without it, the arguments of unknown commands are lost
    "Markdown": "markdown-smart+bracketed_spans",
    "Word": "docx+styles",
    "OpenDocument": "odt",
}
_OFFICE = {DocumentFormat.DOCX, DocumentFormat.ODT}
_CHUNK = re.compile(  # of R Markdown and Quarto: ```{r name, echo = FALSE}
    r"^([ \t>]*(?:`{3,}|~{3,}))[ \t]*\{[ \t]*([A-Za-z]\w*)[^\n]*\}[ \t]*(?=\r?$)",
    re.MULTILINE,
)
_INLINE_CHUNK = re.compile(r"(?:r|python|julia|\{\w+\})\s")
_LARGE = re.compile(r"\\\\?(?:Large|LARGE|huge|Huge)(?![A-Za-z])")
_NO_TITLE = re.compile(r"[,;:，；：]$|^[^A-Za-z\u00aa-\uffff]*$|^.{150,}\.$|^.{300}")
# styles of Word
_CONTENTS = re.compile(r"toc \d|table of figures|header|footer", re.IGNORECASE)
_LABELS = {*Part} - {Part.FRONT, Part.SECTION}
_LOWEST = 9  # level of a heading that is none for its format
_CROSS_REFERENCE = re.compile(  # the prefixes of Quarto, pandoc-crossref and bookdown
    r"(?:[a-z]{0,6}(?:fig|tbl|tab)|figure|table|sec|eq|lst|tip|nte|wrn|imp|cau|thm|lem|cor|prp|cnj|def|exm|exr|sol|rem|alg)[:-]",
    re.IGNORECASE,
)
_NAMES = re.compile(r"\s*[,;\u2003]\s*(?:and\s+)?|\s+(?:and|&)\s+")
_NAME_MARKS = re.compile(r"[*†‡§¶∗^]|\d+(?:,\d+)*|\[.*?\]|\([^()]*[\s,;@\d][^()]*\)")
_NO_NAME = re.compile(
    r"[@/\\{}]|anonymous|universit|institut|department|corresponding|\bpaper\b|submission|\bauthors?\b",
    re.IGNORECASE,
)
_LEFT_OUT = frozenset("Cite Note RawBlock Image Table Figure CodeBlock".split())
_SPACES = {"Space", "SoftBreak", "LineBreak", "HorizontalRule"}
_QUOTES = {"SingleQuote": "‘’", "DoubleQuote": "“”"}
_RAW_CITE = re.compile(
    r"\\[A-Za-z]*cite(?!authoryear|name)[a-z]*\*?\s*(?:\[[^\[\]]{0,300}\]\s*){0,2}\{([^{}]{1,9000})\}"
)
_RAW_TEXT = re.compile(r"\\[A-Za-z]+\*?\s*(?:\{[^{}]*\})?\{.*[^\W\d_].*\}", re.DOTALL)
_PAGE_END = re.compile(r"\\(?:new|clear|cleardouble)page|\\pagebreak")
_NO_TEXT = re.compile(
    r"\\(?:[vh]space|vskip|hskip|[a-z]*cite|label|index|footnote|thanks|todo|email|affiliation|address|color|setlength"
    r"|marginpar|[a-z]*(?:ref|note|notetext|mark)(?![a-z])|includegraphics|orcid|inst|institute|keywords|title|author|begin|pagestyle|thispagestyle)"
)
_NUMBERS = re.compile(r"\d{1,3}(?:[,–-]\s?\d{1,3})*")  # of references
_LINE = re.compile(r"\n|\r(?=\[\d|\d{1,3}[.)]\s)")  # a soft one before a mark of a list
_ABSTRACT = 2_500  # characters
_BODY = 50  # paragraphs that may stand for an abstract
# What classes and packages define and pandoc does not know, on one line so that the lines of messages stay.
_PRELUDE = (
    rb"\newcommand{\IEEEauthorblockN}[1]{#1}\newcommand{\IEEEauthorblockA}[1]{\\}"
    rb"\newcommand{\fnm}[1]{#1}\newcommand{\sur}[1]{#1}\newcommand{\spfx}[1]{#1}"
    rb"\newcommand{\And}{\and}\newcommand{\AND}{\and}\newcommand{\thanks}[1]{}"
    rb"\newcommand{\icmltitle}[1]{\title{#1}}\newcommand{\mlsystitle}[1]{\title{#1}}"
    rb"\newcommand{\inst}[1]{}\newcommand{\orcidID}[1]{}\newcommand{\corref}[1]{}"
    rb"\newcommand{\icmlauthor}[2]{\author{#1}}\newcommand{\today}{}"  # in the sandbox it is 1970
    rb"\newcommand{\IEEEmembership}[1]{}\newcommand{\IEEEauthorrefmark}[1]{}"
    # blocks for pandoc, which a title cannot hold
    # titles of MDPI, Copernicus and IEEE
    rb"\newcommand{\Title}[1]{\title{#1}}\newcommand{\Author}[1]{\author{#1}}"
    rb"\newcommand{\IEEEtitleabstractindextext}[1]{#1}\newcommand{\IEEEcompsoctitleabstractindextext}[1]{#1}"
    rb"\newcommand{\scalebox}[2]{#2}\newcommand{\strut}{}\newcommand{\raggedright}{}\newcommand{\hrule}{}\newcommand{\rule}[3][]{}"
    rb"\newcommand{\centerline}[1]{#1}\newcommand{\markboth}[2]{}\newcommand{\markright}[1]{}"
    # of the package changes
    rb"\newcommand{\added}[2][]{#2}\newcommand{\deleted}[2][]{}\newcommand{\replaced}[3][]{#2}"
    rb"\newcommand{\highlight}[2][]{#2}\newcommand{\comment}[2][]{}"
)


def read(
    data: bytes,
    kind: DocumentFormat,
    name: str,
    path: Path | None,
    project: Path | None = None,
) -> Document:
    """Read a draft; files that it names are read from the folder of `path` alone, None for standard input.

    Bibliographies are read from all folders of its `project`, if there is one.

    BadInputError if it is too large, or pandoc cannot read it within the limits; MissingExtraError if pandoc is not
    installed.
    """
    notices: list[str] = []
    source = ""
    if kind is DocumentFormat.LATEX:
        source = latex.flatten(data, name, path.parent if path else None, notices)
        source = latex.with_title(source, notices)
        data = source.encode()
    plain = _included(data, path, notices) if kind in _INCLUDES else ""
    stated = b""
    if kind is DocumentFormat.MARKDOWN:
        data = _CHUNK.sub(r"\1\2", _without_jinja(plain)).encode()
        stated = _project_fields(path)
    typst = plain if kind is DocumentFormat.TYPST else ""
    data = _without_rules(typst).encode() if typst else data
    data = readable_rtf(data) if kind is DocumentFormat.RTF else data
    tree, fault = _converted(stated + data, kind, name)
    if fault and stated:
        notices.append("the metadata files beside it cannot be read; they are left out")
        tree, fault = _converted(data, kind, name)
    end = monotonic() + MAX_SEARCH
    while (unknown := _UNKNOWN.search(fault)) and monotonic() < end:
        data = _with_template(data.decode(), unknown[1]).encode()
        tree, fault = _converted(data, kind, name)
    if fault and (source or typst):
        tree, fault = _without_faults(data.decode(), kind, name, notices)
    if fault:
        raise BadInputError(
            name, f"pandoc cannot read this {kind} draft: {fault}; {INSTEAD}"
        )
    meta = tree["meta"]
    blocks = list(_flat(tree["blocks"]))
    is_office = kind in _OFFICE
    keys = _cited_keys(meta, blocks)
    # Quarto declares more of them
    fields = _nodes(meta.get("crossref"), "MetaMap")
    prefixes = {_first(field["c"], "key") for field in fields}
    others = {
        key
        for key in keys
        if _CROSS_REFERENCE.match(key) or key.partition("-")[0] in prefixes
    }
    files = [_text(file) for file in _listed(meta, "bibliography")]
    files += re.findall('"([^"]+)"', "".join(_TYPST_BIBLIOGRAPHY.findall(typst)))
    if path and keys and (source or not files) and not is_office:
        files += latex.bibliographies(source, path, notices)
    cited = cited_references(
        [] if is_office else keys, others, files, source, path, notices, project
    )
    others -= {entry.key for entry in cited.entries}
    if not cited.entries:
        marked = [
            "#" * (block["t"] == "Header") + _text(block, line_break="\n")
            for block in blocks
        ]
        lines = _LINE.split("\n".join(marked))
        notes = [_text(note["c"]) for note in _nodes(blocks, "Note")]
        fields = field_references(data, name) if is_office else []
        listed = references.printed_references(lines, whole=True).entries
        titles = [title_key(entry.title) for entry in fields]
        typed = [
            entry
            for entry in listed
            if not any(map(title_key(entry.text).count, titles))
        ]
        # if most of a list are those of the fields, an author has typed the others
        fields += typed if 2 * len(typed) < len(listed) else []
        lists = (fields, listed, references.references_of(notes))
        # fields state more than text, of which some may be no references
        most = max(map(len, lists))
        cited = PaperList(tuple(next(of for of in lists if 4 * len(of) >= 3 * most)))
    text = takewhile(lambda block: _part(block) is not Part.REFERENCES, blocks)
    paragraphs = list(_paragraphs(text))[:_BODY]
    long = [text for text in paragraphs if len(text) >= LEAST_ABSTRACT]
    return Document(
        draft=Entry(
            title=_title(meta, blocks, kind, stated_title(data) if is_office else "")
            or _stated_in_typst(typst),
            abstract=_abstract(meta, blocks, kind),
            authors=tuple(_authors(meta, typst)),
            year=document_year(_first(meta, "date", "year")),
            dois=dois_of(_first(meta, "doi")),
        ),
        body=_section(blocks, Part.INTRODUCTION) or " ".join(long or paragraphs),
        cited=cited,
        notices=tuple(notices),
        lines=tuple(_lines(*_with_markers([meta, blocks], others))),
    )


def _converted(data: bytes, kind: DocumentFormat, name: str) -> tuple[Json, str]:
    """Return pandoc's tree and its fault, of which one is empty.

    The tree is `{"meta": {...}, "blocks": [...]}`, each node `{"t": type, "c": content}`.
    """
    if len(data) > MAX_INPUT:
        raise BadInputError(
            name,
            f"this {kind} draft has {len(data):,} bytes; expected at most {MAX_INPUT:,}; {INSTEAD}",
        )
    data = _PRELUDE + data if kind is DocumentFormat.LATEX else data
    done = run_pandoc(
        ["-f", _READERS.get(kind, kind.lower()), "-t", "json"], data, "drafts"
    )
    if done.returncode != 0:
        return {}, one_line(done.stderr.decode("utf-8", "replace"))[:200]
    return orjson.loads(done.stdout), ""


def _without_faults(
    source: str, kind: DocumentFormat, name: str, notices: list[str]
) -> tuple[Json, str]:
    """Convert LaTeX or Typst without the parts that pandoc cannot read; `notices` says which."""
    end = monotonic() + MAX_SEARCH

    def reads(text: str) -> bool:
        if monotonic() > end:
            raise TimeoutError
        return not _converted(text.encode(), kind, name)[1]

    preamble, begin, body = source.partition("\\begin{document}")
    body = begin + body
    left_out = list[str]()
    if reads(body):  # a macro makes the fault, most often by itself
        empty = "\\begin{document}\\end{document}"
        preamble, alone = latex.without_faults(preamble, reads, after=empty)
        preamble, left_out = latex.without_faults(preamble, reads, after=body)
        left_out = alone + left_out
    else:
        preamble, left_out = latex.without_faults(preamble, reads)
        body, more = latex.without_faults(body, reads, preamble)
        left_out += more
    lost = "".join(left_out)
    first = shortened("".join(left_out[:1]), 80)
    if kind is DocumentFormat.TYPST and 2 * len(lost) > len(source):
        return {}, first
    notices.append(
        f"left out, because pandoc cannot read it: {plural(len(left_out), 'part')} of "
        f"{plural(len(lost), 'character')} in all; the first: {first}"
    )
    return _converted((preamble + body).encode(), kind, name)


# --- the fields in the tree


def _listed(meta: Any, key: str) -> list[Any]:
    """Return the values of a field: one, or those of a list."""
    value = meta.get(key, {"t": "MetaList", "c": []})
    return value["c"] if value["t"] == "MetaList" else [value]


def _first(meta: Any, *names: str) -> str:
    return next(
        filter(None, (_text(value) for name in names for value in _listed(meta, name))),
        "",
    )


def _title(meta: Any, blocks: Any, kind: DocumentFormat, stated: str) -> str:
    """Return the first that is no name of a part, with the subtitle; empty without one.

    It is a field, a style, what is large or bold before the first heading, that, other text before it, or `stated` in
    the properties of the file.
    """
    lines: list[tuple[str, bool]] = []
    front = takewhile(lambda block: block["t"] != "Header", blocks)
    for text, is_large in chain.from_iterable(map(_lines_of, front)):
        last, was_large = lines[-1] if lines else ("", False)
        if is_large and was_large and continues_title(text, last):
            lines[-1] = f"{last} {text}", True
        else:
            lines.append((text, is_large))
    leads = [
        (text, is_large)
        for text, is_large in lines
        if word_count(text) > 1 and not _NO_TITLE.search(text)
    ]
    headings = [_text(heading["c"][2]) for heading in _nodes(blocks, "Header")]
    # the title of a page may end in the name of its site; publishers state that of the paper, too
    field = _first(meta, "citation_title", "title")
    if kind is DocumentFormat.RTF:  # a property
        field, stated = "", field
    styled = [_text(block) for block in blocks if block.get("part") is Part.TITLE]
    large = [text for text, is_large in leads if is_large]
    words = {*title_key(stated).split()}
    plain = sorted(
        (text for text, _ in leads),
        key=lambda text: -len(words & {*title_key(text).split()}),
    )
    before = [*takewhile(lambda text: part_of(text) is not Part.INTRODUCTION, headings)]
    others = [*large, *headings[:1], *plain, stated, *before]
    others = [t for t in others if not (part_of(t) or TITLE_PAGE.match(t))]
    titles = [field, *styled, *others]
    title = next(
        (text for text in titles if text and part_of(text) not in SECTIONS), ""
    )
    subtitle = _first(meta, "subtitle")
    return f"{title}: {subtitle}" if title and subtitle else title


def _lines_of(block: Any) -> Iterator[tuple[str, bool]]:
    """Yield each line of a paragraph, and whether it is large, bold or labelled a title; no line with another label."""
    inlines: list[Any] = block["c"] if block["t"] == "Para" else []
    for is_break, nodes in groupby(inlines, lambda node: node["t"] == "LineBreak"):
        line = [*nodes]
        text = _text(line)
        part, start = label_of(text) or (Part.FRONT, 0)
        bold = _text([*_nodes(line, "Strong")])
        if part is Part.TITLE:
            yield text[start:], True
        elif not is_break and part not in _LABELS:
            yield text, bool(_LARGE.search(f"{line}")) or 2 * len(bold) > len(text)


def _abstract(meta: Any, blocks: Any, kind: DocumentFormat) -> str:
    """Return the abstract: a field or a section of that name, else a paragraph with the label.

    After the first chapter, a summary is that of a chapter.
    """
    chapters = (n for n, block in enumerate(blocks) if _is_chapter(block, kind))
    front = blocks[: next(chapters, len(blocks))]
    labelled = (text for text in _paragraphs(front) if without_label(text) != text)
    text = (
        _first(meta, "citation_abstract", "abstract")
        or _section(blocks, Part.ABSTRACT)
        or next(labelled, "")
        or _section(front, Part.SUMMARY)
    )
    return without_label(text) or _first(meta, "description")


def _part(block: Any) -> Part | None:
    """Return the part that a heading begins, or that the style of a block names."""
    return (
        part_of(_text(block["c"][2])) if block["t"] == "Header" else block.get("part")
    )


def _is_chapter(block: Any, kind: DocumentFormat) -> bool:
    """Whether a block is a heading of the text, not of what comes before it."""
    part = _part(block)
    if kind is not DocumentFormat.LATEX:
        return part is Part.INTRODUCTION
    if block["t"] != "Header" or not _text(block["c"][2]):
        return False
    return "unnumbered" not in block["c"][1][1] and part not in {
        Part.ABSTRACT,
        Part.SUMMARY,
    }


def _section(blocks: Iterable[Any], part: Part) -> str:
    """Return the paragraphs of a style, or below a heading with its subsections, up to the keywords or a new page.

    Of an abstract that no other heading ends, those after the first `_ABSTRACT` characters are text.
    """
    parts: list[str] = []
    level = 0.0
    for block in blocks:
        own = _part(block)
        if block["t"] == "Header" and (
            own in SECTIONS - {Part.SECTION} or block["c"][0] <= level
        ):
            if parts:
                break
            if level and own is Part.SECTION and part is Part.ABSTRACT:  # structured
                level -= 0.5
            else:
                level = block["c"][0] if own is part else 0
        elif level or own is part:
            nodes = block["c"] if block["t"] == "Para" else [block]
            ends = [
                node["t"] in {"RawBlock", "RawInline"}
                and bool(_PAGE_END.match(node["c"][1]))
                for node in nodes
            ]
            if parts and ends[:1] == [True]:
                break
            for text in _paragraphs([block]):
                label = label_of(text)
                is_over = part is Part.ABSTRACT and len("".join(parts)) > _ABSTRACT
                is_after = label and label[0] in {
                    Part.KEYWORDS,
                    Part.FIELD,
                    Part.AUTHORS,
                }
                if parts and (is_over or is_after):
                    return " ".join(parts)
                parts.append(text)
            if parts and any(ends):
                break
    return " ".join(parts)


def _authors(meta: Any, typst: str) -> Iterator[str]:
    """Yield names, each as `First Last`; what is no name is left out."""
    stated = _listed(meta, "author") + _listed(meta, "authors") + _typst_authors(typst)
    for author in stated[:1000]:
        if author["t"] == "MetaMap":
            name = author["c"].get("name", author)
            parts = name["c"] if name["t"] == "MetaMap" else {"given": name}
            yield " ".join(_text(parts[p]) for p in ("given", "family") if p in parts)
            continue
        # the first line of an author of LaTeX is the name, the others are the affiliation
        line = next(
            filter(None, map(str.strip, _text(author, line_break="\n").split("\n"))), ""
        )
        for name in _NAMES.split(_NAME_MARKS.sub(",", line)):
            words = name.split()
            if (
                1 <= len(words) <= 6
                and words[0][0].isalpha()
                and not _NO_NAME.search(name)
            ):
                yield " ".join(words)


def _cited_keys(meta: Any, blocks: Any) -> list[str]:
    """Return the citation keys in order, each once; `*` stands for all."""
    keys: list[str] = []
    places = [meta.get("abstract"), blocks, meta.get("nocite")]
    for node in _nodes(places, "Cite", "RawInline", "RawBlock"):
        if node["t"] == "Cite":
            keys += (citation["citationId"] for citation in node["c"][0])
        else:  # within a command that pandoc does not know
            keys += (
                k for text in _RAW_CITE.findall(node["c"][1]) for k in text.split(",")
            )
    return list(
        dict.fromkeys(key for part in keys if "#" not in part and (key := part.strip()))
    )


def _lines(meta: Any, blocks: Any) -> Iterator[str]:
    """Yield headings and paragraphs, each followed by an empty line."""
    yield from ("# Abstract", _first(meta, "citation_abstract", "abstract"), "")
    for node in _flat(blocks):
        heading = [f"# {_text(node['c'][2])}"] if node["t"] == "Header" else []
        for text in (*heading, *_paragraphs([node])):
            yield from (text, "")


def _with_markers(value: Any, others: Set[str]) -> Any:
    """Return nodes in which `[CITE]` stands for citations, notes that cite, and numbers above the line.

    The keys of `others` are of cross-references.
    """
    if isinstance(value, list):
        return [_with_markers(child, others) for child in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("t")
    is_cite = kind in {"Cite", "Note", "RawInline"}
    keys = {*_cited_keys({}, [value])} - others if is_cite else set[str]()
    is_number = kind == "Superscript" and _NUMBERS.fullmatch(_text(value))
    if keys or is_number or (kind == "Note" and is_citing(_text(value["c"]))):
        return {"t": "Str", "c": " [CITE]"}
    return {name: _with_markers(child, others) for name, child in value.items()}


# --- the nodes of the tree


def _flat(blocks: Any, style: Part | None = None) -> Iterator[Any]:
    """Yield blocks in reading order, those within divisions in their place, with the part that their style names.

    A paragraph, or a list of one item, that is the name of a part, and does not cite, is a heading. Tables of contents
    are left out.
    """
    for block in blocks:
        kind = block["t"]
        content = block.get("c", [])
        if kind == "Div":
            identifier, classes, attributes = content[0]
            name = dict(attributes).get("custom-style", "")
            is_abstract = Part.ABSTRACT in map(part_of, (identifier, *classes))
            part = Part.ABSTRACT if is_abstract else part_of(name) or style
            if not _CONTENTS.match(name):
                yield from _flat(content[1], part)
        elif kind == "BlockQuote":  # in Word it is indented
            yield from _flat(content, style)
        elif (
            kind in {"Para", "Plain", "OrderedList"}
            and part_of(_text(block)) in SECTIONS
            and not any(_nodes(block, "Cite"))
        ):
            inlines = [{"t": "Str", "c": _text(block)}]
            yield {"t": "Header", "c": [_LOWEST, ["", [], []], inlines]}
        else:
            # the text of a division may be no paragraph
            kind = "Para" if style and kind == "Plain" else kind
            yield {**block, "t": kind, "part": style}


def _paragraphs(blocks: Any) -> Iterator[str]:
    for block in _flat(blocks):
        wanted = block["t"] in {"Para", "BlockQuote", "BulletList", "OrderedList"}
        if wanted and (text := _text(block)):
            yield text


def _nodes(value: Any, *kinds: str) -> Iterator[Any]:
    """Yield the nodes of some types in reading order."""
    if isinstance(value, dict) and value.get("t") in kinds:
        yield value
    if isinstance(value, list | dict):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _nodes(child, *kinds)


def _text(node: Any, *, line_break: str = " ") -> str:
    """Return the text of nodes; citations, notes, pictures, tables and displayed formulas are left out."""
    text = "".join(_pieces(node, line_break))
    if line_break == " ":
        text = one_line(text)
    return re.sub(r"\(\s*\)|\[\s*\]| +(?=[,.;:!?)])", "", text)


def _pieces(node: Any, line_break: str) -> Iterator[str]:
    if isinstance(node, list):
        for child in node:
            yield from _pieces(child, line_break)
        return
    kind: str = node.get("t", "") if isinstance(node, dict) else ""
    content: Any = node.get("c", "") if isinstance(node, dict) else ""
    if kind in _LEFT_OUT:
        return
    if kind in _SPACES:
        soft = "\r" if kind == "SoftBreak" and line_break != " " else " "
        yield line_break if kind == "LineBreak" else soft
    elif kind in {"Str", "MetaString"}:
        yield content
    elif kind == "Code":
        yield "" if _INLINE_CHUNK.match(content[1]) else content[1]
    elif kind == "Math":
        yield to_text(f"${content[1]}$") if content[0]["t"] == "InlineMath" else " "
    elif kind == "RawInline":  # a command of LaTeX that pandoc does not know
        latex = content[1] if content[0] == "latex" else ""
        is_text = _RAW_TEXT.match(latex) and not _NO_TEXT.match(latex)
        yield to_text(_RAW_CITE.sub("", latex)) if is_text else ""
    elif kind == "Quoted":
        quotes = _QUOTES[content[0]["t"]]
        yield quotes[0] + "".join(_pieces(content[1], line_break)) + quotes[1]
    elif kind == "MetaMap":
        yield from _pieces([*content.values()], line_break)
    elif isinstance(content, list):
        yield from _pieces(content, line_break)
        if kind in {"Para", "Plain", "Header", "LineBlock"}:
            yield line_break


# --- what Markdown and Typst include, and their projects state

_INCLUDES = {DocumentFormat.MARKDOWN, DocumentFormat.TYPST}
_INCLUDED = re.compile(
    r"""^(?:\{\{<[ ]*include[ ]+(?P<quarto>[^\s>]+)[ ]*>\}\}
    |[ \t]*\#include[ ]*\(?[ ]*"(?P<typst>[^"\n]+)"[ ]*\)?
    |`{3,}[ ]*\{r\b[^}\n]*\bchild[ ]*=[ ]*["'](?P<knitr>[^"'\n]+)["'][^}\n]*\}\s*`{3,})""",
    re.MULTILINE | re.VERBOSE,
)
_JINJA = re.compile(r"\{##.*?##\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_PROJECT_FILES = ("_quarto.yml", "_metadata.yml", "metadata.yaml")


def _included(data: bytes, path: Path | None, notices: list[str]) -> str:
    """Return a source with the files that it includes, from the folder of the draft alone."""

    def expanded(part: bytes, active: tuple[Path, ...]) -> str:
        def text(match: re.Match[str]) -> str:
            wanted = match[match.lastgroup or 0]
            file = None
            if path:
                parent = active[-1].parent.relative_to(path.parent.resolve())
                with suppress(PermissionError):
                    file = inside(path.parent, f"{parent}/{wanted}")
            if file and file not in active:
                return expanded(file.read_bytes(), (*active, file))
            fault = "is missing or outside its folder; it is not read"
            notices.append(f"{wanted}, which the draft includes, {fault}")
            return ""

        return _INCLUDED.sub(text, decoded(part)[0])

    return expanded(data, (path.resolve(),) if path else ())


def _without_jinja(source: str) -> str:
    """Return Markdown without the template that Manubot's front matter begins with."""
    return _JINJA.sub("", source) if source.startswith("{##") else source


def _project_fields(path: Path | None) -> bytes:
    """Return the fields that the files of Quarto and Manubot beside a draft state, as a block before its own."""
    files = [path.parent / name for name in _PROJECT_FILES] if path else []
    texts = [file.read_bytes().strip(b"-.\r\n") for file in files if is_regular(file)]
    return b"".join(b"---\n%b\n---\n\n" % text for text in texts)


# --- the templates of a Typst draft

_TYPST_BIBLIOGRAPHY = re.compile(r'(?<!\w)bibliography\(\s*(\([^()]*\)|"[^"]+")')
# of which pandoc (3.9) reads the first word
_LABEL = re.compile(r"(?<![\w\\])@([\w-]+(?:[.:][\w-]+)+)")
_OLD_CITE = re.compile(r'#cite\("([^"\n]+)"\)')
# what stands for a template or another name of an import; its title becomes the first heading
_TEMPLATE = (
    "#let {}(title: none, abstract: none, ..rest) = {{ if title != none [= #title]; "
    "if abstract != none [= Abstract\n#abstract\n= Text]; rest.pos().at(-1, default: []) }}\n"
)
_UNKNOWN = re.compile(r'Identifier "([\w-]+)" not found')
_STRING = r'"(?:\\.|[^"\\])*+"'


def _nested(depth: int) -> str:
    """Return a pattern of a character, a string, or what is in brackets."""
    inner = rf"|[(\[{{](?:{_nested(depth - 1)})*+[)\]}}]" if depth else ""
    return rf'{_STRING}|[^()\[\]{{}}"]{inner}'


# all but a short text with a name
_RULE = re.compile(
    rf"""^[ \t]*\#(?:import|set|show|let(?![ ]+[\w-]+[ ]*=[ ]*["\[]))\b
    (?:[^()\[\]{{}}"\n]|{_STRING}|[(\[{{](?:{_nested(6)})*+[)\]}}])*+$""",
    re.MULTILINE | re.VERBOSE,
)
_STATED = (
    r"(?<![\w-])(?:(?:thesis|paper)[_-])?(?:{})(?:[_-][a-z]{{2}})?\s*[:=]\s*"
    r'(?:"([^"]+)"|\[((?:[^\[\]]|\[[^\[\]]*\])*)\])'
)
_TYPST_TITLE = re.compile(_STATED.format("title|titel|t[ií]tulo|titre"))
_TYPST_ABSTRACT = re.compile(_STATED.format("abstract"))
# of one or several: texts, or dictionaries with a name
_TYPST_AUTHORS = re.compile(
    rf"(?<![\w-])authors?\s*[:=]\s*({_STRING}|[(\[](?:{_nested(6)})++[)\]])"
)
_INNER = re.compile(rf":\s*[\w.-]*\((?:{_nested(5)})*+\)")  # of an author
_TYPST_TEXT = r'\s*(?:"([^"]+)"|\[([^\[\]#]+))'
_TYPST_NAME = re.compile(rf"(?<![\w-])name:{_TYPST_TEXT}")
_TYPST_ITEM = re.compile(rf"(?:^|[(,]){_TYPST_TEXT}")


def _typst_authors(source: str) -> list[Json]:
    """Return the first authors that a Typst draft states, for whatever template, as fields of pandoc."""
    stated = _TYPST_AUTHORS.search(source)
    text = _INNER.sub("", stated[1] if stated else "")
    names = _TYPST_NAME.findall(text) or _TYPST_ITEM.findall(text)
    return [{"t": "MetaString", "c": quoted or name} for quoted, name in names]


def _stated_in_typst(source: str) -> str:
    """Return the first title that a Typst draft states, for whatever template."""
    titles = (quoted or text for quoted, text in _TYPST_TITLE.findall(source))
    return next((one_line(t) for t in titles if part_of(t) not in SECTIONS), "")


def _without_rules(source: str) -> str:
    """Return a Typst draft without its imports and rules: pandoc follows none in its sandbox, and does not know all.

    What it states to a template as its abstract stays.
    """

    def kept(rule: re.Match[str]) -> str:
        abstract = _TYPST_ABSTRACT.search(rule[0])
        text = (abstract[1] or abstract[2]) if abstract else ""
        return f"= Abstract\n{text}\n= Text" if text else ""

    source = _LABEL.sub(r"#cite(<\1>)", _OLD_CITE.sub(r"@\1 ", source))
    return _RULE.sub(kept, source)


def _with_template(source: str, name: str) -> str:
    """Return a Typst draft with a definition of a name that it imports, and without the fields of the name."""
    fields = rf"(?<![\w.-]){re.escape(name)}(?:\.(?!with\b)[A-Za-z][\w-]*)+"
    return _TEMPLATE.format(name) + re.sub(fields, name, source)
