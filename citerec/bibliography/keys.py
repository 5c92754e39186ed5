r"""The plain text of LaTeX and of markup, and the forms in which ids, DOIs, titles and names are compared.

`to_text` is made for titles, names and abstracts: it knows accents, letters, Greek, quotes, dashes and common symbols.
Of any other command the argument stays and the name is dropped. It accepts any input, in linear time: pylatexenc needs
17 s per megabyte, loses `\mbox{…}` and everything after a bare `%`, and latexcodec leaves commands and braces in place.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import unescape
from itertools import filterfalse
from pathlib import Path
from urllib.parse import unquote

from citerec.display import one_line
from citerec.files.reading import read_toml
from citerec.text import normalized
from citerec.types import Paper

_TABLES = read_toml(Path(__file__).with_name("latex.toml"))
_ACCENTS: dict[str, str] = _TABLES["accents"]
LETTERS: dict[str, str] = _TABLES["letters"]
_BASES = LETTERS | {"i": "i", "j": "j"}  # under an accent
_LIGATURES = {"~": " ", "---": "—", "--": "–", "``": "“", "''": "”"}
_SPACES = frozenset(" ,;:\\\t\n")  # as in `\,`: these stand for a space

_NEEDS_WORK = re.compile(r"[\\{}$~]|--|``|''")
_TOKEN = re.compile(
    r"""
      \\(?P<accent>["'`^~=.]|(?:[uvHtcdbkr]|textcommabelow)(?![A-Za-z]))\s?\{?\s?
      (?:\\(?P<inner>["'`^~=.]|[uvHtcdbkr](?![A-Za-z]))\s?\{?\s?)?
      (?:\\(?P<letter>[ijoOlL]|aa|AA|ae|AE|oe|OE)(?![A-Za-z])\s?|(?P<base>[^\W\d_]))
    | \\(?:cite[a-z]*|ref|label|href|begin|end)\s?\{[^{}]*\}
    | \\(?P<command>[A-Za-z]+)\*?(?P<space>\s*)
    | \\(?P<escaped>.)
    | (?P<script>(?<!\\\$)(?<=\$)[_^]|[_^](?=\{|\\circ(?![A-Za-z])))
    | (?P<ligature>~|---?|``|'')
    | (?P<dollar>\$)
    | [{}\\]
    """,
    re.VERBOSE | re.DOTALL,
)


def to_text(latex: str) -> str:
    """Return `latex` as plain Unicode (NFC) on one line, without commands and braces."""
    if not _NEEDS_WORK.search(latex):
        return " ".join(latex.split())
    # An odd number of dollars means money, not a formula: "a $5 bill".
    dollar = "" if latex.count("$") % 2 == 0 else "$"
    text = _TOKEN.sub(lambda token: dollar if token["dollar"] else _plain(token), latex)
    return " ".join(normalized("NFC", text).split())


def _plain(token: re.Match[str]) -> str:
    """Return the text of one piece of LaTeX; empty for a brace or a formatting command."""
    if accent := token["accent"]:
        # LaTeX writes an i under an accent without its dot; Unicode composes the accent with the dotted one.
        letter = token["base"] or _BASES[token["letter"]]
        return letter + _ACCENTS.get(token["inner"], "") + _ACCENTS[accent]
    if command := token["command"]:
        if command in LETTERS:
            return LETTERS[command]
        symbol = _symbols().get(command, "")
        # `\less sub\greater` is a tag, `\log n` are two words
        return symbol if symbol in {"", "<", ">"} else symbol + token["space"]
    if escaped := token["escaped"]:
        return " " if escaped in _SPACES else escaped if escaped in "&%$#_{}" else ""
    return _LIGATURES.get(token["ligature"] or "", "")


@cache
def _symbols() -> dict[str, str]:
    """Return the texts of commands without an argument: of our table, else of pylatexenc."""
    from pylatexenc.latex2text import get_default_latex_context_db

    database = get_default_latex_context_db()
    stated = {
        spec.macroname: text
        for spec in database.iter_macro_specs()
        if isinstance(text := spec.simplify_repl, str)
        and text.isprintable()
        and not set("%<,\\") & set(text)
    }
    return stated | _TABLES["symbols"]


# --- Markup: titles and abstracts are published with HTML, JATS or MathML

_INLINE = r"i|b|u|em|strong|sub|sup|sc|scp|small|tt|italic|bold|span|font|monospace|underline|strike|inf|roman|a"
_BLOCK = r"p|br|div|h[1-6]|li|ul|ol|sec|title|list|list-item|table|tr|td|disp-formula|inline-formula"
_TAG = re.compile(
    rf"</?(?P<block>(?:jats:)?(?:{_BLOCK}))(?:\s[^<>]*+)?/?>"
    rf"|</?(?:(?:jats|mml|m|xlink|ali):[A-Za-z0-9-]++|{_INLINE})(?:\s[^<>]*+)?/?>",
    re.IGNORECASE,
)
# TeX that accompanies the same formula in MathML, and the heading that says no more than that this is an abstract
_DROPPED = re.compile(
    r"<(?P<tex>(?:jats:)?tex-math)\b[^<>]*+>.*?</(?P=tex)>"
    r"|<(?P<head>(?:jats:)?title)>\s*(?:abstract|summary)\.?\s*</(?P=head)>",
    re.IGNORECASE | re.DOTALL,
)
_HEADING = re.compile(r"(?<=[^\s.:?!])\s*</(?:jats:)?title>", re.IGNORECASE)


def plain_text(text: str) -> str:
    """Return `text` without tags and entities, on one line; other angle brackets, as in a < b, are kept."""
    if "<" in text or "&" in text:
        # publishers escape some texts twice: &amp;lt;
        text = _without_tags(unescape(unescape(_without_tags(text))))
    return " ".join(text.split())


def _without_tags(text: str) -> str:
    if "</" not in text and "/>" not in text and "<br" not in text:
        return text
    text = _HEADING.sub(": ", _DROPPED.sub(" ", text))
    return _TAG.sub(lambda tag: " " if tag["block"] else "", text)


# --- Ids and titles

_LATEX_SIGN = re.compile(
    r"(?:\$\\?(?=[<>_]\$)|\\)([^A-Za-z])(?:(?<=[<>_])\$)?|\\[A-Za-z]+\s?|[{}]"
)
_DOI = re.compile(
    r"""
      (?:(?<=doi)|(?<![\w.]))(?!10\.1002/central/)  # Cochrane's number of a record
      10\.\s?[0-9]{4,9}(?:\.[0-9]+)*\s?/\s?
      (?:
        [^\s\x00-\x1f\x7f-\x9f()<>\[\]{}"“”«»|\\^`、。，；…?.,;:'’!*/&\#v]++
        # not before the next DOI or the rest of a link, nor the version of a preprint
      | (?![,;]+(?:https?:|doi\b|10\.[0-9]{4})|&\w+=|\#[a-z]\w)
        (?!/(?:full|e?pdf|abstract|fulltext|meta|html|summary)(?![\w-])|\.(?:pdf|full|html?)\b)
        (?!(?<=[0-9]{4})v[0-9]{1,2}(?![\w-]))[.,;:'’!*/&\#v]
      | \([^\s()\x00-\x1f\x7f-\x9f]*\)
      | \s?[\[<]\s?\w+\s?:[^<>\[\]]{0,99}[\]>](?:\s(?=[0-9]\.[0-9]\.))?  # of a SICI
      )+
      (?<![.,;:'’!*/&])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ONE_WORD = re.compile(r"\s*(?:doi\W+)?\S+\s*", re.IGNORECASE)
_ARXIV = re.compile(
    r"(?:arxiv(?:\.org/(?:abs|pdf)/|:\s?|\s(?:abs/)?)|\bcorr\s(?:abs/)?)"
    r"([0-9]{2}(?:0[1-9]|1[0-2])\.[0-9]{4,5}|[a-z-]+(?:\.[a-z]{2})?/[0-9]{7})",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[\W_]+")
_LATEX = re.compile(r"[\\${}]")
_ASCII = "".join(chr(c).lower() if chr(c).isalnum() else " " for c in range(128))


def link(latex: str) -> str:
    """Return a DOI or link without braces, escapes and commands; two hyphens in it do not become a dash."""
    return _LATEX_SIGN.sub(lambda escape: escape[1] or to_text(escape[0]), latex)


def dois_of(text: str) -> tuple[str, ...]:
    """Return the DOIs in a text, bare and as they are spelt, each once, in their order.

    They may be links of any resolver, proxy or publisher, and have the escapes of LaTeX, HTML and links, or blanks at
    the brackets of a SICI. Punctuation at the end and brackets that do not close are no part of a DOI.
    """
    if "10." not in text:
        return ()
    latex = text.replace("}{", "} {")  # of \\href
    plain = unquote(unquote(unescape(unescape(link(latex)))))
    return tuple(dict.fromkeys("".join(doi.split()) for doi in _DOI.findall(plain)))


def doi_of(text: str) -> str:
    """Return the DOI that `text` is, in any form that `dois_of` reads; empty if it has other words, or is none."""
    return next(iter(dois_of(text)), "") if _ONE_WORD.fullmatch(text) else ""


def arxiv_dois(text: str) -> tuple[str, ...]:
    """Return the DOIs of the papers of arXiv that a text names, such as `arXiv:2101.00001`, without versions."""
    return tuple(f"10.48550/arXiv.{number}" for number in _ARXIV.findall(text))


def paper_doi(paper: Paper) -> str:
    """Return the DOI of a paper: the one that its corpus states, else its id or URL if that is a DOI; else empty."""
    return doi_of(paper.doi) or doi_of(paper.id) or doi_of(paper.url)


def id_key(paper_id: str) -> str:
    """Return the form in which ids are compared: a DOI bare and in lower case, other ids unchanged."""
    return doi_of(paper_id).lower() or paper_id


def title_key(title: str) -> str:
    r"""Return the form in which titles are compared: letters and digits in lower case.

    LaTeX, markup, accents and punctuation are removed, letters of every script stay: `{\"U}ber <i>BERT</i>` and `Uber
    BERT!` both become `uber bert`. A title without letters and digits has an empty key.
    """
    title = plain_text(to_text(title) if _LATEX.search(title) else title)
    if title.isascii():
        return " ".join(title.translate(_ASCII).split())
    plain = _without_accents(normalized("NFKD", title).casefold())
    return " ".join(_SEPARATORS.sub(" ", plain).split())


def _without_accents(text: str) -> str:
    folded = normalized("NFKD", text)
    return "".join(char for char in folded if not unicodedata.combining(char))


# --- Names of authors

# DBLP numbers people of the same name
_ENDING = re.compile(r",?\s(?:jr\.?|sr\.?|ii|iii|iv|[0-9]{4})$", re.IGNORECASE)
_LOWER = re.compile("[a-z]")
_LAST_INITIALS = re.compile(r"\s([A-Z]{1,3})\Z")  # as in PubMed
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=2**14)
def _name_words(name: str) -> Sequence[str]:
    """Return the words of a name in lower case without accents, the family name last."""
    if not name.isascii():
        name = _without_accents(name).replace("’", "")
    name = _ENDING.sub("", name.replace("'", "").strip())
    family, comma, given = name.partition(",")
    if comma:
        name = f"{given} {family}"
    elif (last := _LAST_INITIALS.search(name)) and _LOWER.search(name, 0, last.start()):
        name = f"{' '.join(last[1])} {name[: last.start()]}"
    return _WORD.findall(name.lower())


def name_key(name: str) -> str:
    """Return an author's first initial and family name, such as `r ribler`; empty for a name without letters."""
    words = _name_words(name)
    return f"{words[0][0]} {words[-1]}" if len(words) > 1 else "".join(words)


def same_person(name: str, other: str) -> bool | None:
    """Whether two names are of one person, by the given names; None if one of them has initials alone.

    Given names agree word by word, where one may have fewer or initials: `Jean P. Roe` and `Jean Paul Roe`. Two
    numbers of DBLP must be equal.
    """
    numbers = {match[0] for match in map(_NUMBER.search, (name, other)) if match}
    if name_key(name) != name_key(other) or len(numbers) > 1:
        return False
    given_names = _name_words(name)[:-1]
    two = _name_words(other)[:-1]
    if not given_names or not two or len(given_names[0]) == 1 or len(two[0]) == 1:
        return None
    pairs = zip(given_names[1:], two[1:], strict=False)
    same = given_names[0] == two[0] and all(
        a.startswith(b) or b.startswith(a) for a, b in pairs
    )
    return same or "".join(given_names) == "".join(two)


_PARTICLES = frozenset(
    "al bin da dal de del della den der di do dos du el ibn la las le los op ten ter van von zu zum zur".split()
)
_SUFFIX = re.compile(r"(?:jr|sr)\.?|i{2,3}|iv", re.IGNORECASE)
_INITIALS = re.compile(r"[A-Z]{1,3}")  # after the family name, as in PubMed: Ribler RL
_GROUP = re.compile(
    r"\b(?:consortium|collaboration|group|team|committee|network|project|initiative|society"
    r"|association|foundation|institute|university|organi[sz]ation|inc|llc|and|agency|world bank"
    r"|cent(?:er|re)|commission|council|department|federation|ministry|panel|programme"
    r"|european parliament|secretariat|union)\b|&",
    re.IGNORECASE,
)
_NUMBER = re.compile(r" [0-9]{4}$")  # of DBLP


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a personal name; `given` and `suffix` may be empty."""

    family: str
    given: str = ""
    suffix: str = ""
    group: bool = False  # an organisation, whose full name is in `family`


def split_name(name: str) -> Name:
    """Split `R. L. Ribler`, `Ribler, R. L.`, `Ribler RL` or `Ribler` into its parts.

    A name of one word, or with a comma at its end, is whole; particles (`van der`) belong to the family.
    """
    name = _NUMBER.sub("", one_line(name))
    words = name.split()
    if _GROUP.search(name) and len(words) > 1:
        return Name(name.rstrip(", "), group=True)
    if "," in name:  # `Last, First`, `Last, First, Jr.` or `Last, Jr., First`
        family, *rest = [*filter(None, map(str.strip, name.split(",")))] or [""]
        suffix = " ".join(filter(_SUFFIX.fullmatch, rest))
        given = " ".join(filterfalse(_SUFFIX.fullmatch, rest))
        return Name(
            family, given, suffix, group=not (given or suffix) and " " in family
        )
    suffix = words.pop() if len(words) > 2 and _SUFFIX.fullmatch(words[-1]) else ""
    # capitals after an initial are a family name
    has_initial = any(
        word.endswith(".") or len(word) == 1 or word.isupper() for word in words[:-1]
    )
    if len(words) > 1 and _INITIALS.fullmatch(words[-1]) and not has_initial:
        return Name(" ".join(words[:-1]), words[-1], suffix)
    start = max(len(words) - 1, 0)
    while start > 0 and words[start - 1] in _PARTICLES:
        start -= 1
    return Name(" ".join(words[start:]), " ".join(words[:start]), suffix)
