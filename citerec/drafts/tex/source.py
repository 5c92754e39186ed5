r"""The whole LaTeX source of a draft: without comments and verbatim text, with the files that it includes.

Included files are read from the folder of the draft alone: `..`, absolute paths and links that lead outside are
refused with a notice. All scans are linear in the length of the text.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from citerec.drafts.cited import inside
from citerec.drafts.tex.decoding import decode_tex
from citerec.errors import BadInputError

MAX_SOURCE = 16 * 2**20  # characters of a draft with all its files
MAX_FILES = 500
MAX_DEPTH = 16  # of files that include files

_VERBATIM = (
    r"verbatim\*?|Verbatim\*?|BVerbatim|LVerbatim|lstlisting|minted|alltt|comment|filecontents\*?"
)
_TOKEN = re.compile(
    rf"""
      \\begin\s*\{{(?P<environment>{_VERBATIM})\}}
    | \\(?:verb|lstinline)\*?(?![A-Za-z@{{\[])(?P<quote>[^\s]).*?(?:(?P=quote)|$)
    | (?P<conditional>\\iffalse(?![A-Za-z@])|\\if0(?![0-9]))
    | (?P<escaped>\\[^A-Za-z@])
    | (?P<comment>%[^\n]*(?:\n[ \t]*+(?!\n)|$)?)
    """,
    re.VERBOSE | re.MULTILINE,
)
_CONDITIONAL = re.compile(r"\\(newif\s*\\if[A-Za-z@]*|if[A-Za-z@]*|else|fi)(?![A-Za-z@])")
# macros with an argument, which no \fi closes
_NO_CONDITIONALS = re.compile(r"iff|ifthen.*|ifstr.*|ifblank|ifnot.*|ifbool|iftoggle|ifdefempty")
_INCLUDE = re.compile(
    r"""\\(?P<command>input|include|subfile|subfileinclude|InputIfFileExists|loadglsentries)(?![A-Za-z@])\s*
        (?:\{\s*"?(?P<braced>[^{}"]*?)"?\s*\}|(?P<bare>[^\s{}\\%\[]+))
      | \\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{(?P<folder>[^{}]*)\}\s*\{(?P<file>[^{}]*)\}""",
    re.VERBOSE,
)
_END = re.compile(r"\\end\s*\{document\}|\\endinput(?![A-Za-z@])")
_SUBFILE = re.compile(r"\\documentclass\s*(?:\[[^\]]{0,300}\])?\s*\{(?:subfiles|standalone)\}")
_BEGIN = re.compile(r"\\begin\s*\{document\}")
_NOT_TEXT = (".pdf", ".png", ".jpg", ".jpeg", ".eps", ".cls", ".sty", ".pgf", ".tikz", ".pdf_tex")


def without_comments(text: str) -> str:
    r"""Return LaTeX source without comments, verbatim text and what `\iffalse` hides."""
    pieces: list[str] = []
    unclosed: set[str] = set()  # searched for once
    at = 0
    while match := _TOKEN.search(text, at):
        pieces.append(text[at : match.start()])
        at = match.end()
        if name := match["environment"]:
            end = -1 if name in unclosed else text.find(f"\\end{{{name}}}", at)
            if end < 0:
                unclosed.add(name)
                pieces.append(" ")
            else:
                at = end + len(name) + 6
                pieces.append("\n")
        elif match["conditional"]:
            end = None if "if" in unclosed else _end_of_false(text, at)
            if end is None:
                unclosed.add("if")
            at = end or at
        elif match["escaped"]:
            pieces.append(match[0])
        elif match["quote"]:
            pieces.append(" ")
    pieces.append(text[at:])
    return "".join(pieces)


def _end_of_false(text: str, at: int) -> int | None:
    r"""Return where the text goes on after an `\iffalse` that ends at `at`; None if nothing closes it."""
    depth = 0
    for match in _CONDITIONAL.finditer(text, at):
        word = match[1]
        if word.startswith("newif") or _NO_CONDITIONALS.fullmatch(word):
            continue
        if word.startswith("if"):
            depth += 1
        elif depth == 0:
            return match.end()
        elif word == "fi":
            depth -= 1
    return None


@dataclass(slots=True)
class Source:
    """Reads the source of one draft; `notices` are lines for the user."""

    name: str  # of the draft, in messages
    folder: Path | None  # that of the draft; None for standard input
    notices: list[str] = field(default_factory=list[str])
    left: int = MAX_SOURCE  # characters that may still be read
    files: int = 0

    def flatten(self, text: str, active: tuple[Path, ...] = ()) -> str:
        """Return `text` with the content of the files that it includes.

        Raises:
            BadInputError: If the draft is larger than `MAX_SOURCE`, or has more than `MAX_FILES` files.
        """
        self._count(len(text))
        text = without_comments(text)
        if end := _END.search(text):
            text = text[: end.start()]
        if active and _SUBFILE.search(text) and (begin := _BEGIN.search(text)):
            text = text[begin.end() :]
        return _INCLUDE.sub(lambda match: self._included(match, active), text)

    def _count(self, characters: int) -> None:
        self.left -= characters
        self.files += 1
        if self.left < 0 or self.files > MAX_FILES:
            raise BadInputError(
                self.name,
                f"this LaTeX draft with the files that it includes has more than {MAX_SOURCE // 2**20} MB "
                f"or {MAX_FILES} files; pass its main part alone, or give --title and --abstract",
            )

    def _included(self, match: re.Match[str], active: tuple[Path, ...]) -> str:
        r"""Return the content of the file that a command such as `\input` names; empty, with a notice, if it cannot."""
        name = (match["braced"] or match["bare"] or "").strip()
        if match["file"]:
            name = f"{match['folder'].strip().rstrip('/')}/{match['file'].strip()}".lstrip("/")
            if match["folder"].strip().startswith("/"):
                name = f"/{name}"
        if not name or "#" in name or "\\" in name or name.lower().endswith(_NOT_TEXT):
            return " "
        if self.folder is None:
            return self._without(
                f"{name} cannot be followed from standard input; pass the file by its name"
            )
        try:
            file = self._find(name, active)
        except PermissionError:
            return self._without(f"{name} is outside the folder of the draft; it is not read")
        if file is None:
            return self._without(f"{name} is missing; the draft is read without it")
        if file in active or len(active) >= MAX_DEPTH:
            return self._without(f"{name} includes itself; it is not read again")
        return f"\n{self.flatten(self._text_of(file, name), (*active, file))}\n"

    def _find(self, name: str, active: tuple[Path, ...]) -> Path | None:
        """Return an included file: relative to the draft, as LaTeX looks it up, else to the including file."""
        folder = self.folder or Path()
        suffixes = (".tex", "", ".ltx", ".bbl") if "." not in Path(name).name else ("", ".tex")
        if found := inside(folder, name, suffixes):
            return found
        if not active:
            return None
        parent = active[-1].parent.relative_to(folder.resolve())
        return inside(folder, str(parent / name), suffixes)

    def _text_of(self, file: Path, name: str) -> str:
        try:
            with file.open("rb") as stream:
                data = stream.read(max(self.left, 0) * 4 + 1)
        except OSError as error:
            self.notices.append(f"{name} cannot be read: {error.strerror or error}")
            return ""
        return decode_tex(data)

    def _without(self, notice: str) -> str:
        line = f"\\input: {notice}"
        if line not in self.notices:
            self.notices.append(line)
        return " "
