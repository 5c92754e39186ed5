"""Reads a draft from LaTeX, Word, Markdown or HTML: pandoc converts it, and its tree has the fields and the citations.

Pandoc runs as a process with limits on time and memory, in its sandbox: it reads no file and no address that a draft
names. It also expands the macros that a LaTeX draft defines.
"""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from citerec.bibliography.keys import doi_of, to_text
from citerec.bibliography.paper_list import entries_by_key
from citerec.drafts.document import LEAST_ABSTRACT, Document, DocumentFormat, document_year
from citerec.drafts.latex import decode_latex, flatten, formatted_references
from citerec.drafts.references import Bibliography
from citerec.errors import BadInputError, MissingExtraError, extra
from citerec.text import one_line

MAX_SECONDS = 30  # a thesis of 300 pages takes 2
MAX_INPUT = 16 * 2**20  # bytes
_INSTEAD = "give --title and --abstract, or pass its text"
_READERS = {
    DocumentFormat.LATEX: "latex+raw_tex",  # without it, the arguments of unknown commands are lost
    DocumentFormat.MARKDOWN: "markdown-smart+bracketed_spans",
    DocumentFormat.DOCX: "docx",
    DocumentFormat.HTML: "html",
}
# in the order of trust: publishers' tags say more than the title of a page
_TITLES = ("citation_title", "dc.title", "dcterms.title", "title")
_ABSTRACTS = ("citation_abstract", "dc.description", "dcterms.abstract", "abstract")
_AUTHORS = ("citation_author", "dc.creator", "author", "authors")
_DATES = ("citation_publication_date", "citation_date", "dc.date", "date", "year")
_DOIS = ("citation_doi", "dc.identifier", "doi")
_ABSTRACT = re.compile(
    r"(?:[\d.]+\s*)?(?:abstract|summary|zusammenfassung|résumé|resumen)\s*[.:—–-]*\s*",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?:abstract|summary)\s*(?:[.:—–-]+\s*|(?-i:(?=[A-Z])))", re.IGNORECASE)
_INTRODUCTION = re.compile(r"[\dI.\s]*introduction\s*[.:]?", re.IGNORECASE)
_ABSTRACT_MARK = re.compile(r"(?:^|[-_])abs(?:tract|1-content)?(?:$|[-_])|doc-abstract", re.I)
_CROSS_REFERENCE = re.compile(r"(?:fig|tbl|sec|eq|lst|thm|lem|def|exm|tab|table|figure)[:-]")
_NAMES = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+(?:and|&)\s+")
_NAME_MARKS = re.compile(r"[*†‡§¶∗^]|\d+(?:,\d+)*|\[.*?\]")
_NO_NAME = re.compile(
    r"[@/\\{}]|anonymous|universit|institut|department|corresponding", re.IGNORECASE
)
_LEFT_OUT = {"Cite", "Note", "RawBlock", "Image", "Table", "Figure", "CodeBlock"}
_SPACES = {"Space", "SoftBreak", "LineBreak", "HorizontalRule"}
_QUOTES = {"SingleQuote": "‘’", "DoubleQuote": "“”"}
MAX_FIRST_LINE = 300  # characters of a first line that stands for a title
_RAW_CITE = re.compile(
    r"\\[A-Za-z]*cite[a-z]*\*?\s*(?:\[[^\[\]]{0,300}\]\s*){0,2}\{([^{}]{1,9000})\}"
)
_RAW_TEXT = re.compile(r"\\[A-Za-z]+\*?\s*(?:\{[^{}]*\})?\{.*[^\W\d_].*\}", re.DOTALL)
_NO_TEXT = re.compile(
    r"\\(?:[vh]space|vskip|hskip|[a-z]*cite|label|index|footnote|thanks|todo|email|affiliation|address|color|setlength"
    r"|marginpar|[a-z]*(?:ref|note|notetext|mark)(?![a-z])|includegraphics|orcid|inst|institute|keywords|title|author|begin|pagestyle|thispagestyle)"
)
_BODY = 50  # paragraphs that may stand for an abstract
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([A-Za-z0-9_-]{1,30})", re.IGNORECASE)


