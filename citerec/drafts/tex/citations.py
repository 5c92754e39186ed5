r"""The references of a LaTeX draft: the keys of its `\cite` commands, looked up in its bibliography.

A bibliography is a `.bib` that the draft names, else the `\bibitem`s or `\entry`s of the draft or of its `.bbl`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from citerec.bibliography.paper_list import Entry
from citerec.drafts.cited import EVERY_KEY, inside, look_up, read_bibliographies
from citerec.drafts.document import CitedReferences
from citerec.drafts.tex.bbl import bbl_entries
from citerec.drafts.tex.braces import argument, optional
from citerec.drafts.tex.decoding import decode_tex
from citerec.drafts.tex.macros import Macro
from citerec.inputs import read_whole
from citerec.text import plural

MAX_KEYS = 100_000
_CITE = re.compile(r"\\([A-Za-z]*[cC]ite[A-Za-z]*)\*?(?![A-Za-z@])")
_OWN = re.compile(r"\\[A-Za-z]*[cC]ite[A-Za-z]*\*?\s*(?:\[[^\]]{0,300}\]\s*)*\{\s*#([1-9])\s*\}")
# commands that define or style citations
_NO_CITATIONS = re.compile(
    r"(?:re)?newcite.*|.*cites?tyle|setcite.*|Declare.*|.*citealias|citetext|citenum(?:font)?|.*citation.*"
    r"|bibcite|citeindex.*|citeform|citeleft|citeright|citemid|citepunct|citedash|citereset"
)
_BIBTEX = re.compile(r"\\(?:no)?bibliography(?![A-Za-z@])")
_BIBLATEX = re.compile(r"\\add(?:bibresource|globalbib|sectionbib)(?![A-Za-z@])")
_ITEMS = re.compile(r"\\bibitem|\\begin\s*\{thebibliography\}|\\entry\s*\{")


def cited_keys(source: str, macros: Mapping[str, Macro]) -> list[str]:
    r"""Return the citation keys of a draft in order, each once; `*` of `\nocite{*}` stands for all."""
    own = {name: _own_arguments(macro) for name, macro in macros.items() if _OWN.search(macro.body)}
    keys: dict[str, None] = {}
    pattern = _CITE
    if own:
        names = "|".join(sorted(own, key=len, reverse=True))
        pattern = re.compile(rf"\\({names}|[A-Za-z]*[cC]ite[A-Za-z]*)\*?(?![A-Za-z@])")
    for match in pattern.finditer(source):
        if len(keys) >= MAX_KEYS:
            break
        if match[1] in own:
            given = _arguments(source, match.end(), several=True)
            texts = [given[i - 1] for i in own[match[1]] if i <= len(given)]
        elif _NO_CITATIONS.fullmatch(match[1]):
            continue
        else:
            texts = _arguments(source, match.end(), several=match[1].lower().endswith("cites"))
        for text in texts:
            keys |= dict.fromkeys(key for part in text.split(",") if (key := part.strip()))
    return [key for key in keys if not re.search(r"[#\\{}]", key)]


def _own_arguments(macro: Macro) -> list[int]:
    """Return which arguments of a macro are citation keys."""
    return sorted({int(match[1]) for match in _OWN.finditer(macro.body)})


def _arguments(source: str, at: int, *, several: bool) -> list[str]:
    r"""Return the arguments in braces that follow a command: one, or for `\cites` and the like all."""
    texts: list[str] = []
    while True:
        value, end = optional(source, at)
        if value is None:
            value, end = argument(source, at)
            if value is None or (texts and not several):
                return texts
            texts.append(value)
        elif texts and not several:
            return texts
        at = end


def cited_references(
    source: str,
    macros: Mapping[str, Macro],
    draft: tuple[Path | None, str],
    notices: list[str],
) -> CitedReferences:
    """Return the references that a draft cites, as its bibliography describes them.

    Args:
        source: The source with its files.
        macros: The macros that the draft defines.
        draft: The path of the draft, None for standard input, and its name in messages.
        notices: Receives lines for the user.
    """
    keys = cited_keys(source, macros)
    if not keys:
        return CitedReferences()
    path, name = draft
    wanted = frozenset(keys)
    entries, sources = _from_files(source, path, notices)
    if _ITEMS.search(source):
        own = bbl_entries(source, wanted)
        sources = sources or ((name,) if own else ())
        entries = own | entries
    elif not entries and path is not None and (file := inside(path.parent, f"{path.stem}.bbl")):
        entries, sources = bbl_entries(decode_tex(read_whole(file)), wanted), (file.name,)
    if not entries and keys != [EVERY_KEY]:
        notices.append(
            f"{plural(len(keys), 'citation key')}, but no bibliography was found (.bib, .bbl or thebibliography): "
            "pass the references with --cited FILE"
        )
        return CitedReferences()
    return look_up(keys, entries, sources, notices)


def _from_files(
    source: str, path: Path | None, notices: list[str]
) -> tuple[dict[str, Entry], tuple[str, ...]]:
    """Return the entries of the `.bib` files that the draft names, and the names of these files."""
    names = [
        name
        for pattern in (_BIBTEX, _BIBLATEX)
        for match in pattern.finditer(source)
        for text in _arguments(source, match.end(), several=False)
        for part in text.split(",")
        if (name := part.strip().strip('"')) and not re.search(r"[#\\{}]|://", name)
    ]
    if path is None:
        if names:
            notices.append(
                f"the bibliography {names[0]} cannot be followed from standard input; "
                "pass the draft by its name, or the references with --cited FILE"
            )
        return {}, ()
    bbl_exists = bool(_ITEMS.search(source)) or inside(path.parent, f"{path.stem}.bbl") is not None
    faults: list[str] = []
    found = read_bibliographies(path.parent, names, (".bib", ""), faults)
    if found[0] or not bbl_exists or any("outside" in fault for fault in faults):
        notices += faults
    return found
