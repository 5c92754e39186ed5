r"""What pandoc leaves of LaTeX: the files that a draft includes, and references that are formatted already."""

import re
from collections.abc import Collection, Mapping
from itertools import zip_longest
from pathlib import Path

from citerec.bibliography.keys import doi_of, title_key, to_text
from citerec.bibliography.paper_list import Entry
from citerec.drafts.document import document_year
from citerec.drafts.references import EVERY_KEY, inside
from citerec.errors import BadInputError

MAX_SOURCE = 16 * 2**20  # characters of a draft with all its files
MAX_FILES = 500
_INPUTENC = re.compile(rb"\\usepackage\s*\[([a-z0-9]+)\]\s*\{inputenc\}")
_ENCODINGS = {"latin2": "iso8859-2", "latin9": "iso8859-15", "applemac": "mac-roman"}
_COMMENT = re.compile(r"(?<!\\)%[^\n]*(?:\n[ \t]*(?!\s))?")
_INCLUDE = re.compile(
    r"""\\(?:input|include|subfile|subfileinclude)(?![A-Za-z@])\s*
        (?:\{\s*"?([^{}"]*?)"?\s*\}|([^\s{}\\%\[]+))
      | \\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}""",
    re.VERBOSE,
)
_DOCUMENT = re.compile(r"\\begin\s*\{document\}")
_END = re.compile(r"\\end\s*\{document\}|\\endinput(?![A-Za-z@])")
_DOCUMENT_CLASS = re.compile(r"\\document(?:class|style)(?![A-Za-z@])|\\begin\s*\{document\}")
# \"{\i}: pandoc sets the accent on a dotless i, which Unicode does not compose
_DOTLESS = re.compile(r"\\([\"'`^~=.])\s*\{\s*\\([ij])\s*\}")
_CAPITAL_CITE = re.compile(r"\\Cite(?=[a-z]*[*\s\[{])")  # at the start of a sentence
_NOT_TEXT = (".pdf", ".png", ".jpg", ".eps", ".cls", ".sty", ".pgf", ".tikz", ".pdf_tex")
_ABSTRACT_COMMAND = re.compile(r"\\abstract\s*\{")


