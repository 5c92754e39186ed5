"""Reads a draft from Markdown: YAML front matter or headings, and pandoc's citations."""

import re
from collections.abc import Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, cast

from citerec.bibliography.doi import doi_of
from citerec.bibliography.paper_list import Entry, entries_by_key
from citerec.bibliography.record import one_line
from citerec.drafts.cited import EVERY_KEY, look_up, read_bibliographies
from citerec.drafts.document import CitedReferences, Document, document_year
from citerec.errors import BadInputError, extra

MAX_FRONT_MATTER = 128 * 2**10  # characters of YAML, whose parser needs seconds for them
MAX_MARKDOWN = 8 * 2**20  # characters
MAX_PART = 60_000  # characters of an abstract or of the first paragraphs, with markup
MAX_NESTED = 100  # brackets within brackets in YAML
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*(?:\{[^{}]*\})?$", re.MULTILINE)
_SETEXT = re.compile(r"^(\S[^\n]*)\n(=+|-{3,})[ \t]*$", re.MULTILINE)
_ABSTRACT = re.compile(r"(?:[\d.]+\s*)?(?:abstract|summary)\s*[.:]?", re.IGNORECASE)
_INTRODUCTION = re.compile(r"[\dI.\s]*introduction\s*[.:]?", re.IGNORECASE)
_CITATION = re.compile(r"(?<![\w.@/\\])-?@(?:\{([^{}\s]+)\}|([\w][\w:.#$%&\-+?<>~/]*))")
_CROSS_REFERENCE = re.compile(
    r"(?:fig|tbl|sec|eq|lst|thm|lem|cor|prp|cnj|def|exm|exr|tab|table|figure):|(?:fig|tbl|sec|eq)-"
)
_MARKUP = (
    (re.compile(r"\[[^\[\]]*@[^\[\]]*\]"), " "),  # [see @key, p. 3]
    (re.compile(r"!\[[^\[\]]*\]\([^()]*\)(?:\{[^{}]*\})?"), " "),
    (re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])"), r"\1"),
    (re.compile(r"\[\^[^\[\]]*\]:?"), " "),
    (re.compile(r"</?[A-Za-z][^<>]*>"), ""),
    (re.compile(r"(\*\*|__|\*|`+)(?=\S)([^*`\n]{1,500}?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<!\w)_(?=\S)([^_\n]{1,500}?)(?<=\S)_(?!\w)"), r"\1"),
    (re.compile(r"^[ \t]*(?:[-*+]|\d+[.)]|>)[ \t]+", re.MULTILINE), ""),
    (re.compile(r"^:::.*$|^[ \t]*\|.*\|[ \t]*$|^[-*_ \t]{3,}$", re.MULTILINE), " "),
    (re.compile(r"\\([\\`*_{}\[\]()#+.!@-])"), r"\1"),
)


def read(data: bytes, name: str, path: Path | None) -> Document:
    """Read a Markdown draft, UTF-8.

    Args:
        data: The text.
        name: The name of the draft in messages.
        path: Its file, whose folder holds its bibliography; None for standard input.

    Raises:
        BadInputError: If its front matter is not valid YAML, or it is not UTF-8.
        MissingExtraError: If PyYAML is not installed.
    """
    from citerec.bibliography.source import decode

    text = decode(data, name, reads="expected Markdown")
    if len(text) > MAX_MARKDOWN:
        size = f"{len(text):,} characters; expected at most {MAX_MARKDOWN:,}"
        raise BadInputError(name, f"this Markdown draft has {size}; pass its first part")
    fields: dict[str, Any] = {}
    front = FRONT_MATTER.match(text)
    if front:
        fields = _front_matter(front[1], name)
        text = text[front.end() :]
    prose = _without_comments(_without_code(text))
    prose = _SETEXT.sub(lambda m: f"{'#' if m[2][0] == '=' else '##'} {m[1]}", prose)
    sections = list(_sections(prose))
    stated = _string(fields.get("title"))
    title = stated or next((heading for _, heading, _ in sections if heading), "")
    notices: list[str] = []
    cited = _cited(prose, fields, (path, name), notices)
    return Document(
        title=_plain(
            f"{title}: {_string(fields['subtitle'])}" if fields.get("subtitle") else title
        ),
        abstract=_plain(_string(fields.get("abstract")) or _section(sections, _ABSTRACT)),
        body=_plain(
            _section(sections, _INTRODUCTION)
            or "\n".join(text for *_, text in islice(sections, 50))
        ),
        authors=tuple(_authors(fields.get("author", fields.get("authors")))),
        year=_year(fields),
        doi=doi_of(_string(fields.get("doi"))),
        cited=cited,
        notices=tuple(notices),
    )


