r"""The source of a LaTeX draft for pandoc: with the files that it includes, without comments and verbatim environments.

It also finds the parts that pandoc cannot read, the bibliographies that classes, packages and templates declare, and
the main file of a project.
"""

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path, PurePosixPath

from citerec.display import plural
from citerec.drafts import INSTEAD
from citerec.drafts.cited import braced, inside
from citerec.errors import BadInputError
from citerec.files.atomic import is_regular
from citerec.files.reading import decoded
from citerec.text import word_count

MAX_SOURCE = 16 * 2**20  # characters of a draft with all its files
MAX_FILES = 500

# --- the files that a draft includes

_INCLUDE = r"""
    \\(?:input|include|subfile|subfileinclude)(?![A-Za-z@])\s*(?:\{\s*"?([^{}"]*?)"?\s*\}|([^\s{}\\%\[]+))
  | \\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{([^{}]*)\}\s*\{([^{}]*)\}
"""
_TOKEN = rf"""{_INCLUDE}
  | (?P<left_out>
      \\begin\s*\{{(?P<name>verbatim\*?|[BL]?Verbatim\*?|alltt|lstlisting|minted|comment|filecontents\*?|[SC]?code
        |Code(?:Input|Output)?|S(?:in|out)put|NEW)\}}(?!\s*(?:\[[^\]]*\])?\s*\}}).*?\\end\s*\{{(?P=name)\}}
    | %[^\n]*(?:\n[ \t]*(?!\s))?
    | \\end\s*\{{document\}}.* | \\endinput(?![A-Za-z@]).*)
  | (?P<address>\\(?:url|nolinkurl|path|href)\s*\{{(?:[^{{}}]|\{{[^{{}}]*\}}){{0,2000}}\}})
  | \\(?:verb\*?|Verb\*?|path|url|lstinline(?:\[[^\]]*\])?|mintinline(?:\[[^\]]*\])?\{{[^{{}}]*\}})
    (?:(?P<mark>[^\sA-Za-z*@{{}}[\#\\])[^\n]*?(?P=mark)|\{{(?:[^{{}}\n]|\{{[^{{}}\n]*\}})*\}})
  | (?P<command>\\[A-Za-z@]+)(?=%)
  | \\[^A-Za-z]
"""
_NEW_VERBATIM = re.compile(
    r"\\(?:lstnewenvironment|(?:Define|Recustom)VerbatimEnvironment|newtcblisting|excludecomment)\s*"
    r"(?:\[[^\]]*\])?\{([A-Za-z]+)\}"
)
_PERCENT = re.compile(r"(?<!\\)%")
_BEGIN = re.compile(r"\\begin\s*\{document\}")
_DOCUMENT_CLASS = re.compile(
    r"\\document(?:class|style)(?![A-Za-z@])|\\begin\s*\{document\}"
)
_REWRITTEN = (
    # \"{\i}: pandoc sets the accent on a dotless i, which Unicode does not compose
    (r"\\([\"'`^~=.])\s*\{\s*\\([ij])\s*\}", r"\\\1{\2}"),
    # pandoc knows the third of them alone
    (r"\{flush(?:left|right)\}", "{center}"),
    # at the start of a sentence
    (r"\\Cite(?=[a-z]*[*\s\[{])", r"\\cite"),
    # of Copernicus
    (r"\\Author\s*\[[^\]]*\]\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"\\author{\1 \2}"),
    (r"\\abstract\n", r"\\section*{Abstract}\n"),
    # ICML's title is within the brackets
    (r"\\twocolumn\[", r"\\maketitle "),
)
_NOT_TEXT = tuple(".pdf .png .jpg .eps .cls .sty .pgf .tikz .pdf_tex".split())
_ABSTRACT_COMMAND = re.compile(r"\\abstract\s*\{")


def flatten(data: bytes, name: str, folder: Path | None, notices: list[str]) -> str:
    r"""Return the source of a draft with the files that it includes, up to `\end{document}`.

    In verbatim text, `%` and `\input` mean nothing. Files are read from the folder of the draft alone: `..`, absolute
    paths and links that lead outside are refused; `notices` receives a line for each file that is not read, or not
    UTF-8. BadInputError if the draft has more than `MAX_SOURCE` characters or `MAX_FILES` files.
    """
    sizes = list[int]()

    def included(wanted: str, active: tuple[Path, ...]) -> str:
        # or it is an argument of the command that is defined there
        if wanted.lower().endswith(_NOT_TEXT) or "#" in wanted:
            return " "
        if folder is None:
            reason = "cannot be followed from standard input; pass the file itself"
        else:
            try:
                file = inside(folder, wanted, (".tex", "", ".bbl"))
                if file is None and active:  # relative to the including file
                    parent = active[-1].parent.relative_to(folder.resolve())
                    file = inside(folder, str(parent / wanted), (".tex", "", ".bbl"))
                if file and file not in active:
                    with file.open("rb") as stream:
                        part = stream.read(4 * MAX_SOURCE)
                    return f"\n{expanded(part, wanted, (*active, file))}\n"
                reason = "is missing; the draft is read without it"
                reason = "includes itself; it is not read again" if file else reason
            except PermissionError:
                reason = "is outside the folder of the draft; it is not read"
        if (line := f"\\input: {wanted} {reason}") not in notices:
            notices.append(line)
        return " "

    def expanded(part: bytes, label: str, active: tuple[Path, ...]) -> str:
        source, foreign = decoded(part.replace(b"\0", b""))
        if foreign:
            count = plural(foreign, f"byte of {label} is", f"bytes of {label} are")
            notices.append(f"{count} not UTF-8, and read as Windows-1252")
        sizes.append(len(source))
        if sum(sizes) > MAX_SOURCE or len(sizes) > MAX_FILES:
            raise BadInputError(
                name,
                "this LaTeX draft with the files that it includes has more than "
                f"{MAX_SOURCE // 2**20} MB or {MAX_FILES} files; {INSTEAD}",
            )
        if active and "\\documentclass" in source:  # a subfile has a preamble
            source = _BEGIN.split(source, maxsplit=1)[-1]

        def token(match: re.Match[str]) -> str:
            wanted = "/".join(part.strip() for part in match.groups()[:4] if part)
            if wanted or match["left_out"]:
                return included(wanted, active) if wanted else ""
            # a comment ends a command
            text = f"{match[0]} " if match["command"] else match[0]
            # in arguments, pandoc reads comments; BibTeX breaks lines by them
            if match["address"]:
                text = _PERCENT.sub(r"\\%", re.sub(r"%\n\s*", "", text))
            text = re.sub(r"^\\(?:path|url)\|", r"\\verb|", text)
            return text.replace("\\path", "\\nolinkurl")

        token_pattern = _TOKEN.replace("NEW", "|".join(_NEW_VERBATIM.findall(source)))
        return re.sub(token_pattern, token, source, flags=re.VERBOSE | re.DOTALL)

    return _prepared(
        expanded(data, name, ()).replace("\\jobname", PurePosixPath(name).stem)
    )


def _prepared(source: str) -> str:
    """Return a source without what pandoc reads in another way than LaTeX, or not at all."""
    for pattern, text in _REWRITTEN:
        source = re.sub(pattern, text, source)
    source = _with_known_environments(source)
    command = _ABSTRACT_COMMAND.search(source)
    if command and (abstract := braced(source, command.end() - 1)) is not None:
        # pandoc knows the environment, and reads none in the preamble
        end = command.end() + len(abstract) + 1
        source = source[: command.start()] + source[end:]
        begin = _BEGIN.search(source)
        place = max(command.start(), begin.end() if begin else 0)
        environment = f"\\begin{{abstract}}{abstract}\\end{{abstract}}"
        source = source[:place] + environment + source[place:]
    if _DOCUMENT_CLASS.search(source):  # unfinished drafts may lack either line
        begin = "" if _BEGIN.search(source) else "\n\\begin{document}"
        source += f"{begin}\n\\end{{document}}\n"
    return source


# --- a title without \title

_TITLE = re.compile(
    r"\\(?:(?:icml|mlsys)?t|T)itle\*?\s*(?:\[[^\]]*\]\s*)?\{\s*[^{}#\s]"
)
# of a class or a draft (\thesistitle, \titulo, \titleEN), an option, or of the file
_OTHER_TITLE = re.compile(
    r"""\\(?!(?i:short|sub|sec|chap|part|run|toc|list|ap|head|book|make|job|degree|box|frame|old|new|the(?!sis)|abstract))
      (?P<command>[A-Za-z]*?(?i:title|titre|titel|t[ií]tulo|titolo|tytul)[A-Z]{0,2})\*?\}?\s*(?:\[[^\]]*\]\s*)?\{
    | \\(?:\w*setup\s*\{|usepackage\s*\[)(?:[^{}]|\{[^{}]*\})*?(?<![\w-])(?P<option>title)\s*=\s*\{
    | (?P<file>pdftitle)\s*=\s*\{""",
    re.VERBOSE,
)


def with_title(source: str, notices: list[str]) -> str:
    r"""Return a source with a `\title`: if it has none, the first title that another command or option states."""
    if _TITLE.search(source):
        return source
    for match in _OTHER_TITLE.finditer(source):
        title = braced(source, match.end() - 1) or ""
        is_text = not re.search(r"#|\\begin", title)
        if is_text and (word_count(title) > 1 or "\\" in title):
            name = match[match.lastgroup or 0]
            notices.append(f"no \\title was found: {name} stands for it")
            begin = _BEGIN.search(source, match.end())
            place = begin.end() if begin else match.start()
            return f"{source[:place]}\\title{{{title}}}{source[place:]}"
    return source


# --- environments that pandoc does not know

_ARGUMENTS = r"(?:[ \t]*(?:\[(?:(?!\\\w*cite)[^\[\]])*\]|\{[^{}\\\n]{0,40}\}))*"
_ABSTRACTS = r"(?i)(\\(?:begin|end)\s*\{{)(?!chapter)[^{{}}]*(?:{})[^{{}}]*\}}"
# where none is in English
_OTHER_ABSTRACT = "zusammenfassung|kurzfassung|r[ée]sum|samenvatting"
_NEW_ABSTRACT = re.compile(r"(environment\*?\s*\{)abstract(?=\})")
_EARLY_ABSTRACT = re.compile(
    r"\\begin\{abstract\}((?:(?!\\begin\{document\}).)*?)\\end\{abstract\}(?=.*\\begin\s*\{document\})",
    re.DOTALL,
)
_NEW_ENVIRONMENT = re.compile(r"(?:environment|DocumentEnvironment)\*?\s*\{([^{}]+)\}")
# what pandoc knows, and what is no text
_KNOWN = (
    r"document|abstract|letter|minipage|center|quot(?:e|ation)|verse|itemize|description|enumerate|obeylines|proof|sloppypar"
    r"|otherlanguage|[^{}]*(?:tikz|pic|figure|tab|algo|code|listing|plot|axis|forest|keyword|bib|equation|eqn|align|math"
    r"|array|gather|multline|matrix|cases|split|group|diagram|circuit|acronym|gloss|symbol|affil|author|tree"
    r"|acknowl|dedicat|declar|copyright|epigraph|ccsxml|highlights|image)[^{}]*"
)


def _with_known_environments(source: str) -> str:
    """Return a source without the marks of environments that pandoc does not know, whose text would be lost."""
    abstracts = _ABSTRACTS.format("abstract")
    if not re.search(abstracts, source):
        abstracts = _ABSTRACTS.format(_OTHER_ABSTRACT)
    source = re.sub(abstracts + _ARGUMENTS, r"\1abstract}", source)
    source = _NEW_ABSTRACT.sub(r"\1newabstract", source)
    source = _EARLY_ABSTRACT.sub(r"\\abstract{\1}", source)
    known = "|".join([_KNOWN, *map(re.escape, _NEW_ENVIRONMENT.findall(source))])
    unknown = rf"(?i)\\(?:begin|end)\s*\{{(?!(?:{known})\}})[^{{}}]+\}}{_ARGUMENTS}"
    return re.sub(unknown, "\n\n", source)


# --- parts that pandoc cannot read

_SENTENCE = re.compile(r"(?<=[.!?}]\s)|(?<=\n)")
_WHOLE = re.compile(r"\s*(\\begin\s*\{([^{}]*)\})(.*)(\\end\s*\{\2\})\s*", re.DOTALL)


def without_faults(
    text: str, reads: Callable[[str], bool], before: str = "", after: str = ""
) -> tuple[str, list[str]]:
    """Return a text without the sentences and lines that `reads` refuses between `before` and `after`, and these.

    A TimeoutError of `reads` leaves out the rest as well.
    """
    try:
        if reads(f"{before}\n{text}\n{after}"):
            return text, []
    except TimeoutError:
        return "\n", [text.strip()]
    if whole := _WHOLE.fullmatch(text):
        begin, _, inner, end = whole.groups()
        inner, left_out = without_faults(
            inner, reads, f"{before}\n{begin}", f"{end}\n{after}"
        )
        return f"{begin}{inner}{end}\n", left_out
    parts = [*filter(None, _SENTENCE.split(text))]
    if len(parts) == 1:
        return "\n", [text.strip()]
    # in two parts, outside of groups and environments, and near the middle
    # an environment ends what is still open in it
    opened = (
        1000 * (part.count("\\begin{") - part.count("\\end{"))
        + part.count("{")
        - part.count("}")
        for part in parts
    )
    depths = accumulate(opened, initial=0)
    costs = [
        (depth, abs(2 * place - len(parts)), place)
        for place, depth in enumerate(depths)
    ]
    place = min(costs[1:-1])[-1]
    first, left_out = without_faults("".join(parts[:place]), reads, before, after)
    second, more = without_faults("".join(parts[place:]), reads, before, after)
    return first + second, left_out + more


# --- the files of a project

_BIBLIOGRAPHY = re.compile(
    r"(?:\\\w*[bB]ib\w*\s*(?:\[[^\]]*\]\s*)*\{\s*|(?<![\w./-])(?=[\w./-]+\.bib(?!\w)))([\w./,\s-]+)"
)
_INCLUDED = re.compile(rf"(?m)^[^%\n]*?(?:{_INCLUDE})", re.VERBOSE)
_MAIN_CLASS = re.compile(
    rb"\\documentclass\s*(?:\[[^\]]*\])?\s*\{\s*(?!subfiles|standalone|beamer|letter|scrlttr|moderncv|\w*poster)"
)
_MAIN_NAME = re.compile(
    r"(?i)(?<![a-z])(?:main|ms|paper|thesis|manuscript|article|dissertation)(?![a-z])"
)
_OTHER_NAME = re.compile(
    r"(?i)template|supplement|correction|errat|corrigend|cover[^a-z]?letter|respon[sd]|rebuttal|reviewer|appendi|slide"
    r"|presentation|poster(?!i)|(?<![a-z])(?:si|supp|suppl|cover|letter|reply|replies|talk|example|sample|diff)(?![a-z])"
)


def bibliographies(source: str, path: Path, notices: list[str]) -> list[str]:
    r"""Return the bibliographies in the folder of a draft that it, its own classes or its own packages declare.

    A template may name them by a command of its own, such as `\bibliographyfile`. If none is declared that exists, the
    only one in the folder is returned, and `notices` says so.
    """
    folder = path.parent
    packages = filter(
        is_regular, [*folder.glob("*.[cs][lt][sy]"), *folder.glob("*/*.sty")]
    )
    texts = (re.sub("%.*", "", decoded(file.read_bytes())[0]) for file in packages)
    text = "\n".join([source, *texts])
    names = ",".join(_BIBLIOGRAPHY.findall(text)).split(",")
    files = [f"{name.strip().removesuffix('.bib')}.bib" for name in names]
    if found := [file for file in files if is_regular(folder / file)]:
        return found
    others = [*folder.glob("*.bib")] or [*folder.glob("*/*.bib")]
    if len(others) != 1:
        return []
    notices.append(
        f"{others[0].name}, the only bibliography in the folder of the draft, is used"
    )
    return [str(others[0].relative_to(folder))]


def main_file(sources: Mapping[str, bytes]) -> str:
    """Return the name of the main file among the LaTeX files of a project: what includes others, then by its name."""
    includes = {
        name: {
            PurePosixPath("".join(file)).stem
            for file in _INCLUDED.findall(decoded(source)[0])
        }
        for name, source in sources.items()
    }
    parts = set[str]().union(*includes.values())
    stems = {PurePosixPath(name).stem for name in sources}
    return min(
        sources,
        key=lambda name: (
            PurePosixPath(name).stem in parts,
            not _MAIN_CLASS.search(sources[name]),
            bool(_OTHER_NAME.search(name)),
            -len(includes[name] & stems),
            not _MAIN_NAME.search(name),
            name.count("/"),
            -len(sources[name]),
        ),
    )
