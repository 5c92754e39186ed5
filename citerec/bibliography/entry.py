"""One entry of a bibliography: what identifies its paper, whether it is a preprint, and its conversion to a query."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from citerec.bibliography.keys import id_key, title_key
from citerec.display import one_line
from citerec.errors import BadInputError, InvalidValueError
from citerec.types import MAX_ABSTRACT, MAX_TITLE, Query, QueryKind

_FOUR_DIGITS = re.compile(r"(?<![0-9])[1-9][0-9]{3}(?![0-9])")
SERVER = re.compile(  # names of preprint servers
    r"(?<!\w)(?:ar[xχ]iv|(?:bio|med|chem|psya|eng|soca)r?xiv|CoRR|SSRN|Research Square|preprints?)(?!\w)",
    re.IGNORECASE,
)
_PREPRINT = re.compile(
    # servers with one DOI for all versions of a paper
    r"(?:ar|bior|medr|chemr)xiv\.org/|10\.48550/|10\.(?:1101|64898)/(?=[0-9]{6}|20[0-9]{2}\.)"
    # the whole DOI, where each version has one of its own, or may have
    r"|(?:10\.2139/ssrn|10\.21203/rs\.|10\.26434/chemrxiv|10\.312(?:19|2[0-9]|3[0-7])/|10\.[0-9]{4,5}/osf\.io"
    r"|10\.20944/preprints|10\.22541/|10\.36227/techrxiv|10\.1002/essoar|10\.33774/|10\.7287/peerj\.preprints"
    r"|10\.2196/preprints|10\.3386/w|10\.5194/(?:egusphere|\w+-20[0-9]{2}-[0-9]+$)"
    r"|10\.5281/zenodo|10\.6084/m9|10\.7554/elife\.[0-9]+\.[0-9]|10\.12688/).*",
    re.IGNORECASE,
)
# of BibTeX, RIS and CSL: an entry of such a type is no preprint, whatever it says of an eprint
_OTHER_TYPE = re.compile(
    r"thes|dissert|report|rprt|conf|cpaper|proceedings|chap|book|incollection|software|data|comp"
)
# of BibTeX, RIS and CSL; an entry of such a type without a venue is taken for a preprint
_TYPES = frozenset("unpublished unpb preprint article manuscript".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a list or a file of papers; a field that it does not state is empty."""

    ids: tuple[str, ...] = ()  # as in the file
    title: str = ""  # as plain text
    abstract: str = ""
    year: int | None = None
    authors: tuple[str, ...] = ()
    venue: str = ""
    key: str = ""  # its citation key or id in the file
    has_citation_key: bool = False  # that `key` is one, of an author's choice
    dois: tuple[str, ...] = ()  # bare
    preprints: tuple[str, ...] = ()  # DOIs of its copies on arXiv
    context: str = ""  # the sentence that needs references
    body: str = ""  # of a draft, with its headings and paragraphs in lines
    is_preprint: bool = False
    line: int | None = None  # where it starts, from 1; None in a JSON list
    text: str = ""  # a reference as a draft prints it, searched for the titles and DOIs of a corpus
    label: str = ""  # its name in messages; empty if the line is enough
    source: str = ""  # of BibTeX, the entry as it is written
    note: str = ""  # of the author, in JSON

    @property
    def place(self) -> str:
        """Where it is in its file, for messages."""
        return ": ".join(
            filter(None, (f"line {self.line}" if self.line else "", self.label))
        )

    @property
    def is_named(self) -> bool:
        """Whether it has an id, a title or a text."""
        return bool(self.ids or title_key(self.title) or self.text)

    def error(self, name: Path | str, message: str) -> BadInputError:
        """Return the error for a fault in this entry of the file `name`."""
        full_message = f"{self.label}: {message}" if self.label else message
        return BadInputError(name, full_message, line=self.line)

    def to_query(self, name: Path | str, default_id: str) -> Query:
        """Return the entry as a query; BadInputError if a text is too long, or empty as a title."""
        title, abstract, context = map(
            one_line, (self.title, self.abstract, self.context)
        )
        if (
            len(title) > MAX_TITLE
            or len(context) > MAX_TITLE
            or len(abstract) > MAX_ABSTRACT
        ):
            raise self.error(
                name,
                f"the title has {len(title):,} characters, the abstract {len(abstract):,}; expected at most "
                f"{MAX_TITLE:,} and {MAX_ABSTRACT:,}; put the title on a line or in a field by itself",
            )
        try:
            return Query(
                id=self.key.strip() or default_id,
                title=title or context,
                abstract=abstract,
                year=self.year,
                authors=tuple(filter(None, map(one_line, self.authors))),
                venue=one_line(self.venue),
                named=bool(self.key.strip()),
                doi=next(iter(self.dois), ""),
                context=context if title else "",
                kind=QueryKind.SENTENCE if context and not title else QueryKind.DRAFT,
            )
        except InvalidValueError as error:
            raise self.error(name, error.fault) from error


@dataclass(frozen=True, slots=True)
class PaperList:
    """The entries of a list of papers."""

    entries: tuple[Entry, ...]  # those with an id or a title
    # descriptions of entries that have neither or cannot be read
    unread: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # about the file as a whole

    @property
    def ids(self) -> frozenset[str]:
        """All ids, in the form of `id_key`."""
        return frozenset(id_key(i) for entry in self.entries for i in entry.ids)

    @property
    def keys(self) -> frozenset[str]:
        """All citation keys, and ids as in the file: a list of keys has them as ids."""
        return frozenset(
            key for entry in self.entries for key in (entry.key, *entry.ids) if key
        )


def first_year(text: str) -> int | None:
    """Return the first group of four digits in a date such as `c. 2019` or `2019/05`; None if there is none."""
    match = _FOUR_DIGITS.search(text)
    return int(match[0]) if match else None


def is_preprint_doi(doi: str) -> bool:
    """Whether a DOI is one of a preprint server, or of a repository such as Zenodo."""
    return bool(_PREPRINT.match(doi))


def differ_in_doi(dois: Collection[str], others: Collection[str]) -> bool:
    """Whether the DOIs of two records show that these are of two works; empty ones show nothing.

    They have none in common, but each has one of a publication, or each one of arXiv: the DOI of a preprint does not
    contradict that of its publication, nor one version of a repository another.
    """
    server = _PREPRINT.findall  # empty for a publication
    return {
        doi.lower() == other.lower()
        for doi in dois
        for other in others
        if doi and other and server(doi) == server(other)
    } == {False}


def is_preprint(
    type: str, venue: str, remarks: Iterable[str], addresses: Iterable[str]
) -> bool:
    """Whether an entry is a preprint; the name of a venue decides if there is one.

    A thesis, report, book, conference paper or software is none. The type is in lower case; remarks are other fields
    that may name a server, addresses are DOIs and links.
    """
    if venue.strip() or _OTHER_TYPE.search(type):
        return bool(SERVER.search(venue))
    is_named = type in _TYPES or any(map(SERVER.search, remarks))
    return is_named or any(map(_PREPRINT.search, addresses))
