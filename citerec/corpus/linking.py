"""Links the references of an export to papers of the same corpus: by DOI, else by first author, year, volume and page.

Memory holds the keys of the papers, not their texts. A key that several papers have links nothing.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from citerec.bibliography.doi import doi_of
from citerec.text import normalized

_INITIALS = re.compile(r"(?:[^\W\d_]\.?[- ]?){1,4}")
_NUMBER = re.compile(r"0*([0-9a-z]+)")
_NO_LETTERS = re.compile(r"[^a-z]+")
_AMBIGUOUS = ""  # in place of an id: several papers have the key


@dataclass(frozen=True, slots=True)
class Reference:
    """What an export states of one reference."""

    dois: tuple[str, ...] = ()
    key: str = ""  # of `work_key`


@dataclass(slots=True)
class Linker:
    """Finds the papers to which references refer."""

    counts: Counter[str] = field(default_factory=Counter[str])
    _by_doi: dict[str, str] = field(default_factory=dict[str, str])
    _by_key: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, docid: str, doi: str, key: str) -> None:
        """Add a paper; an empty DOI or key is unknown. A paper may be added twice."""
        for table, value in ((self._by_doi, doi_of(doi).lower()), (self._by_key, key)):
            if value and table.setdefault(value, docid) != docid:
                table[value] = _AMBIGUOUS

    def link(self, references: Iterable[Reference]) -> tuple[str, ...]:
        """Return the ids of references, in their order.

        The DOI of a paper outside the corpus stays in place of its id; a reference without a DOI that cannot be linked
        is left out.
        """
        return tuple(filter(None, map(self._link, references)))

    def _link(self, reference: Reference) -> str:
        dois = [doi.lower() for doi in reference.dois]
        by_doi = {self._by_doi[doi] for doi in dois if doi in self._by_doi}
        found, rule = by_doi, "doi"
        if not by_doi and reference.key in self._by_key:
            found, rule = {self._by_key[reference.key]}, "key"
        if not found:
            self.counts["outside"] += 1
            return dois[0] if dois else ""
        if len(found) > 1 or _AMBIGUOUS in found:
            self.counts["ambiguous"] += 1
            return ""
        self.counts[rule] += 1
        return found.pop()

    def report(self) -> str:
        """Return in one line how many references were linked, by which rule."""
        c = self.counts
        return (
            f"references: {c['doi']:,} linked by DOI, {c['key']:,} by first author, year, volume and page; "
            f"{c['ambiguous']:,} ambiguous ones left out, {c['outside']:,} to papers outside the corpus"
        )


def work_key(author: str, year: object, volume: str, page: str) -> str:
    """Return the key by which a work is recognised without a DOI; empty if a part of it is missing.

    Args:
        author: The first author, as `Family, Given`, `Family J.A.` or `FAMILY JA`.
        year: A year, as a number or text.
        volume: The volume of the journal.
        page: The first page, or the number of the article.
    """
    if not (year and volume and page):
        return ""
    parts = [author_key(author), str(year), _number(volume), _number(page)]
    return "|".join(parts) if all(parts) else ""


def author_key(name: str) -> str:
    """Return the family name without accents, blanks and hyphens, and the first initial: `vandenberg j`.

    It is empty for an anonymous author, and for a name without initials.
    """
    family, comma, given = name.partition(",")
    if not comma:
        words = name.split()
        count = 1
        while (
            count < len(words) - 1
            and _INITIALS.fullmatch(words[-count - 1])
            and "." in words[-count - 1]
        ):
            count += 1
        family, given = " ".join(words[:-count]), " ".join(words[-count:])
        if not _INITIALS.fullmatch(given):
            return ""
    family, given = _letters(family), _letters(given)
    return f"{family} {given[0]}" if family and given and family != "anonymous" else ""


def _letters(text: str) -> str:
    if text.isascii():
        return _NO_LETTERS.sub("", text.lower())
    folded = normalized("NFKD", text).lower()
    return "".join(c for c in folded if c.isalpha() and not unicodedata.combining(c))


def _number(text: str) -> str:
    """Return a volume or page in lower case without leading zeros and without what follows it."""
    match = _NUMBER.match(text.strip().lower())
    return match[1] if match else ""