def decode_latex(data: bytes) -> str:
    r"""Return LaTeX source as text: UTF-8, else the encoding that it declares, else Latin-1; lines end with `\n`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        stated = _INPUTENC.search(data[: 2**16])
        name = stated[1].decode() if stated else "latin-1"
        try:
            text = data.decode(_ENCODINGS.get(name, name), errors="replace")
        except LookupError:
            text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def flatten(text: str, name: str, folder: Path | None, notices: list[str]) -> str:
    r"""Return the source of a draft with the files that it includes, up to `\end{document}`.

    Files are read from the folder of the draft alone: `..`, absolute paths and links that lead outside are refused.

    Args:
        text: The main file.
        name: Its name in messages.
        folder: Its folder; None for standard input.
        notices: Receives a line for each file that is not read.

    Raises:
        BadInputError: If the draft has more than `MAX_SOURCE` characters or `MAX_FILES` files.
    """
    size = files = 0

    def without(reason: str) -> str:
        if (line := f"\\input: {reason}") not in notices:
            notices.append(line)
        return " "

    def included(match: re.Match[str], active: tuple[Path, ...]) -> str:
        wanted = "/".join(filter(None, (part and part.strip() for part in match.groups())))
        if not wanted or re.search(r"[#\\]", wanted) or wanted.lower().endswith(_NOT_TEXT):
            return " "
        if folder is None:
            return without(f"{wanted} cannot be followed from standard input; pass the file itself")
        suffixes = (".tex", "", ".bbl") if "." not in Path(wanted).name else ("", ".tex")
        try:
            file = inside(folder, wanted, suffixes)
            if file is None and active:  # relative to the including file
                parent = active[-1].parent.relative_to(folder.resolve())
                file = inside(folder, str(parent / wanted), suffixes)
        except PermissionError:
            return without(f"{wanted} is outside the folder of the draft; it is not read")
        if file is None:
            return without(f"{wanted} is missing; the draft is read without it")
        if file in active:
            return without(f"{wanted} includes itself; it is not read again")
        with file.open("rb") as stream:
            data = stream.read(4 * MAX_SOURCE)
        return f"\n{expanded(decode_latex(data), (*active, file))}\n"

    def expanded(source: str, active: tuple[Path, ...]) -> str:
        nonlocal size, files
        size, files = size + len(source), files + 1
        if size > MAX_SOURCE or files > MAX_FILES:
            most = f"{MAX_SOURCE // 2**20} MB or {MAX_FILES} files"
            fault = f"this LaTeX draft with the files that it includes has more than {most}"
            raise BadInputError(name, f"{fault}; pass its main part, or --title and --abstract")
        source = _COMMENT.sub("", source)
        if end := _END.search(source):
            source = source[: end.start()]
        if active and (begin := _DOCUMENT.search(source)):  # a subfile
            source = source[begin.end() :]
        return _INCLUDE.sub(lambda match: included(match, active), source)

    source = _CAPITAL_CITE.sub(r"\\cite", expanded(text, ()))
    source = source.replace("\\twocolumn[", "\\maketitle ")  # ICML's title is within the brackets
    source = _with_environment(_DOTLESS.sub(r"\\\1{\2}", source))
    if _DOCUMENT_CLASS.search(source):  # unfinished drafts may lack either line
        begin = "" if _DOCUMENT.search(source) else "\n\\begin{document}"
        source += f"{begin}\n\\end{{document}}\n"
    return source


def _with_environment(source: str) -> str:
    r"""Return source with `\abstract{…}` as the environment, which pandoc knows."""
    match = _ABSTRACT_COMMAND.search(source)
    if not match or (text := braced(source, match.end() - 1)) is None:
        return source
    end = match.end() + len(text) + 1
    environment = f"\\begin{{abstract}}{text}\\end{{abstract}}"
    # what stands before \begin{document} is preamble, where pandoc reads no environment
    begin = _DOCUMENT.search(source)
    if begin and begin.start() > match.start():
        middle = source[end : begin.end()]
        return f"{source[: match.start()]}{middle}{environment}{source[begin.end() :]}"
    return f"{source[: match.start()]}{environment}{source[end:]}"


def braced(text: str, at: int, most: int = 100_000) -> str | None:
    """Return the text in the braces that open at `at`; None if they do not close."""
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text[at : at + most]):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[at + 1 : at + match.start()]
    return None


# --- references that LaTeX has formatted: \bibitem of BibTeX styles, \entry of biblatex

MAX_ITEM = 10_000  # characters
_LABEL = r"\[(?:[^\[\]{}]|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})*\]\s*"
_ITEM = re.compile(rf"\\bibitem(?![A-Za-z@])\s*(?:{_LABEL})?\{{([^{{}}]{{1,300}})\}}")
_ENTRY = re.compile(r"\\entry\s*\{([^{}]{1,300})\}")
_FIELD = re.compile(r"\\field\s*\{(title|subtitle|year)\}\s*(?=\{)")
_VERB_DOI = re.compile(r"\\verb\s*\{doi\}\s*\\verb\s+(\S+)")
_MARKED_TITLE = re.compile(
    r"\\(?:showarticletitle|bibinfo\s*\{\s*(?:title|booktitle)\s*\}|bibtitle|articletitle)\s*(?=\{)"
)
_QUOTED = re.compile(r"(?:``|“|\"|\\enquote\{)(.{8,}?)(?:''|”|\"|\})", re.DOTALL)
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s{},\\]+")
_SENTENCE = re.compile(r"(?<![A-Z])(?<!al)(?<!eds)[.?!]\s+")
_YEAR = re.compile(r"(?<![0-9-])(?:19|20)[0-9]{2}[a-z]?(?![0-9])")
_LONE_YEAR = re.compile(r"\(?[12][0-9]{3}[a-z]?\)?\.?\s*")


def formatted_references(
    source: str, path: Path | None, keys: Collection[str]
) -> tuple[Mapping[str, Entry], str]:
    r"""Return the formatted references of a draft by key, and the name of their source.

    They are those in the draft, else those in the `.bbl` of its name. One without a title or a DOI is left out.

    Args:
        source: The source of the draft.
        path: Its file; None for standard input.
        keys: The keys to read; with `*`, all.
    """
    name = path.name if path else "the draft"
    if source and path and not (_ITEM.search(source) or _ENTRY.search(source)):
        bbl = inside(path.parent, f"{path.stem}.bbl")
        source, name = (decode_latex(bbl.read_bytes()[:MAX_SOURCE]), bbl.name) if bbl else ("", "")
    entries: dict[str, Entry] = {}
    items = list(_ITEM.finditer(source))
    for match, following in zip_longest(items, items[1:]):
        end = following.start() if following else len(source)
        entries.setdefault(match[1].strip(), _from_item(source[match.end() : end][:MAX_ITEM]))
    for match in _ENTRY.finditer(source):
        text = source[match.end() : match.end() + MAX_ITEM].split("\\endentry")[0]
        entries.setdefault(match[1].strip(), _from_biblatex(text))
    kept = {
        key: entry
        for key, entry in entries.items()
        if (entry.ids or title_key(entry.title)) and (key in keys or EVERY_KEY in keys)
    }
    return kept, name


def _from_biblatex(text: str) -> Entry:
    fields = {m[1]: to_text(braced(text, m.end()) or "") for m in _FIELD.finditer(text)}
    title = ": ".join(filter(None, (fields.get("title", ""), fields.get("subtitle", ""))))
    doi = _VERB_DOI.search(text)
    ids = (doi[1],) if doi and doi_of(doi[1]) else ()
    return Entry(ids=ids, title=title, year=document_year(fields.get("year", "")), place=title[:60])


def _from_item(latex: str) -> Entry:
    latex = latex.split("\\end{thebibliography}", maxsplit=1)[0]
    doi = _DOI.search(latex.replace("\\_", "_"))
    years = _YEAR.findall(latex)
    title = _item_title(latex).strip(" .,;:")
    return Entry(
        ids=(doi[0].rstrip(".;"),) if doi else (),
        title=title,
        year=int(years[-1][:4]) if years else None,
        place=title[:60] or to_text(latex)[:60],
    )


def _item_title(latex: str) -> str:
    """Return the title: marked as such, quoted, or by its position after the authors."""
    if marked := _MARKED_TITLE.search(latex):
        return to_text(braced(latex, marked.end()) or "")
    if quoted := _QUOTED.search(latex):
        return to_text(quoted[1])
    blocks = [text for part in re.split(r"\\newblock", latex) if (text := to_text(part))]
    if len(blocks) > 1:
        return _LONE_YEAR.sub("", blocks[1], count=1) if _LONE_YEAR.match(blocks[1]) else blocks[1]
    text = blocks[0] if blocks else ""
    authors, colon, rest = text[:400].partition(": ")
    if colon and re.search(r"[.,]", authors):  # Springer: authors: title. venue
        return _SENTENCE.split(rest + text[400:])[0]
    sentences = [s for s in _SENTENCE.split(text) if not _LONE_YEAR.fullmatch(s)]
    return sentences[1] if len(sentences) > 1 else ""
