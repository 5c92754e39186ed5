"""Finds the records of a library that a reference or a text names, whatever the style of the reference.

A record is found by a DOI, an id of arXiv or PubMed, by its title, else by its first author with year, volume and page.
Titles are compared by their letters and digits alone, so that no hyphen at the end of a line and no blank hides one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

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
_FIRST_WORDS = 12  # of a reference, among which is its first author
_NUMBER = re.compile(r"(?<![\d.])[a-z]{0,2}\d{1,7}(?![\d])", re.IGNORECASE)


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case without accents."""
    return title_key(text).replace(" ", "")


class Records:
    """The papers of a library, by what a reference may state of them; a row is the place of a paper in their list."""

    def __init__(self, papers: Iterable[Paper]) -> None:
        self.papers: list[Paper] = []
        self._by_id: dict[str, int] = {}
        self._by_anchor: defaultdict[str, list[int]] = defaultdict(list)
        self._by_author: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
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
        self._families.append(letters_of(family))
        if family and paper.year:
            self._by_author[family, paper.year].append(row)
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

    def named_in(self, text: str, ids: Sequence[str] = ()) -> list[int]:
        """Return the rows of the papers that a printed reference names; `ids` are those that its source states.

        A text in which several references were not told apart names several.
        """
        rows = self.of_ids([*ids, *arxiv_dois(text), *_dois_in(text)])
        return rows or self._named_by_title(text) or self._named_by_pages(text)

    def _named_by_title(self, text: str) -> list[int]:
        """Return the rows of the papers whose titles a text has; of titles within each other the longest."""
        letters = letters_of(text)
        years = {int(year) for year in _YEAR.findall(text)}
        spans: dict[tuple[int, int], int] = {}
        similar = set[int]()
        for place in range(len(letters) - _ANCHOR + 1):
            for row in self._by_anchor.get(letters[place : place + _ANCHOR], ()):
                title = self._titles[row]
                if not letters.startswith(title, place):
                    similar.add(row)
                elif self._agrees(row, letters, years, is_sure=len(title) >= _SURE):
                    spans.setdefault((place, place + len(title)), row)
        # an error of spelling is less likely than another record
        for row in () if spans else sorted(similar):
            title = self._titles[row]
            alike = fuzz.partial_ratio_alignment(title, letters, score_cutoff=_SIMILAR)
            if (
                alike
                and len(title) >= _SURE
                and alike.dest_end - alike.dest_start > len(title) - 5
                and self._agrees(row, letters, years, is_sure=False)
            ):
                spans.setdefault((alike.dest_start, alike.dest_end), row)
        longest = (
            row
            for (start, end), row in sorted(spans.items())
            if not any(
                first <= start and end <= last and (first, last) != (start, end)
                for first, last in spans
            )
        )
        return list(dict.fromkeys(longest))

    def _agrees(
        self, row: int, letters: str, years: set[int], *, is_sure: bool
    ) -> bool:
        """Whether a text that has the title of a record may mean it: by a year and the first author, if both are known.

        A title that is sure needs one of them, others need both.
        """
        year = self.papers[row].year
        family = self._families[row]
        is_near = year is None or any(abs(year - other) <= 1 for other in years)
        has_author = bool(family) and family in letters
        if is_sure:
            return is_near or has_author or not years
        return is_near and has_author and bool(years)

    def _named_by_pages(self, text: str) -> list[int]:
        """Return the row of the paper whose first author, year, volume and first page a text has; none if several."""
        numbers = {*_NUMBER.findall(text)}
        rows = {
            row
            for year in map(int, _YEAR.findall(text))
            for word in title_key(text).split()[:_FIRST_WORDS]
            for row in self._by_author.get((word, year), ())
            if _first_page(self.papers[row]) <= numbers
        }
        return [*rows] if len(rows) == 1 else []


def _first_page(paper: Paper) -> set[str]:
    """Return volume and first page of a paper; what no text has if one is unknown."""
    page = paper.pages.partition("-")[0].strip()
    return {page, paper.volume} if page and paper.volume else {""}


def _dois_in(text: str) -> list[str]:
    """Return the DOIs of a text, also with up to two blanks in each, the longest first."""
    dois = set[str]()
    for start in _DOI.finditer(text):
        pieces = text[start.start() :].split(maxsplit=3)[:3]
        for count in range(1, len(pieces) + 1):
            dois.update(dois_of("".join(pieces[:count]))[:1])
    return sorted(dois, key=len, reverse=True)
