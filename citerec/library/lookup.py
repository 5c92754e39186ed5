"""Finds the records of a library that a reference or a text names, whatever the style of the reference.

A record is found by a DOI, an id of arXiv or PubMed, by its title, else by its first author with year, volume and page.
Titles are compared by their letters and digits alone, so that no hyphen at the end of a line and no blank hides one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from citerec.bibliography.keys import (
    arxiv_dois,
    dois_of,
    id_key,
    name_key,
    paper_doi,
    title_key,
)
from citerec.types import Paper

_ANCHOR = 10  # letters of a title by which it is looked up; a shorter title is not
_SURE = 34  # letters of a title that needs no more than a year that does not contradict

_SIMILAR = 92.0  # percent of letters that a title shares with a text, if it has errors
_DOI = re.compile(r"10\.\d{4,9}/")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_NUMBER = re.compile(r"(?<![\d.])[a-z]{0,2}\d{1,7}(?![\d])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """A record that a text names, with the place of its title or DOI among the letters of the text."""

    row: int
    place: int


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case without accents."""
    return title_key(text).replace(" ", "")


class Records:
    """The papers of a library, by what a reference may state of them; a row is the place of a paper in their list."""

    def __init__(self, papers: Iterable[Paper]) -> None:
        self.papers: list[Paper] = []
        self._by_id: dict[str, int] = {}
        self._by_anchor: defaultdict[str, list[int]] = defaultdict(list)
        self._by_place: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._titles: list[str] = []
        self._families: list[str] = []
        for paper in papers:
            self.add(paper)

    def add(self, paper: Paper) -> int:
        """Add a paper; return its row."""
        row = len(self.papers)
        self.papers.append(paper)
        dois = (paper_doi(paper), *arxiv_dois(f"{paper.id} {paper.url}"))
        for name in (paper.id, *map(id_key, filter(None, dois))):
            self._by_id.setdefault(name, row)
        title = letters_of(paper.title)
        self._titles.append(title)
        if len(title) >= _ANCHOR:
            middle = len(title) // 2
            starts = {0, middle, max(len(title) - _ANCHOR, 0)}
            for start in starts if len(title) >= _SURE else (0,):
                self._by_anchor[title[start : start + _ANCHOR]].append(row)
        authors = paper.authors[:1]
        family = "".join(name_key(name).rpartition(" ")[2] for name in authors)
        self._families.append(family)
        if family and paper.year:
            self._by_place[family, paper.year].append(row)
        return row

    def of_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the rows of the papers with one of some ids or DOIs."""
        rows = (self._by_id.get(id_key(name)) for name in ids)
        return [row for row in dict.fromkeys(rows) if row is not None]

    def titled(self, title: str) -> list[int]:
        """Return the rows of the papers with a title, up to case, accents and punctuation; none for a short one."""
        letters = letters_of(title)
        rows = self._by_anchor.get(letters[:_ANCHOR], ())
        is_sure = len(letters) >= _SURE
        return [row for row in rows if is_sure and self._titles[row] == letters]

    def new_id(self, wanted: str) -> str:
        """Return an id that no paper has: the wanted one, or with a number."""
        number = 1
        docid = wanted
        while docid in self._by_id:
            number += 1
            docid = f"{wanted}#{number}"
        return docid

    def named_in(self, text: str, ids: Sequence[str] = ()) -> list[Found]:
        """Return the records that a printed reference names, in the order of their places; `ids` are its stated ids.

        A text in which several references were not told apart names several.
        """
        rows = self.of_ids([*ids, *arxiv_dois(text)])
        if rows:
            return [Found(rows[0], 0)]
        letters = letters_of(text)
        found = [*self._by_doi(text), *self._by_title(text, letters)]
        if not found:
            found = self._by_pages(text, letters)
        firsts = {found.row: found for found in reversed(found)}
        return sorted(firsts.values(), key=lambda found: found.place)

    def _by_doi(self, text: str) -> Iterable[Found]:
        """Yield the records whose DOI a text has, with up to two blanks in it."""
        for start in _DOI.finditer(text):
            pieces = text[start.start() :].split(maxsplit=3)[:3]
            joined = ("".join(pieces[:count]) for count in range(1, len(pieces) + 1))
            dois = {doi for piece in joined for doi in dois_of(piece)[:1]}
            for row in self.of_ids(sorted(dois, key=len, reverse=True))[:1]:
                yield Found(row, len(letters_of(text[: start.start()])))

    def _by_title(self, text: str, letters: str) -> list[Found]:
        """Return the records whose titles a text has; of titles within each other the longest."""
        spans: list[tuple[int, int, int]] = []
        alike: list[tuple[int, int, int]] = []
        tried = set[int]()
        for place in range(len(letters) - _ANCHOR + 1):
            for row in self._by_anchor.get(letters[place : place + _ANCHOR], ()):
                title = self._titles[row]
                if letters.startswith(title, place):
                    spans.append((place, place + len(title), row))
                elif row not in tried and len(title) >= _SURE:
                    tried.add(row)
                    similar = fuzz.partial_ratio_alignment(
                        title, letters, score_cutoff=_SIMILAR
                    )
                    if (
                        similar
                        and similar.dest_end - similar.dest_start > len(title) - 5
                    ):
                        alike.append((similar.dest_start, similar.dest_end, row))
        years = {int(year) for year in _YEAR.findall(text)}
        spans = [span for span in spans if self._agrees(span[2], letters, years)]
        # an error of spelling is less likely than another record; it needs author and year
        spans = spans or [
            span
            for span in alike
            if self._agrees(span[2], letters, years, is_sure=False)
        ]
        return [
            Found(row, start)
            for start, end, row in spans
            if not any(
                first <= start and end <= last and (first, last) != (start, end)
                for first, last, _ in spans
            )
        ]

    def _agrees(
        self, row: int, letters: str, years: set[int], *, is_sure: bool = True
    ) -> bool:
        """Whether a text that has the title of a record may mean it.

        A long title needs no more than a year or a first author that agrees, a short or similar one needs both.
        """
        year = self.papers[row].year
        family = letters_of(self._families[row])
        is_near = year is None or any(abs(year - other) <= 1 for other in years)
        has_author = bool(family) and family in letters
        if is_sure and len(self._titles[row]) >= _SURE:
            return is_near or has_author or not years
        return is_near and has_author and bool(years)

    def _by_pages(self, text: str, letters: str) -> list[Found]:
        """Return the record whose first author, year, volume and first page a text has; none if several have."""
        years = {int(year) for year in _YEAR.findall(text)}
        words = title_key(text).split()
        numbers = {*_NUMBER.findall(text)}
        rows = [
            row
            for year in years
            for word in dict.fromkeys(words[:12])
            for row in self._by_place.get((word, year), ())
            if self._has_pages(self.papers[row], numbers)
        ]
        return [Found(rows[0], 0)] if len({*rows}) == 1 else []

    @staticmethod
    def _has_pages(paper: Paper, numbers: set[str]) -> bool:
        page = re.match(r"\w+", paper.pages)
        return bool(page and paper.volume and {page[0], paper.volume} <= numbers)
