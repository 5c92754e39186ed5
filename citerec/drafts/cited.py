r"""The references that a draft cites by key: its bibliographies, or references that LaTeX has formatted (`.bbl`).

Files are read from the folder of the draft alone.
"""

import re
from collections import ChainMap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import to_text
from citerec.bibliography.paper_list import entries_by_key, read_bytes
from citerec.errors import BadInputError
from citerec.text import plural

EVERY_KEY = "*"  # as in \nocite{*}
_SHOWN = 5  # missing keys that a notice names


def inside(folder: Path, name: str, suffixes: Iterable[str] = ("",)) -> Path | None:
    """Return the first existing file `name` + suffix of a folder; None if there is none.

    Raises:
        PermissionError: If the name leads outside the folder: by `..`, as an absolute path, or by a link.
    """
    root = folder.resolve()
    for suffix in suffixes:
        try:
            target = (root / f"{name}{suffix}").resolve()
            is_file = target.is_file()
        except (OSError, ValueError, RuntimeError):  # a NUL in the name; a loop of links
            continue
        if not target.is_relative_to(root):
            raise PermissionError(name)
        if is_file:
            return target
    return None


def decode_latex(data: bytes) -> str:
    r"""Return LaTeX source as text: UTF-8, else Latin-1; lines end with `\n`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def cited_references(
    keys: Sequence[str],
    files: Sequence[str],
    source: str,
    path: Path | None,
    notices: list[str],
) -> PaperList:
    """Look up the references that a draft cites, in this order; formatted ones stand in for what bibliographies lack.

    The key `*` stands for all; `files` are the bibliographies that the draft names, `source` is that of a LaTeX draft,
    `path` its file or None. `notices` receives a line for each bibliography that is not used, and for keys without an
    entry.

    BadInputError if the `.bbl` of the draft is a link to outside its folder.
    """
    if not keys:
        return PaperList(())
    faults: list[str] = []
    by_source = [_from_file(file, path, faults) for file in dict.fromkeys(files)]
    formatted, origin = _formatted(source, path)
    if not formatted or any(one for _, one in by_source):
        notices += faults
    by_source.append((origin, formatted))
    sources = tuple(file for file, one in by_source if one)
    entries = dict(ChainMap(*(one for _, one in by_source)))  # the first of a repeated key counts
    if not entries:
        if keys != [EVERY_KEY]:
            count = plural(len(keys), "citation key")
            notices.append(
                f"{count}, but no bibliography was found: pass the references with --cited FILE"
            )
        return PaperList(())
    wanted = [*keys, *entries] if EVERY_KEY in keys else keys
    wanted = [key for key in dict.fromkeys(wanted) if key != EVERY_KEY]
    if missing := [key for key in wanted if key not in entries]:
        some = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
        notices.append(
            f"{plural(len(missing), 'citation key')} not in {', '.join(sources)}: {some}"
        )
    return PaperList(tuple(entries[key] for key in wanted if key in entries))


def _from_file(file: str, path: Path | None, faults: list[str]) -> tuple[str, dict[str, Entry]]:
    """Return the name of a bibliography that a draft names, and its entries by key."""
    unread: list[str] = []
    if path is None:
        fault = (
            "cannot be followed from standard input; "
            "pass the draft by its name, or the references with --cited FILE"
        )
    else:
        try:
            if found := inside(path.parent, file, ("", ".bib", ".json")):
                entries = entries_by_key(read_bytes(found)[0], file, unread)
                if unread:
                    many = plural(len(unread), "entry is", "entries are")
                    faults.append(f"{many} ignored in {file}; the first: {unread[0]}")
                return found.name, entries
            fault = "is missing; its references are not used"
        except PermissionError:
            fault = "is outside the folder of the draft"
        except BadInputError as error:
            fault = f"is not used: {error.message}"
    faults.append(f"the bibliography {file} {fault}")
    return file, {}


# --- references that LaTeX has formatted: \bibitem of BibTeX styles

MAX_ITEM = 10_000  # characters
MAX_BBL = 16 * 2**20  # bytes
_LABEL = r"\[(?:[^\[\]{}]|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})*\]\s*"
_ITEM = re.compile(rf"\\bibitem(?![A-Za-z@])\s*(?:{_LABEL})?\{{([^{{}}]{{1,300}})\}}")
_MARKED_TITLE = re.compile(
    r"\\(?:showarticletitle|bibinfo\s*\{\s*(?:title|booktitle)\s*\}|bibtitle|articletitle)\s*(?=\{)"
)
_QUOTED = re.compile(r"(?:``|“|\"|\\enquote\{)(.{8,}?)(?:''|”|\"|\})", re.DOTALL)
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s{},\\]+")
_SENTENCE = re.compile(r"(?<![A-Z])(?<!al)(?<!eds)[.?!]\s+")
_YEAR = re.compile(r"(?<![0-9-])(?:19|20)[0-9]{2}[a-z]?(?![0-9])")
_LONE_YEAR = re.compile(r"\(?[12][0-9]{3}[a-z]?\)?\.?\s*")


def _formatted(source: str, path: Path | None) -> tuple[dict[str, Entry], str]:
    """Return the formatted references of a draft by key, and the name of their source: the draft, else its `.bbl`."""
    name = path.name if path else "the draft"
    if source and path and not _ITEM.search(source):
        try:
            bbl = inside(path.parent, f"{path.stem}.bbl")
        except PermissionError:
            message = f"{path.stem}.bbl is a link to outside the folder of the draft; copy it there"
            raise BadInputError(path, message) from None
        source, name = (decode_latex(bbl.read_bytes()[:MAX_BBL]), bbl.name) if bbl else ("", "")
    entries: dict[str, Entry] = {}
    items = list(_ITEM.finditer(source))
    for match, following in zip_longest(items, items[1:]):
        end = following.start() if following else len(source)
        entry = _from_item(source[match.end() : end][:MAX_ITEM])
        if entry.is_named:
            entries.setdefault(match[1].strip(), entry)
    return entries, name


def _from_item(latex: str) -> Entry:
    latex = latex.split("\\end{thebibliography}", maxsplit=1)[0]
    doi, years = _DOI.search(latex.replace("\\_", "_")), _YEAR.findall(latex)
    title = _item_title(latex).strip(" .,;:")
    return Entry(
        ids=(doi[0].rstrip(".;"),) if doi else (),
        title=title,
        year=int(years[-1][:4]) if years else None,
        label=title[:60] or to_text(latex)[:60],
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


def braced(text: str, at: int, most: int = 100_000) -> str | None:
    """Return the text in the braces that open at `at`; None if they do not close."""
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text[at : at + most]):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[at + 1 : at + match.start()]
    return None