def read(data: bytes, kind: DocumentFormat, name: str, path: Path | None) -> Document:
    """Read a draft.

    Args:
        data: The draft.
        kind: Its format, none that pandoc cannot read.
        name: Its name in messages.
        path: Its file, whose folder holds its bibliography and what it includes; None for standard input.

    Raises:
        BadInputError: If it is too large, or pandoc cannot read it within the limits.
        MissingExtraError: If pandoc is not installed.
    """
    notices: list[str] = []
    source = ""
    if kind is DocumentFormat.LATEX:
        source = flatten(decode_latex(data), name, path.parent if path else None, notices)
        data = _PRELUDE.encode() + source.encode()
    elif kind is DocumentFormat.MARKDOWN:
        data = _utf8(data, name)
    elif kind is DocumentFormat.HTML:
        data = _page(data)
    tree = _Tree(_converted(data, kind, name))
    keys = [key for key in tree.cited_keys() if not _CROSS_REFERENCE.match(key)]
    found = Bibliography(path, name, notices)
    if keys:
        found.read_files(tree.strings("bibliography"), formatted_references(source, path, keys))
        if references := tree.meta.get("references"):
            items = orjson.dumps(_plain(references))
            found.add(entries_by_key(items, name), name)
    return Document(
        title=tree.title(kind),
        abstract=tree.abstract(),
        body=tree.body(),
        authors=tuple(tree.authors()),
        year=document_year(tree.first(_DATES)),
        doi=next(filter(None, map(doi_of, (tree.first((key,)) for key in _DOIS))), ""),
        cited=found.look_up(keys, has_inline="references" in tree.meta),
        notices=tuple(notices),
    )


# What classes and packages define and pandoc does not know, on one line so that the lines of messages stay.
_PRELUDE = "".join(
    (
        r"\newcommand{\IEEEauthorblockN}[1]{#1}\newcommand{\IEEEauthorblockA}[1]{\\}",
        r"\newcommand{\fnm}[1]{#1}\newcommand{\sur}[1]{#1}\newcommand{\spfx}[1]{#1}",
        r"\newcommand{\And}{\and}\newcommand{\AND}{\and}\newcommand{\thanks}[1]{}",
        r"\newcommand{\icmltitle}[1]{\title{#1}}\newcommand{\mlsystitle}[1]{\title{#1}}",
        r"\newcommand{\inst}[1]{}\newcommand{\orcidID}[1]{}\newcommand{\corref}[1]{}",
        r"\newcommand{\icmlauthor}[2]{\author{#1}}\newcommand{\today}{}",  # in the sandbox it is 1970
        r"\newcommand{\IEEEmembership}[1]{}\newcommand{\IEEEauthorrefmark}[1]{}",
    )
)


def _utf8(data: bytes, name: str) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = f"byte 0x{data[error.start]:02x} is not UTF-8; save it as UTF-8"
        raise BadInputError(name, fault, line=line) from None
    return data


def _page(data: bytes) -> bytes:
    """Return an HTML page as UTF-8, from the encoding that it declares."""
    try:
        return data.decode("utf-8-sig").encode()
    except UnicodeDecodeError:
        stated = _CHARSET.search(data[:4096])
        try:
            text = data.decode(stated[1].decode() if stated else "cp1252", "replace")
        except LookupError:
            text = data.decode("cp1252", "replace")
        return re.sub(r"charset\s*=\s*[\"']?[\w-]+", "charset=utf-8", text, count=1).encode()


