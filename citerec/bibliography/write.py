r"""Writes papers as BibTeX, RIS and CSL-JSON, without abstracts because of their licences.

BibTeX is UTF-8, with LaTeX's special characters escaped and capitals protected. A brace in a title is written as a
command: BibTeX also counts the brace of `\{`, and an unbalanced one would end the entry.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, product
from string import ascii_lowercase

from citerec.bibliography.keys import LETTERS, doi_of, paper_doi, split_name
from citerec.bibliography.publication import KINDS, Kind, kind_of
from citerec.display import one_line, web_address
from citerec.files.checksums import indented_json
from citerec.text import normalized
from citerec.types import Json, Paper

NO_NOTES: Mapping[str, str] = {}  # of an author, by id
RETRACTED = "Retracted"  # the note of such a paper
LONG = 3  # words of a title; a shorter one in capitals only may be an acronym
_ASCII = str.maketrans({letter: name.lower() for name, letter in LETTERS.items()})
_STOP = frozenset(
    "a an and are as at by can do does for from how in is it of on or the to toward towards via what with".split()
)
_SMALL = _STOP | frozenset("de del della der des di du e el et la le und y".split())
_WORD = re.compile(r"[^\W_]+")
# words that stay so in a name in capitals only: acronyms, numbers of volumes, and what has no vowel or a digit
_CAPITALS = re.compile(
    r"(?:AAAI|ACM|ACS|AI|AIAA|AIDS|AIP|AMS|AOAC|ASCE|ASEE|ASME|AVMA|DNA|EMBO|EURASIP|FAO|FASEB|FEBS|FEMS|HIV|IBM|ICES"
    r"|IEE|IEEE|IEICE|IET|IFAC|ILR|IOP|ISME|ISPRS|IUCN|JAIR|JAMA|JASIST|NATO|OECD|PLOS|PNAS|RNA|SAE|SIAM"
    r"|SIG(?:ACT|CHI|COMM|GRAPH|IR|KDD|METRICS|MOD|PLAN)|SPIE|UK|USA|USENIX|[IVX]{2,}|[^\W\dAEIOUY_]{3,}"
    r"|\w*\d\w*(?<!ST|ND|RD|TH))\Z"
)
_LONG_WORD = re.compile(r"[^\W\d_]{8}")
# not in brackets, as an acronym is, nor of one such as CG&A
_NAME_WORD = re.compile(r"(?<![\w(&])\w+(?:['’]S\b)?(?![\w&])")
_ESCAPES = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_"},
        "{": r"{\textbraceleft}",
        "}": r"{\textbraceright}",
        "~": r"{\textasciitilde}",
        "^": r"{\textasciicircum}",
        "\\": r"{\textbackslash}",
    }
)
_START = re.compile(r"[:.?!—–]|\s-\s")  # of a sentence or subtitle
_RANGE = re.compile(r"(?<=\w)\s*[-\u2010-\u2015]+\s*(?=\w)")
_RUNS = re.compile(r"([-`'])(?=\1)")
_UNDERSCORE = re.compile(r"(?<!\$)\\_(?!\{)")


def citation_keys(papers: Sequence[Paper], taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield a key for each paper: last name of the first author, year, first word of the title that is no stop word.

    It is ASCII in lower case; a key that is in use gets a letter. `taken` are keys that are in use, in any case.
    """
    used = {key.lower() for key in taken}
    for paper in papers:
        family = _ascii(split_name(paper.authors[0]).family) if paper.authors else ""
        words = (_ascii(word) for word in _WORD.findall(paper.title))
        word = next((w for w in words if w and w not in _STOP), "")
        base = f"{family or 'anon'}{paper.year or ''}{word}"
        ends = (
            "".join(end) for n in count() for end in product(ascii_lowercase, repeat=n)
        )
        key = next(key for end in ends if (key := base + end) not in used)
        used.add(key)
        yield key


def _ascii(text: str) -> str:
    """Return the letters and digits of `text` in ASCII and lower case, without accents."""
    plain = (
        normalized("NFKD", text)
        .translate(_ASCII)
        .encode("ascii", "ignore")
        .decode()
        .lower()
    )
    return "".join(_WORD.findall(plain))


# --- BibTeX


