"""Reads whole texts from XML: JATS, as PubMed Central and publishers have it, and TEI, as GROBID writes it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, fromstring

from citerec.bibliography.entry import Entry, first_year
from citerec.bibliography.keys import dois_of
from citerec.display import one_line
from citerec.errors import BadInputError
from citerec.library.texts import CitingSentence, FullText, citing_sentences, mark

_NAMESPACE = re.compile(r"\{[^{}]*\}")
_IS_TEXT = re.compile(rb"<(?:\w+:)?(?:TEI|front|article-meta)\b")

# where JATS and TEI have the parts of an article, and of a reference
_TITLES = ("front//title-group/article-title", "teiHeader//titleStmt/title")
_ABSTRACTS = ("front//abstract", "teiHeader//abstract")
_DATES = ("front//pub-date/year", "teiHeader/fileDesc//date")
_AUTHORS = (
    "front//contrib[@contrib-type='author']",
    "teiHeader//sourceDesc//analytic/author",
)
_VENUES = ("front//journal-title", "teiHeader//sourceDesc//monogr/title")
_DOIS = (
    "front//article-id[@pub-id-type='doi']",
    "teiHeader//sourceDesc//idno[@type='DOI']",
)
_REFERENCES = ("back//ref", "text/back//listBibl/biblStruct")
_BODIES = ("body", "text/body")
_WORKS = (".//article-title", ".//chapter-title", ".//data-title", "analytic/title")
_PEOPLE = {"name", "persName", "string-name", "collab"}
_NAMES = ("given-names", "forename", "surname")
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_STATED = ("{http://www.w3.org/1999/xlink}href", "when", "from", "to")
# what a sentence of a paragraph leaves out
_LEFT_OUT = frozenset(
    "table-wrap fig fig-group disp-formula boxed-text supplementary-material fn xref-group figure formula note".split()
)


def is_xml_text(head: bytes) -> bool:
    """Whether a file is JATS or TEI, by its first bytes."""
    return head.startswith(b"<") and bool(_IS_TEXT.search(head))


def read_xml(data: bytes, file: Path) -> FullText:
    """Read an article in JATS or TEI; BadInputError if its XML is not well-formed."""
    try:
        root = fromstring(data)
    except ParseError as error:
        raise BadInputError(file, f"the XML is damaged: {error}") from error
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
    inner = root.find(".//article")  # of a set, as PubMed Central sends it
    article = root if inner is None else inner
    references = _all(article, _REFERENCES)
    ids = (ref.get("id", ref.get(_XML_ID, "")) for ref in references)
    places = {name: place for place, name in enumerate(ids)}
    abstracts = _all(article, _ABSTRACTS)[:1]
    paragraphs = [p for abstract in abstracts for p in abstract.iter("p")]
    years = [_year(date) for date in _all(article, _DATES)]
    return FullText(
        entry=Entry(
            title=_first(article, _TITLES),
            abstract=" ".join(map(_text, paragraphs)),
            year=min(filter(None, years), default=None),
            authors=tuple(name for a in _all(article, _AUTHORS) for name in _people(a)),
            venue=_first(article, _VENUES),
            dois=dois_of(_first(article, _DOIS)),
        ),
        references=tuple(map(_reference, references)),
        sentences=tuple(_sentences(article, places)),
    )


def _all(element: Element, paths: tuple[str, ...]) -> list[Element]:
    return [found for path in paths for found in element.iterfind(path)]


def _first(element: Element, paths: tuple[str, ...]) -> str:
    """Return the text of the first element on some paths, with that of its markup; empty without one."""
    return next(filter(None, map(_text, _all(element, paths))), "")


def _text(element: Element) -> str:
    return one_line("".join(element.itertext()))


def _year(date: Element) -> int | None:
    return first_year(date.get("when") or _text(date))


def _people(element: Element) -> Iterator[str]:
    """Yield names, each as `First Last`."""
    for person in element.iter():
        if person.tag in _PEOPLE:
            yield " ".join(map(_text, _all(person, _NAMES))) or _text(person)


def _reference(element: Element) -> Entry:
    """Return a reference; its text has a blank between its fields, and what its attributes state."""
    stated = [part.get(name, "") for part in element.iter() for name in _STATED]
    text = one_line(" ".join([*element.itertext(), *stated]))
    years = [_year(date) for date in _all(element, (".//year", ".//date"))]
    return Entry(
        text=text,
        title=_first(element, _WORKS),
        year=next(iter(years), None),
        authors=tuple(_people(element)),
        dois=dois_of(text),
    )


def _sentences(article: Element, places: Mapping[str, int]) -> Iterator[CitingSentence]:
    def pieces(element: Element) -> Iterator[str]:
        if "bibr" in {element.get("ref-type"), element.get("type")}:
            names = f"{element.get('rid')} {element.get('target')}"
            keys = names.replace("#", " ").split()
            yield mark(places[key] for key in keys if key in places)
        elif element.tag not in _LEFT_OUT:
            yield element.text or ""
            for child in element:
                yield from pieces(child)
                yield child.tail or ""

    for body in _all(article, _BODIES):
        yield from citing_sentences("".join(pieces(p)) for p in body.iter("p"))