def _front_matter(text: str, name: str) -> dict[str, Any]:
    """Return the fields of YAML front matter."""
    with extra("drafts"):
        import yaml
    if len(text) > MAX_FRONT_MATTER:
        size = f"{len(text):,} characters; expected at most {MAX_FRONT_MATTER:,}"
        raise BadInputError(name, f"its YAML front matter has {size}", line=1)
    if _nested(text) > MAX_NESTED:
        raise BadInputError(name, "its YAML front matter is nested too deeply", line=1)
    try:
        # repeated aliases (&a, *a) may stand for any amount of text; front matter needs none
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            message = "its YAML front matter has aliases (*name); write the values out"
            raise BadInputError(name, message, line=1)
        value = yaml.safe_load(text)
    except RecursionError:
        raise BadInputError(name, "its YAML front matter is nested too deeply", line=1) from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        mark = getattr(error, "problem_mark", None)
        fault = getattr(error, "problem", None) or str(error)
        message = (
            f"its front matter is not valid YAML: {one_line(str(fault))[:100]}; quote the value"
        )
        raise BadInputError(name, message, line=mark.line + 2 if mark else 1) from None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _nested(text: str) -> int:
    """Return how deep brackets are nested at most."""
    depth = most = 0
    for sign in re.findall(r"[\[\]{}]", text):
        depth = max(depth + (1 if sign in "[{" else -1), 0)
        most = max(most, depth)
    return most


def _without_code(text: str) -> str:
    """Leave out fenced code, in which nothing is a heading or a citation, and code within lines."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif match:
            fence = match[1]
        else:
            kept.append(re.sub(r"(`+)(?!`)([^`]*@[^`]*)\1", " ", line))
    return "\n".join(kept)


def _sections(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the level, the heading and the text of each section; level 0 is the text before the first heading."""
    level, heading, start = 0, "", 0
    for match in _HEADING.finditer(text):
        yield level, heading, text[start : match.start()]
        level, heading, start = len(match[1]), match[2], match.end()
    yield level, heading, text[start:]


def _section(sections: list[tuple[int, str, str]], wanted: re.Pattern[str]) -> str:
    return next((text for _, heading, text in sections if wanted.fullmatch(heading.strip())), "")


def _plain(markdown: str) -> str:
    """Return Markdown as plain text on one line; citations, pictures, notes and tables are left out."""
    text = markdown[:MAX_PART]
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return re.sub(r" ([.,;:])", r"\1", one_line(text))


def _without_comments(text: str) -> str:
    pieces: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[at:start])
        at = end + 3
    return "".join([*pieces, text[at:]])


def _string(value: object) -> str:
    return (
        one_line(value) if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    )


def _authors(value: object) -> Iterator[str]:
    """Yield names: a string, a list of strings or of mappings with `name`."""
    values = cast("list[object]", value)[:1000] if isinstance(value, list) else [value]
    for one in values:
        name = _name(cast("dict[str, object]", one)) if isinstance(one, dict) else one
        if isinstance(name, str):
            parts = [name] if isinstance(value, list) else re.split(r"\s*;\s*|\s+and\s+", name)
            cleaned = (one_line(re.sub(r"\^.*?\^|\[\^.*?\]", "", part)) for part in parts)
            yield from filter(None, cleaned)


def _name(fields: dict[str, object]) -> str:
    """Return the name in a mapping: `name: Ada Lovelace`, or as Quarto `name: {given: Ada, family: Lovelace}`."""
    name = fields.get("name", fields)
    if isinstance(name, dict):
        parts = cast("dict[str, object]", name)
        return " ".join(filter(None, (_string(parts.get(key)) for key in ("given", "family"))))
    return _string(name)


def _year(fields: dict[str, Any]) -> int | None:
    value = fields.get("date", fields.get("year"))
    return document_year(str(value)) if isinstance(value, (str, int, date)) else None


def _cited(
    text: str, fields: dict[str, Any], draft: tuple[Path | None, str], notices: list[str]
) -> CitedReferences:
    """Return the references that text, abstract and `nocite` cite, from `bibliography` and `references`."""
    path, name = draft
    abstract = _without_code(_string(fields.get("abstract")))
    found = _CITATION.findall(f"{abstract}\n{text}\n{_nocite(fields)}")
    keys = [key for braced, bare in found if (key := braced or bare.rstrip(":.#$%&-+?<>~/"))]
    keys = [key for key in dict.fromkeys(keys) if not _CROSS_REFERENCE.match(key)]
    if re.search(r"@\*", _nocite(fields)):
        keys.append(EVERY_KEY)
    files = fields.get("bibliography")
    names = [f for f in (files if isinstance(files, list) else [files]) if isinstance(f, str)]
    if not keys or not (names or fields.get("references")):
        return CitedReferences()
    entries, sources = _inline(fields, name)
    if names and path is None:
        notices.append(
            f"the bibliography {names[0]} cannot be followed from standard input; "
            "pass the draft by its name, or the references with --cited FILE"
        )
    elif path is not None:
        more, read_files = read_bibliographies(path.parent, names, ("", ".bib", ".json"), notices)
        entries, sources = entries | more, sources + read_files
    return look_up(keys, entries, sources, notices)


def _nocite(fields: dict[str, Any]) -> str:
    value = fields.get("nocite")
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return " ".join(text for text in values if isinstance(text, str))


def _inline(fields: dict[str, Any], name: str) -> tuple[dict[str, Entry], tuple[str, ...]]:
    """Return the references in the front matter itself, as CSL."""
    import orjson

    references = fields.get("references")
    if not isinstance(references, list) or not references:
        return {}, ()
    try:
        return entries_by_key(orjson.dumps(references), name), (name,)
    except (orjson.JSONEncodeError, BadInputError):
        return {}, ()
