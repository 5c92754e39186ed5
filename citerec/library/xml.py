"""Reads whole texts from XML: JATS, as PubMed Central and publishers have it, and TEI, as GROBID writes it."""

import re
from collections.abc import Callable, Iterable, Iterator
from xml.etree.ElementTree import Element, ParseError, fromstring

from citerec.bibliography.entry import first_year
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.display import one_line
from citerec.errors import BadInputError
from citerec.library.texts import FullText, Marks, Reference, Sentence

_NAMESPACE = re.compile(r"\{[^{}]*\}")
_ROOT = re.compile(rb"<(?:\w+:)?(article|TEI)\b")
_HEAD = re.compile(rb"\s*<\?xml|\s*<!DOCTYPE|\s*<")
# what a sentence of a paragraph leaves out
_LEFT_OUT = frozenset(
    "table-wrap fig fig-group disp-formula boxed-text supplementary-material fn xref-group figure formula note".split()
)
_CITATIONS = {"element-citation", "mixed-citation", "citation", "nlm-citation"}


def xml_kind(head: bytes) -> str:
    """Return whether a file is JATS or TEI by its first bytes; empty if it is neither."""
    if not _HEAD.match(head.removeprefix(b"\xef\xbb\xbf")):
        return ""
    root = _ROOT.search(head)
    if root is None:
        return ""
    is_article = b"<front" in head or b"article-meta" in head or b"JATS" in head
    if root[1] == b"TEI":
        return "TEI"
    return "JATS" if is_article else ""


def read_xml(data: bytes, name: str) -> FullText:
    """Read an article; BadInputError if its XML is not well-formed, or it is neither JATS nor TEI."""
    try:
        root = fromstring(data)
    except ParseError as error:
        raise BadInputError(name, f"the XML is damaged: {error}") from error
    for element in root.iter():
        element.tag = _NAMESPACE.sub("", element.tag)
    article = root if root.tag == "article" else root.find(".//article")
    if article is not None:
        return _jats(article)
    if root.tag == "TEI":
        return _tei(root)
    raise BadInputError(
        name, f"this XML begins with <{root.tag}>; expected JATS or TEI"
    )


def _text(element: Element | None) -> str:
    """Return the text of an element with that of its markup, on one line."""
    return "" if element is None else one_line("".join(element.itertext()))


def _first(element: Element, *paths: str) -> str:
    texts = (_text(found) for path in paths for found in element.iterfind(path))
    return next(filter(None, texts), "")


def _words(element: Element) -> str:
    """Return the texts of an element with a blank between them, as the fields of a reference need it."""
    return one_line(" ".join(element.itertext()))


def _cited(
    body: Element | None, tokens: Callable[[Element, Marks], str]
) -> tuple[Sentence, ...]:
    """Return the sentences of a body that cite; `tokens` returns what stands for a mark, empty if it is none."""
    marks = Marks()

    def pieces(element: Element) -> Iterator[str]:
        token = tokens(element, marks)
        if token:
            yield token
        elif element.tag not in _LEFT_OUT:
            yield element.text or ""
            for child in element:
                yield from pieces(child)
                yield child.tail or ""

    paragraphs = () if body is None else body.iter("p")
    return tuple(
        sentence
        for paragraph in paragraphs
        for sentence in marks.sentences("".join(pieces(paragraph)))
    )


# --- JATS


def _jats(article: Element) -> FullText:
    meta = article.find("front/article-meta")
    front = Element("none") if meta is None else meta
    group = front.find("title-group")
    abstracts = [a for a in front.iterfind("abstract") if not a.get("abstract-type")]
    years = [
        first_year(_text(date))
        for path in ("pub-date/year", "history/date/year")
        for date in front.iterfind(path)
    ]
    refs = [*article.iterfind("back//ref-list//ref")]
    places = {ref.get("id", ""): place for place, ref in enumerate(refs)}

    def tokens(element: Element, marks: Marks) -> str:
        if element.tag != "xref" or element.get("ref-type") != "bibr":
            return ""
        named = (places.get(name) for name in element.get("rid", "").split())
        return marks.token(place for place in named if place is not None)

    return FullText(
        title=_first(group, "article-title") if group is not None else "",
        abstract=" ".join(map(_paragraphs, abstracts[:1])),
        year=min(filter(None, years), default=None),
        authors=tuple(
            _people(front.iterfind("contrib-group/contrib[@contrib-type='author']"))
        ),
        venue=_first(article, "front/journal-meta//journal-title"),
        ids=tuple(_ids(front.iterfind("article-id"))),
        references=tuple(map(_jats_reference, refs)),
        sentences=_cited(article.find("body"), tokens),
    )