def bibtex_entry(key: str, paper: Paper, note: str = "") -> str:
    """Return a paper as an entry with an author's note, which ends with a line feed."""
    name, fields = bibtex_record(paper, note)
    lines = [f"  {field} = {{{value}}},\n" for field, value in fields.items()]
    return f"@{name}{{{key},\n{''.join(lines)}}}\n"


def bibtex_record(paper: Paper, note: str = "") -> tuple[str, dict[str, str]]:
    """Return the type of the entry of a paper, and the fields that are not empty, in LaTeX."""
    kind = kind_of(paper)
    doi = paper_doi(paper)
    pages = _RANGE.sub("--", one_line(paper.pages))  # `@misc` has none
    venue, publisher = _venue_and_publisher(paper, kind)
    where = {
        "venue": venue,
        "publisher": publisher,
        "place": venue or publisher,
        "volume": paper.volume,
        "issue": paper.issue,
    }
    fields = {
        "title": _title(one_line(paper.title)),
        "author": " and ".join(
            _bibtex_name(name) for name in paper.authors if one_line(name)
        ),
        "year": str(paper.year) if paper.year is not None else "",
        **{
            field: _escape(one_line(where[part]))
            for field, part in KINDS[kind]["published"].items()
        },
        "pages": "" if kind in {Kind.PREPRINT, Kind.UNKNOWN} else _escape(pages),
        # No characters of a DOI may form a ligature, as `--` would form a dash. An underscore stays where it cannot be
        # a subscript: styles and programs treat a DOI as a link, not as LaTeX.
        "doi": _UNDERSCORE.sub("_", _RUNS.sub(r"\1{}", _escape(doi))),
        "url": "" if doi and doi_of(paper.url) else web_address(paper.url),
        "note": RETRACTED if paper.retracted else "",
        "annotation": _escape(one_line(note)),
    }
    name = "mastersthesis" if "master" in paper.type.lower() else KINDS[kind]["bibtex"]
    return name, {field: value for field, value in fields.items() if value}


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _title(title: str) -> str:
    """Escape a title and put words such as BERT in braces: styles set titles in lower case.

    In a title whose long words are mostly in lower case, every other capital is of a name. The capitals of a long title
    in capitals only, as Web of Science has some, mean nothing and are not protected.
    """
    if title.isupper() and len(title.split()) > LONG:
        return _escape(title)
    text = ""
    end = 0
    capitals = [word[0].isupper() for word in _WORD.findall(title)[1:] if len(word) > 3]
    has_names = 3 * sum(capitals) < len(capitals)
    for word in _WORD.finditer(title):
        is_inside = end > 0 and not _START.search(title[end : word.start()])
        # a capital that is not due to its position in a title or sentence
        lone = (
            len(word[0]) == 1
            and word[0].isupper()
            and word[0] != "A"
            and word.start() > 0
        )
        is_name = lone or (has_names and is_inside and word[0][0].isupper())
        has_inner = is_name or any(letter.isupper() for letter in word[0][1:])
        text += _escape(title[end : word.start()]) + (
            f"{{{word[0]}}}" if has_inner else word[0]
        )
        end = word.end()
    return text + _escape(title[end:])


def _bibtex_name(name: str) -> str:
    parts = split_name(name)
    if parts.group or not parts.given:
        return _name_part(
            parts.family, keep_together=parts.group or " " in parts.family
        )
    return ", ".join(
        _name_part(p) for p in (parts.family, parts.suffix, parts.given) if p
    )


def _name_part(text: str, *, keep_together: bool = False) -> str:
    """Escape a part of a name, in braces if BibTeX would split it at a comma or an `and`."""
    splits = keep_together or "," in text or "and" in text.lower().split()
    return f"{{{_escape(text)}}}" if splits else _escape(text)


def bibtex(
    papers: Sequence[Paper],
    notes: Mapping[str, str] = NO_NOTES,
    taken: Iterable[str] = (),
) -> str:
    """Return papers as entries of BibTeX, with a blank line between them; `notes` are by id, `taken` are keys."""
    texts = (notes.get(paper.id, "") for paper in papers)
    return "\n".join(map(bibtex_entry, citation_keys(papers, taken), papers, texts))


# --- DOIs, RIS and CSL-JSON


