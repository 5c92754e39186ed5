"""Finds the records of a library that a reference or a text names, whatever the style of the reference.

A record is found by its DOI, by its title, else by its first author with year, volume and page. Titles are compared by
their letters and digits alone, so that no hyphen at the end of a line and no blank hides one.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from citerec.bibliography.keys import (
    arxiv_dois,
    dois_of,
    id_key,
    name_key,
    paper_doi,
    title_key,
)
from citerec.types import Paper

_START = 10  # letters of a title by which it is looked up; a shorter title is not
_SURE = 34  # letters of a title that needs no more than a year that does not contradict
_DOI = re.compile(r"10\.\d{4,9}/")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_FIRST_WORDS = 12  # of a reference, among which is its first author
_NUMBER = re.compile(r"(?<![\d.])[a-z]{0,2}\d{1,7}(?![\d])", re.IGNORECASE)


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case without accents."""
    return title_key(text).replace(" ", "")


class Records:
    """The papers of a library, by what a reference may state of them; a row is the place of a paper in their list."""

    def __init__(self, papers: Iterable[Paper] = ()) -> None:
        self.papers: list[Paper] = []
        self._by_id: dict[str, int] = {}
        self._by_start: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        self._by_author: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
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
        if len(title) >= _START:
            self._by_start[title[:_START]].append((title, row))
        if paper.year and paper.volume and paper.pages:
            self._by_author[_family(paper), paper.year].append(row)
        return row

    def of_ids(self, ids: Iterable[str]) -> list[int]:
        """Return the rows of the papers with one of some ids or DOIs."""
        rows = (self._by_id.get(id_key(name)) for name in ids)
        return [row for row in dict.fromkeys(rows) if row is not None]

    def new_id(self, wanted: str) -> str:
        """Return an id that no paper has: the wanted one, or with a number."""
        number = 1
        docid = wanted
        while docid in self._by_id:
            number += 1
            docid = f"{wanted}#{number}"
        return docid

    def named_in(self, text: str) -> list[int]:
        """Return the rows of the papers that a printed reference names.

        A text in which several references were not told apart names several.
        """
        rows = self.of_ids([*arxiv_dois(text), *_dois_in(text)])
        return rows or self._named_by_title(text) or self._named_by_page(text)

    def _named_by_title(self, text: str) -> list[int]:
        """Return the rows of the papers whose titles a text has; of titles within each other the longest."""
        letters = letters_of(text)
        years = _years_in(text)
        rows = dict[int, None]()
        last = 0
        for place in range(len(letters)):
            begun = self._by_start.get(letters[place : place + _START], ())
            titles = [
                (title, row)
                for title, row in begun
                if letters.startswith(title, place)
                and self._agrees(self.papers[row], title, letters, years)
            ]
            title, row = max(titles, key=lambda item: len(item[0]), default=("", 0))
            if place + len(title) > last and title:
                rows[row] = None
                last = place + len(title)
        return list(rows)

    def _agrees(
        self, paper: Paper, title: str, letters: str, years: Sequence[int]
    ) -> bool:
        """Whether a text that has the title of a record may mean it: by a year and the first author, if both are known.

        A title that is sure needs one of them, others need both.
        """
        family = _family(paper)
        has_author = bool(family) and family in letters
        is_near = paper.year is None or any(abs(paper.year - y) <= 1 for y in years)
        if len(title) >= _SURE:
            return is_near or has_author or not years
        return is_near and has_author and bool(years)

    def _named_by_page(self, text: str) -> list[int]:
        """Return the row of the paper whose first author, year, volume and first page a text has; none if several."""
        numbers = _NUMBER.findall(text)
        rows = {
            row
            for year in _years_in(text)
            for word in title_key(text).split()[:_FIRST_WORDS]
            for row in self._by_author.get((word, year), ())
            if self.papers[row].volume in numbers
            and self.papers[row].pages.partition("-")[0].strip() in numbers
        }
        return [*rows] if len(rows) == 1 else []


def _family(paper: Paper) -> str:
    """Return the letters of the family name of the first author; empty if it is unknown."""
    first = next(iter(paper.authors), "")
    return letters_of(name_key(first).rpartition(" ")[2])


def _years_in(text: str) -> list[int]:
    return [int(year) for year in _YEAR.findall(text)]


def _dois_in(text: str) -> Iterator[str]:
    """Yield the DOIs of a text, also with up to two blanks in each."""
    for start in _DOI.finditer(text):
        pieces = text[start.start() :].split(maxsplit=3)
        for count in (1, 2, 3):
            yield from dois_of("".join(pieces[:count]))[:1]