def _paragraphs(abstract: Element) -> str:
    """Return the titles and paragraphs of an abstract."""
    return one_line(
        " ".join(_text(part) for part in abstract.iter() if part.tag in {"p", "title"})
    )


def _people(people: Iterable[Element]) -> Iterator[str]:
    for person in people:
        name = person if person.tag == "name" else person.find("name")
        if name is not None:
            parts = (
                _text(name.find(part)) for part in ("given-names", "surname", "suffix")
            )
            yield " ".join(filter(None, parts))
        elif group := _first(person, "collab", "string-name"):
            yield group


def _ids(elements: Iterable[Element]) -> Iterator[str]:
    """Yield DOIs and PMIDs of JATS, with the name of what they are."""
    for element in elements:
        kind = element.get("pub-id-type", "")
        text = _text(element)
        if kind == "doi":
            yield from dois_of(text)[:1]
        elif kind == "pmid" and text.isdecimal():
            yield f"pmid:{text}"
        elif kind == "arxiv":
            yield from arxiv_dois(f"arXiv:{text.removeprefix('arXiv:')}")


def _jats_reference(ref: Element) -> Reference:
    cited = next(
        (
            child
            for child in ref.iter()
            if child.tag
            in {"element-citation", "mixed-citation", "citation", "nlm-citation"}
        ),
        ref,
    )
    text = _text(cited) if cited.tag == "mixed-citation" else _words(cited)
    links = [
        value
        for child in cited.iter()
        for value in child.attrib.values()
        if "10." in value
    ]
    ids = [*_ids(cited.iter("pub-id")), *dois_of(text), *dois_of(" ".join(links))]
    return Reference(
        text=text,
        ids=tuple(dict.fromkeys(ids)),
        title=_first(cited, "article-title", "chapter-title", "data-title", "source"),
        year=first_year(_first(cited, "year")),
        authors=tuple(_people(cited.iter("name"))),
    )


# --- TEI


def _tei(root: Element) -> FullText:
    header = root.find("teiHeader")
    head = Element("none") if header is None else header
    source = head.find("fileDesc/sourceDesc/biblStruct")
    own = _tei_reference(Element("none") if source is None else source)
    structs = [*root.iterfind("text/back//listBibl/biblStruct")]
    names = (
        next((v for k, v in s.attrib.items() if k.endswith("id")), "") for s in structs
    )
    places = {name: place for place, name in enumerate(names)}

    def tokens(element: Element, marks: Marks) -> str:
        if element.tag != "ref" or element.get("type") != "bibr":
            return ""
        named = (
            places.get(name.lstrip("#")) for name in element.get("target", "").split()
        )
        return marks.token(place for place in named if place is not None)

    return FullText(
        title=_first(head, "fileDesc/titleStmt/title") or own.title,
        abstract=" ".join(map(_paragraphs, head.iterfind("profileDesc/abstract"))),
        year=own.year or first_year(_first(head, "fileDesc/publicationStmt/date")),
        authors=own.authors,
        venue=_first(head, "fileDesc/sourceDesc/biblStruct/monogr/title"),
        ids=own.ids,
        references=tuple(map(_tei_reference, structs)),
        sentences=_cited(root.find("text/body"), tokens),
    )


def _tei_reference(struct: Element) -> Reference:
    dates = [date.get("when") or _text(date) for date in struct.iter("date")]
    note = _first(struct, "note[@type='raw_reference']")
    numbers = " ".join(
        scope.get("from") or _text(scope) for scope in struct.iter("biblScope")
    )
    text = note or f"{_words(struct)} {numbers} {' '.join(dates)}"
    ids = [doi for number in struct.iter("idno") for doi in dois_of(_text(number))[:1]]
    arxiv = [
        _text(number) for number in struct.iter("idno") if number.get("type") == "arXiv"
    ]
    named = [f"arXiv:{number.removeprefix('arXiv:')}" for number in arxiv]
    people = [
        " ".join(map(_text, (*name.iterfind("forename"), *name.iterfind("surname"))))
        for name in struct.iter("persName")
    ]
    return Reference(
        text=text,
        ids=tuple(dict.fromkeys([*ids, *arxiv_dois(" ".join(named))])),
        title=_first(struct, "analytic/title", "monogr/title"),
        year=first_year(" ".join(dates)),
        authors=tuple(filter(None, people)),
    )
