"""Joins the records of a library with its whole texts: citations, sentences that cite, works that several cite."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import doi_of, dois_of
from citerec.display import one_line
from citerec.library.lookup import Records, letters_of
from citerec.library.texts import FullText
from citerec.text import word_count
from citerec.types import MAX_TITLE, YEARS, Context, Paper

_HEAD = 600  # characters of a first page, among which its title is
_ABSTRACT = re.compile(r"\b(?:abstract|summary|introduction)\b", re.IGNORECASE)
_LEAST_WORDS = 4  # of the title of a work that is added
_BETWEEN = re.compile(r"[.,?!:;]\s|[“”\"()\[\]]")
_DOI_AS_FILE = re.compile(r"(10\.\d{4,9})[_%@ ](?:2F)?")

Text = tuple[int, FullText]  # the row of its paper, and a whole text


def add_text(records: Records, text: FullText, file: Path) -> int:
    """Return the row of the record that a text matches; if there is none, it is added as a record itself."""
    entry = text.entry
    start = letters_of(text.start)
    # a short paper has references on its first page, too
    cited = {doi for reference in text.references for doi in reference.dois}
    dois = [doi for doi in dois_of(text.start) if doi not in cited]
    head = _ABSTRACT.split(text.start, maxsplit=1)[0][:_HEAD]
    rows = [
        *records.of_ids(entry.dois),
        # the first page of a comment has the DOI of another paper
        *(
            row
            for row in records.of_ids(dois)
            if letters_of(records.papers[row].title) in start
        ),
        *records.named_in(f"{entry.title} {head}"),
        *records.named_in(_DOI_AS_FILE.sub(r"\1/", file.stem)),
    ]
    if rows:
        return rows[0]
    # of several on a first page it is not clear which
    doi = "".join(entry.dois[:1] or (dois if len(dois) == 1 else ()))
    name = file.name.partition(".")[0] or "text"
    return records.add(
        Paper(
            id=records.new_id(doi.lower() or name),
            title=one_line(entry.title)[:MAX_TITLE]
            or re.sub(r"[_\W]+", " ", file.stem).strip(),
            abstract=entry.abstract,
            year=entry.year if entry.year in YEARS else None,
            authors=entry.authors,
            venue=entry.venue,
            doi=doi,
        )
    )


def add_works(records: Records, texts: Sequence[Text], least: int) -> None:
    """Add the works outside of a library that `least` or more of its papers cite, and whose titles are clear."""
    unknown = [
        (row, reference)
        for row, text in texts
        for reference in text.references
        if not records.named_in(reference.text)
    ]
    works = Records(_works_of([reference for _, reference in unknown]))
    citing: defaultdict[int, set[int]] = defaultdict(set)
    for row, reference in unknown:
        for work in works.named_in(reference.text):
            citing[work].add(row)
    for work, rows in citing.items():
        if len(rows) >= least:
            paper = works.papers[work]
            records.add(replace(paper, id=records.new_id(paper.id)))


def _works_of(references: Sequence[Entry]) -> Iterator[Paper]:
    """Yield works with the titles that references state.

    Of printed references with one DOI, the longest part between marks of punctuation that two share is the title.
    """
    by_key: defaultdict[str, list[Entry]] = defaultdict(list)
    for reference in references:
        by_key[
            "".join(reference.dois[:1]).lower() or letters_of(reference.title)
        ].append(reference)
    for key, alike in by_key.items():
        best = max(alike, key=lambda reference: len(reference.title))
        title = best.title or _shared(alike)
        if key and word_count(title) >= _LEAST_WORDS:
            yield Paper(
                id=doi_of(key) or f"title:{key[:150]}",
                title=title[:MAX_TITLE],
                year=best.year if best.year in YEARS else None,
                authors=best.authors,
                doi=doi_of(key),
            )


def _shared(references: Sequence[Entry]) -> str:
    """Return the longest part of the first reference that another one has, too; empty without one."""
    others = letters_of(" ".join(reference.text for reference in references[1:]))
    parts = map(str.strip, _BETWEEN.split(references[0].text))
    return max(
        (part for part in parts if letters_of(part) in others), key=len, default=""
    )


def linked(records: Records, texts: Sequence[Text]) -> list[Paper]:
    """Return the papers of a library with what their texts cite, and the sentences that cite."""
    papers = list(records.papers)
    for row, text in texts:
        named = [
            [other for other in records.named_in(ref.text) if other != row]
            for ref in text.references
        ]
        cited = [papers[other].id for rows in named for other in rows]
        # a reference that may be two names none
        clear = {
            place: papers[rows[0]].id
            for place, rows in enumerate(named)
            if len(rows) == 1
        }
        contexts = [
            Context(sentence.text, tuple(dict.fromkeys(ids)))
            for sentence in text.sentences
            if (ids := [clear[place] for place in sentence.cites if place in clear])
        ]
        paper = papers[row]
        papers[row] = replace(
            paper,
            abstract=paper.abstract or text.entry.abstract,
            citations=tuple(dict.fromkeys([*paper.citations, *cited])),
            # two files of one paper have the same sentences
            contexts=tuple(dict.fromkeys([*paper.contexts, *contexts])),
        )
    return papers
