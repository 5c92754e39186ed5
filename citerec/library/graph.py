"""Joins the records of a library with its whole texts: citations, sentences that cite, works that several cite."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from citerec.bibliography.keys import doi_of, dois_of
from citerec.library.lookup import Records, letters_of
from citerec.library.texts import FullText, Reference
from citerec.text import word_count
from citerec.types import MAX_TITLE, Context, Paper

_HEAD = 600  # characters of a first page, among which its title is
_ABSTRACT = re.compile(r"\b(?:abstract|summary|introduction)\b", re.IGNORECASE)
_LEAST_WORDS = 4  # of the title of a work that is added
_QUOTED = re.compile(r"[“\"]([^“”\"]{15,300}?)[,.?!]?[”\"]")
_BETWEEN = re.compile(r"[.,?!:;]\s|[“”\"()\[\]]")
_DOI_AS_FILE = re.compile(r"(10\.\d{4,9})[_%@ ](?:2F)?")

Cited = tuple[int, Reference]  # the row of a paper, and a reference that no record is


class LibraryGraph:
    """The papers of a library with what their whole texts cite; a row is the place of a paper in `records`."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.counts = Counter[str]()
        self._texts: list[tuple[int, FullText]] = []
        self._citations: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._contexts: defaultdict[int, list[Context]] = defaultdict(list)
        self._abstracts: dict[int, str] = {}

    def add_text(self, text: FullText, file: Path, row: int | None = None) -> None:
        """Add a text to the record that names its file, else to the one that it matches, else as a record itself."""
        row = self._row_of(text, file) if row is None else row
        self.counts["matched to records"] += row is not None
        self.counts["records from texts"] += row is None
        if row is None:
            row = self.records.add(_record_of(text, file, self.records))
        self._texts.append((row, text))
        self._abstracts.setdefault(row, text.abstract)

    def _row_of(self, text: FullText, file: Path) -> int | None:
        """Return the record of a text, by its ids, title, first page or the name of its file; None without one."""
        papers = self.records.papers
        start = letters_of(text.start)
        head = _ABSTRACT.split(text.start, maxsplit=1)[0][:_HEAD]
        stem = _DOI_AS_FILE.sub(r"\1/", file.stem)
        # the first page of a comment has the DOI of another paper
        rows = [
            *self.records.of_ids(text.ids),
            *(
                row
                for row in self.records.of_ids(_dois_of_start(text))
                if letters_of(papers[row].title) in start
            ),
            *self.records.named_in(f"{text.title} {head}"),
            *self.records.named_in(stem),
        ]
        return rows[0] if rows else None

    def link(self, add_cited: int = 0) -> None:
        """Look up the references of all texts, and the papers that their sentences cite.

        Works outside of the library that `add_cited` or more of its papers cite become papers with a title; 0 for none.
        """
        cited = self._look_up()
        if add_cited:
            unknown = [
                (row, reference)
                for (row, text), named in zip(self._texts, cited, strict=True)
                for reference, rows in zip(text.references, named, strict=True)
                if not rows
            ]
            self.counts["works added"] = self._add_works(unknown, add_cited)
            cited = self._look_up()
        for (row, text), named in zip(self._texts, cited, strict=True):
            others = (other for rows in named for other in rows if other != row)
            self._citations[row].update(dict.fromkeys(others))
            self._contexts[row] += self._contexts_of(row, text, named)
        self.counts["references"] = sum(map(len, cited))
        self.counts["citations"] = sum(map(len, self._citations.values()))
        self.counts["contexts"] = sum(map(len, self._contexts.values()))

    def _look_up(self) -> list[list[list[int]]]:
        """Return the rows that each reference of each text names."""
        return [
            [self.records.named_in(ref.text, ref.ids) for ref in text.references]
            for _, text in self._texts
        ]

    def _add_works(self, unknown: Sequence[Cited], least: int) -> int:
        """Add the works with a clear title that `least` papers or more cite; return how many."""
        works = Records(_works_of([reference for _, reference in unknown]))
        citing: defaultdict[int, set[int]] = defaultdict(set)
        for row, reference in unknown:
            for work in works.named_in(reference.text, reference.ids):
                citing[work].add(row)
        added = [work for work, rows in citing.items() if len(rows) >= least]
        for work in added:
            paper = works.papers[work]
            self.records.add(replace(paper, id=self.records.new_id(paper.id)))
        return len(added)

    def _contexts_of(
        self, row: int, text: FullText, places: Sequence[Sequence[int]]
    ) -> Iterable[Context]:
        """Yield the sentences of a text whose marks name papers; a reference that may be two names none."""
        for sentence in text.sentences:
            rows = [
                places[place][0]
                for place in sentence.cites
                if place < len(places) and len(places[place]) == 1
            ]
            cited = tuple(
                self.records.papers[other].id
                for other in dict.fromkeys(rows)
                if other != row
            )
            if cited:
                yield Context(sentence.text, cited)

    def paper(self, row: int) -> Paper:
        """Return the paper of a row, with its citations and the sentences that cite."""
        papers = self.records.papers
        paper = papers[row]
        cited = (papers[other].id for other in self._citations.get(row, ()))
        return replace(
            paper,
            abstract=paper.abstract or self._abstracts.get(row, ""),
            citations=tuple(dict.fromkeys([*paper.citations, *cited])),
            # two files of one paper have the same sentences
            contexts=tuple(
                dict.fromkeys([*paper.contexts, *self._contexts.get(row, ())])
            ),
        )