def _converted(data: bytes, kind: DocumentFormat, name: str) -> dict[str, Any]:
    """Return pandoc's tree of a document."""
    what = f"this {kind} draft"
    if len(data) > MAX_INPUT:
        size = f"{len(data):,} bytes; expected at most {MAX_INPUT:,}"
        raise BadInputError(name, f"{what} has {size}; {_INSTEAD}")
    try:
        done = subprocess.run(
            [_pandoc(), "+RTS", "-M2G", "-RTS", "--sandbox", "-f", _READERS[kind], "-t", "json"],
            input=data,
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fault = f"{what} takes pandoc more than {MAX_SECONDS} seconds"
        raise BadInputError(name, f"{fault}; {_INSTEAD}") from None
    if done.returncode != 0:
        fault = one_line(done.stderr.decode("utf-8", "replace"))[:200]
        raise BadInputError(name, f"pandoc cannot read {what}: {fault}; {_INSTEAD}")
    return orjson.loads(done.stdout)


def _pandoc() -> str:
    with extra("drafts"):
        import pypandoc
    try:
        return pypandoc.get_pandoc_path()
    except OSError:
        raise MissingExtraError("pandoc", "drafts") from None


@dataclass(frozen=True, slots=True)
class _Tree:
    """A document as pandoc's JSON has it: `{"meta": {...}, "blocks": [...]}`, each node `{"t": type, "c": content}`."""

    tree: Mapping[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        return self.tree["meta"]

    @property
    def blocks(self) -> list[Any]:
        return self.tree["blocks"]

    def strings(self, key: str) -> list[str]:
        """Return the values of a field: one, or those of a list."""
        value = self.meta.get(key, {"t": "MetaList", "c": []})
        values = cast("list[Any]", value["c"] if value["t"] == "MetaList" else [value])
        return [text for one in values if (text := _text(one))]

    def first(self, names: Iterable[str]) -> str:
        return next((text for name in names for text in self.strings(name)), "")

    def title(self, kind: DocumentFormat) -> str:
        """Return the title and the subtitle, else a heading; of a page its only one, of Word the first line."""
        is_page = kind is DocumentFormat.HTML
        headings = [(h["c"][0], _text(h["c"][2])) for h in _nodes(self.blocks, "Header")]
        tops = [text for level, text in headings if level == 1 and text]
        stated = self.first(_TITLES[:-1] if is_page and len(tops) == 1 else _TITLES)
        title = stated or (tops[0] if is_page and tops else next((t for _, t in headings if t), ""))
        if not title and kind is DocumentFormat.DOCX:
            title = next((text for text in _paragraphs(self.blocks)), "")[:MAX_FIRST_LINE]
        subtitle = self.first(("subtitle",))
        return f"{title}: {subtitle}" if title and subtitle else title

    def abstract(self) -> str:
        """Return the abstract: a field, a section or an element of that name, else a paragraph with the label."""
        if stated := self.first(_ABSTRACTS):
            return _LABEL.sub("", stated, count=1) if _LABEL.match(stated) else stated
        for div in _nodes(self.blocks, "Div"):
            (mark, classes, _), blocks = div["c"]
            if any(map(_ABSTRACT_MARK.search, [mark, *classes])):
                text = " ".join(_paragraphs(blocks))
                if len(text) >= LEAST_ABSTRACT:
                    return _LABEL.sub("", text, count=1) if _LABEL.match(text) else text
        if section := self._section(_ABSTRACT):
            return section
        for paragraph in _paragraphs(self.blocks):
            if label := _LABEL.match(paragraph):
                return paragraph[label.end() :]
        return self.first(("description",))

    def body(self) -> str:
        """Return the introduction, else the first paragraphs."""
        paragraphs = list(_paragraphs(self.blocks))[:_BODY]
        long = [text for text in paragraphs if len(text) >= LEAST_ABSTRACT]
        return self._section(_INTRODUCTION) or " ".join(long or paragraphs)

    def _section(self, heading: re.Pattern[str]) -> str:
        """Return the paragraphs from a heading to the next one; empty if there is no such heading."""
        parts: list[str] | None = None
        for node in _flat(self.blocks):
            if node["t"] == "Header":
                if parts:
                    break
                parts = [] if heading.fullmatch(_text(node["c"][2])) else None
            elif parts is not None:
                parts += _paragraphs([node])
        return " ".join(parts or [])

    def authors(self) -> Iterator[str]:
        """Yield names, each as `First Last`; what is no name is left out."""
        key = next((name for name in _AUTHORS if name in self.meta), "author")
        value = self.meta.get(key, {"t": "MetaList", "c": []})
        several = value["t"] == "MetaList"
        for one in cast("list[Any]", value["c"] if several else [value])[:1000]:
            if one["t"] == "MetaMap":
                name = one["c"].get("name", one)
                parts = name["c"] if name["t"] == "MetaMap" else {"given": name}
                yield _text([parts[p] for p in ("given", "family") if p in parts], between=" ")
                continue
            # the first line of an author of LaTeX is the name, the others are the affiliation
            line = next(filter(None, map(one_line, _text(one, line_break="\n").split("\n"))), "")
            family, comma, given = line.partition(",")
            if comma and key != "author" and "," not in given:
                yield one_line(f"{given} {family}")
                continue
            for name in _NAMES.split(_NAME_MARKS.sub(" ", line)):
                words = name.split()
                if 1 <= len(words) <= 6 and words[0][0].isalpha() and not _NO_NAME.search(name):
                    yield " ".join(words)

    def cited_keys(self) -> list[str]:
        """Return the citation keys in order, each once; `*` stands for all."""
        keys: list[str] = []
        for part in (self.meta.get("abstract"), self.blocks, self.meta.get("nocite")):
            for node in _nodes(part, "Cite", "RawInline", "RawBlock"):
                if node["t"] == "Cite":
                    keys += (one["citationId"] for one in node["c"][0])
                else:  # within a command that pandoc does not know
                    keys += (k for text in _RAW_CITE.findall(node["c"][1]) for k in text.split(","))
        return list(dict.fromkeys(key for one in keys if "#" not in one and (key := one.strip())))


def _flat(blocks: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield blocks in reading order, those within divisions in their place."""
    for block in blocks:
        if block["t"] == "Div":
            yield from _flat(block["c"][1])
        else:
            yield block


def _paragraphs(blocks: Iterable[Any]) -> Iterator[str]:
    for block in _flat(blocks):
        wanted = block["t"] in {"Para", "BlockQuote", "BulletList", "OrderedList"}
        if wanted and (text := _text(block)):
            yield text


def _nodes(value: Any, *kinds: str) -> Iterator[dict[str, Any]]:
    """Yield the nodes of some types in reading order."""
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _nodes(one, *kinds)
    elif isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        if node.get("t") in kinds:
            yield node
        for one in node.values():
            if isinstance(one, (list, dict)):
                yield from _nodes(one, *kinds)


def _plain(meta: Mapping[str, Any]) -> Any:
    """Return a value of the metadata as JSON."""
    match meta["t"]:
        case "MetaMap":
            return {key: _plain(value) for key, value in meta["c"].items()}
        case "MetaList":
            return [_plain(value) for value in meta["c"]]
        case _:
            return _text(meta)


def _text(node: Any, *, line_break: str = " ", between: str = "") -> str:
    """Return the text of nodes; citations, notes, pictures, tables and displayed formulas are left out."""
    text = between.join(_pieces(node, line_break))
    if line_break == " ":
        text = one_line(text)
    return re.sub(r"\(\s*\)|\[\s*\]| +(?=[,.;:!?)])", "", text)


def _pieces(node: Any, line_break: str) -> Iterator[str]:
    if isinstance(node, list):
        for one in cast("list[Any]", node):
            yield from _pieces(one, line_break)
        return
    known = cast("dict[str, Any]", node) if isinstance(node, dict) else {}
    kind, content = str(known.get("t", "")), known.get("c", "")
    if kind in _LEFT_OUT:
        return
    if kind in _SPACES:
        yield line_break if kind == "LineBreak" else " "
    elif kind in {"Str", "MetaString"}:
        yield content
    elif kind in {"Code", "Math", "RawInline"}:
        yield _source(kind, content)
    elif kind == "Quoted":
        quotes = _QUOTES[content[0]["t"]]
        yield quotes[0] + "".join(_pieces(content[1], line_break)) + quotes[1]
    elif kind == "MetaMap":
        yield from _pieces([*content.values()], line_break)
    elif isinstance(content, list):
        yield from _pieces(content, line_break)
        if kind in {"Para", "Plain", "Header", "LineBlock"}:
            yield " "


def _source(kind: str, content: Any) -> str:
    """Return the text of code, of a formula, or of a command of LaTeX that pandoc does not know."""
    if kind == "Code":
        return content[1]
    if kind == "Math":
        return to_text(f"${content[1]}$") if content[0]["t"] == "InlineMath" else " "
    latex = content[1] if content[0] == "latex" else ""
    is_text = _RAW_TEXT.match(latex) and not _NO_TEXT.match(latex)
    return to_text(_RAW_CITE.sub("", latex)) if is_text else ""