def ris(
    papers: Sequence[Paper],
    keys: Iterable[str] | None = None,
    notes: Mapping[str, str] = NO_NOTES,
) -> str:
    """Return papers as records of RIS, a blank line after each but the last; `keys` are in place of their ids."""
    texts = (notes.get(paper.id, "") for paper in papers)
    records = list(
        map(_ris_record, keys or [paper.id for paper in papers], papers, texts)
    )
    import rispy

    # rispy writes a number before each record, which is not part of RIS
    writer = type("Writer", (rispy.RisWriter,), {"set_header": lambda self, count: ""})  # pyright: ignore[reportUnknownLambdaType]
    return rispy.dumps(records, implementation=writer) if records else ""


def _ris_record(key: str, paper: Paper, note: str) -> Json:
    kind = kind_of(paper)
    first, _, last = one_line(paper.pages).partition("-")
    venue, publisher = _venue_and_publisher(paper, kind)
    names = csl_item(paper).get("author", [])
    record = {
        "type_of_reference": KINDS[kind]["ris"],
        "id": one_line(key),
        "title": one_line(paper.title),
        "authors": [", ".join(name.values()) for name in names],
        "year": str(paper.year) if paper.year is not None else "",
        "journal_name" if kind is Kind.JOURNAL else "secondary_title": venue,
        "volume": one_line(paper.volume),
        "number": one_line(paper.issue),
        "start_page": first.strip(),
        "end_page": last.strip("- "),
        "publisher": publisher,
        "doi": paper_doi(paper),
        "urls": [url] if (url := web_address(paper.url)) else [],
        "notes": _notes(paper, note),
    }
    return {name: value for name, value in record.items() if value}


def dois(papers: Sequence[Paper]) -> str:
    """Return the DOIs of papers, each once and on a line; papers without one are left out."""
    found = dict.fromkeys(filter(None, map(paper_doi, papers)))
    return "".join(f"{doi}\n" for doi in found)


def csl(papers: Sequence[Paper], notes: Mapping[str, str] = NO_NOTES) -> str:
    """Return papers as a list of CSL-JSON, with their ids."""
    items = [csl_item(paper, notes.get(paper.id, "")) for paper in papers]
    return indented_json(items).decode()


def csl_item(paper: Paper, note: str = "") -> Json:
    """Return a paper as an item of CSL-JSON."""
    kind = kind_of(paper)
    venue, publisher = _venue_and_publisher(paper, kind)
    if kind is Kind.PREPRINT and not publisher:  # CSL has the server as the publisher
        venue, publisher = "", venue
    fields = {
        "id": paper.id,
        "type": KINDS[kind]["csl"],
        "title": one_line(paper.title),
        "author": [
            {"literal": name.family}
            if name.group
            else {
                k: v for k in ("family", "given", "suffix") if (v := getattr(name, k))
            }
            for name in map(split_name, filter(one_line, paper.authors))
        ],
        "issued": {"date-parts": [[paper.year]]} if paper.year is not None else None,
        "container-title": venue,
        "volume": one_line(paper.volume),
        "issue": one_line(paper.issue),
        "page": one_line(paper.pages),
        "publisher": publisher,
        "DOI": paper_doi(paper),
        "URL": web_address(paper.url),
        "note": "; ".join(_notes(paper, note)),
    }
    return {name: value for name, value in fields.items() if value}


def _notes(paper: Paper, note: str) -> list[str]:
    """Return what a reference manager shows as notes: that a paper was retracted, and an author's note."""
    return [*filter(None, (RETRACTED if paper.retracted else "", one_line(note)))]


def _venue_and_publisher(paper: Paper, kind: Kind) -> tuple[str, str]:
    """Return the venue and the publisher of a paper; either may be empty."""
    venue = one_line(paper.venue)
    is_name = len(venue.split()) > LONG or _LONG_WORD.search(venue)  # no acronym
    if venue.isupper() and (is_name or kind is Kind.JOURNAL):
        venue = _NAME_WORD.sub(_in_title_case, venue)
    publisher = one_line(paper.publisher)
    # they have no venue; one without a publisher is published by what the corpus calls so, such as a university
    if kind in {Kind.BOOK, Kind.THESIS, Kind.REPORT} and not publisher:
        return "", venue
    return venue, publisher


def _in_title_case(word: re.Match[str]) -> str:
    """Return a word of a name in capitals as it is written in a title."""
    if _CAPITALS.match(word[0]):
        return word[0]
    around = word.string[word.start() - 1 : word.end() + 1]
    is_small = around == f" {word[0]} " and word[0].lower() in _SMALL
    return word[0].lower() if is_small else word[0].capitalize()