def _dois_of_start(text: FullText) -> list[str]:
    """Return the DOIs of a first page, except for those of references, which a short paper has there, too."""
    cited = {name for reference in text.references for name in reference.ids}
    return [doi for doi in dois_of(text.start) if doi not in cited]


def _record_of(text: FullText, file: Path, records: Records) -> Paper:
    """Return a text as a record; the name of its file stands for a missing DOI as its id, and for a missing title."""
    dois = [*filter(doi_of, text.ids)] or _dois_of_start(text)
    # of several it is not clear which
    doi = dois[0] if len(dois) == 1 or text.ids else ""
    name = file.name.partition(".")[0] or "text"
    return Paper(
        id=records.new_id(doi.lower() or next(iter(text.ids), "") or name),
        title=text.title[:MAX_TITLE] or re.sub(r"[_\W]+", " ", file.stem).strip(),
        abstract=text.abstract,
        year=text.year,
        authors=text.authors,
        venue=text.venue,
        doi=doi,
    )


def _works_of(references: Sequence[Reference]) -> Iterator[Paper]:
    """Yield works with the titles that references state or quote.

    Of printed references with one DOI, the longest part between marks of punctuation that two share is the title.
    """
    by_key: defaultdict[str, list[Reference]] = defaultdict(list)
    for reference in references:
        doi = next(filter(doi_of, reference.ids), "").lower()
        if key := doi or letters_of(_title_of(reference)):
            by_key[key].append(reference)
    for key, alike in by_key.items():
        title = next(filter(None, map(_title_of, alike)), "") or _shared(alike)
        if title:
            yield Paper(
                id=doi_of(key) or f"title:{key[:150]}",
                title=title[:MAX_TITLE],
                year=next(filter(None, (ref.year for ref in alike)), None),
                authors=next(filter(None, (ref.authors for ref in alike)), ()),
                doi=doi_of(key),
            )


def _title_of(reference: Reference) -> str:
    """Return the title that a source states, or that is quoted; empty if it is not clear, or short."""
    quoted = _QUOTED.search(reference.text)
    title = reference.title or (quoted[1] if quoted else "")
    return title if word_count(title) >= _LEAST_WORDS else ""


def _shared(references: Sequence[Reference]) -> str:
    """Return the longest part of the first reference that another one has, too; empty without one."""
    others = letters_of(" ".join(reference.text for reference in references[1:]))
    parts = (part.strip() for part in _BETWEEN.split(references[0].text))
    shared = (
        part
        for part in parts
        if word_count(part) >= _LEAST_WORDS and letters_of(part) in others
    )
    return max(shared, key=len, default="")
