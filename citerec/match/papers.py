"""Is this draft, or this reference, that paper? Finds them in a corpus by id, DOI or title.

Titles that differ in case, accents, punctuation and LaTeX are equal (`title_key`). Beyond that, `same_title` accepts
another order of words, small spelling errors, joined words and a missing subtitle; numbers ("Part II", "2019") must be
the same. If both sides have years and authors, these contradict a match or confirm one that the titles leave open. A
draft is recognised by its DOI or an equal title, unless year or authors contradict the title.

An index stores tables of these keys (`citerec.index.papers.Lookup`), so that no query reads all papers.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from citerec.bibliography.entry import Entry, PaperList, differ_in_doi
from citerec.bibliography.keys import doi_of, id_key, name_key, paper_doi, title_key
from citerec.files.arrays import Rows, concatenated
from citerec.index.papers import BATCH, Lookup, Papers, Table, codes_of
from citerec.rules.eligible import query_rows
from citerec.types import Paper, Query, QueryKind

# Words of a title that identifies a paper; shorter ones ("Introduction") need more evidence.
LEAST_WORDS = 4
YEARS_APART = 3  # the largest difference between a preprint and its published version
# Titles of one list that are compared with another title: what many share, such as "Editorial", tells nothing.
MOST_ALIKE = 100
_EMPTY = frozenset("a an the and of in on for to at by".split())
_NUMBERS = frozenset(
    "one two three four five six seven eight nine ten first second third fourth fifth part parts volume"
    " ii iii iv v vi vii viii ix x".split()
)
_SUBTITLE = re.compile(r"[:—?!.]\s|\s[-–—]+\s")
_NAME = re.compile(r"[^\W\d_]{2,}")
_BETWEEN = re.compile(
    r"[.,:;?!()\[\]\"“”‘’'«»–—]|\s-\s|\s(?=[12][0-9]{3}\b)|(?<=\b[12][0-9]{3})\s"
)
_YEAR = re.compile(r"(?<![0-9.])(?:19|20)[0-9]{2}(?=[a-z]?(?![0-9]))")
# of a title in a printed reference
_MOST_PARTS = 9
_LEAST_LETTERS = 10
_MOST_WORDS = 50  # of a title that starts a text


# --- Titles


def same_title(title: str, other: str) -> bool:
    """Whether two titles, as their files have them, differ only as two citations of one paper may."""
    first = title_key(title).split()
    second = title_key(other).split()
    if first == second:
        return bool(first)
    if _numbers(first) != _numbers(second):
        return False
    if "".join(first) == "".join(second):  # multi-task, multitask
        return len("".join(first)) >= 12
    if _main_title(title) == second or _main_title(other) == first:
        return min(len(first), len(second)) >= LEAST_WORDS
    return _same_words(first, second)


def _numbers(words: Sequence[str]) -> list[str]:
    return [
        word
        for word in words
        if (len(word) == 1 and word != "a")
        or word in _NUMBERS
        or any(map(str.isdigit, word))
    ]


def _main_title(title: str) -> list[str]:
    """Return the words of a title without its subtitle; empty if it has none."""
    parts = _SUBTITLE.split(title, maxsplit=1)
    return title_key(parts[0]).split() if len(parts) > 1 else []


def _same_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the words are the same in any order, except for empty words and one spelling error per five words."""
    first_counts, second_counts = (
        Counter(word for word in words if word not in _EMPTY)
        for words in (first, second)
    )
    only_first = sorted((first_counts - second_counts).elements())
    only_second = sorted((second_counts - first_counts).elements())
    content = first_counts.total()
    return (
        content > LEAST_WORDS
        and len(only_first) == len(only_second) <= max(1, content // 5)
        and all(_misspelt(a, b) for a, b in zip(only_first, only_second, strict=True))
    )


def _misspelt(word: str, other: str) -> bool:
    """Whether two long words differ by a spelling error; a prefix makes another word ("supervised", "unsupervised")."""
    shortest = min(len(word), len(other))
    most = 2 if shortest >= 10 else 1
    return (
        shortest >= 5
        and word[:3] == other[:3]
        and Levenshtein.distance(word, other) <= most
    )


def title_codes(title: str) -> frozenset[str]:
    """Return codes of a title; equal or similar titles share at least one.

    Codes are its letters, those of its main title, and the first letters of its words, which a spelling error keeps.
    """
    words = title_key(title).split()
    codes = ["".join(words)] if words else []
    if main := _main_title(title):
        codes.append("".join(main))
    if len(words) > LEAST_WORDS:
        starts = sorted([word[:3] for word in words if word not in _EMPTY])
        codes.append(" ".join(["", *starts]))  # the other codes have no blank
    return frozenset(codes)


@dataclass(frozen=True, slots=True)
class SimilarTitles:
    """Rows of a corpus whose titles may be the title of one reference, each list rising."""

    equal: list[int]  # with an equal title, see `title_key`
    near: list[int]  # with the `same_title`, but not an equal one
    # with a title of which this is the main title, too short for `same_title`
    longer: list[int]

    @property
    def rows(self) -> list[int]:
        """The rows of all three lists."""
        return [*self.equal, *self.near, *self.longer]

    def before(self, row: int) -> "SimilarTitles":
        """Return the first `MOST_ALIKE` before a row of each kind."""
        lists = (self.equal, self.near, self.longer)
        return SimilarTitles(
            *(rows[: min(bisect_left(rows, row), MOST_ALIKE)] for rows in lists)
        )


def similar_titles(
    titles: Iterable[str], corpus_titles: Iterable[tuple[int, str]]
) -> dict[str, SimilarTitles]:
    """Return the rows of a corpus with an equal or similar title, by title; `corpus_titles` come with rising rows."""
    keys = {title: title_key(title) for title in titles}
    similar = {title: SimilarTitles([], [], []) for title in keys}
    by_code: defaultdict[str, list[str]] = defaultdict(list)
    for title in keys:
        for code in title_codes(title):
            by_code[code].append(title)
    for row, other in corpus_titles if by_code else ():
        key = title_key(other)
        codes = title_codes(other)
        for title in {t for code in codes for t in by_code.get(code, ())[:MOST_ALIKE]}:
            words = keys[title].split()
            if keys[title] == key:
                similar[title].equal.append(row)
            elif same_title(title, other):
                similar[title].near.append(row)
            elif _main_title(other) == words and _numbers(words) == _numbers(
                key.split()
            ):
                similar[title].longer.append(row)
    return similar


# --- Years and authors


Described = Entry | Query | Paper


def rows_of_entry(
    entry: Described, similar: SimilarTitles, papers: Mapping[int, Described]
) -> list[int]:
    """Return the rows of the papers that a reference is, from those with similar titles.

    Papers with an equal title are preferred, unless contradicted; a title of `LEAST_WORDS` outweighs a contradiction of
    year or authors. Otherwise the one title whose year and authors agree is chosen; otherwise the one near title,
    unless contradicted. The papers share one title; there are none if it is not clear which.

    `similar` is the result of `similar_titles` for the title of the reference, `papers` holds the papers of its rows.
    """

    def is_equal(paper: Described) -> bool:
        is_same_year = _years_apart(entry, paper) == 0
        shares_author = _shares_author(entry, paper)
        if differ_in_doi(_dois(entry), _dois(paper)):
            has_evidence = is_same_year and shares_author is not False
        else:
            has_evidence = is_same_year or shares_author is True
        return not contradicts(entry, paper) or (not _is_short(entry) and has_evidence)

    def agrees(paper: Described) -> bool:
        years = _years_apart(entry, paper)
        is_same_year = years is not None and years <= 1
        return is_same_year and not _last_names(entry).isdisjoint(_last_names(paper))

    if equal := [row for row in similar.equal if is_equal(papers[row])]:
        return equal
    agreeing = [row for row in (*similar.near, *similar.longer) if agrees(papers[row])]
    rows = agreeing or similar.near
    if len({title_key(papers[row].title) for row in rows}) > 1:
        return []
    return [row for row in rows if not contradicts(entry, papers[row])]


def is_draft_of(query: Query, paper: Paper) -> bool:
    """Whether a draft with the title of `paper` is that paper.

    Neither DOI, year nor authors may contradict it. With a title of fewer than `LEAST_WORDS` words they must also
    have an author in common.
    """
    return not contradicts(query, paper) and (
        not _is_short(query) or bool(_shares_author(query, paper))
    )


def contradicts(described: Described, paper: Described) -> bool:
    """Whether DOIs, years or authors show that two similar titles are of two papers; unknown ones show nothing."""
    most = 1 if _is_short(described) else YEARS_APART
    return (
        differ_in_doi(_dois(described), _dois(paper))
        or (_years_apart(described, paper) or 0) > most
        or _shares_author(described, paper) is False
    )


def _dois(described: Described) -> Sequence[str]:
    if isinstance(described, Entry):
        return described.dois + described.preprints
    return [described.doi if isinstance(described, Query) else paper_doi(described)]


def _is_short(described: Described) -> bool:
    return len(title_key(described.title).split()) < LEAST_WORDS


def _years_apart(described: Described, paper: Described) -> int | None:
    if described.year is None or paper.year is None:
        return None
    return abs(described.year - paper.year)


def _shares_author(described: Described, paper: Described) -> bool | None:
    """Whether both have an author in common; None if the authors of one are unknown.

    With a short title last names must be equal; with a longer one any parts of names, in case they were split wrongly.
    """
    names = _last_names if _is_short(described) else _names
    ours = names(described)
    theirs = names(paper)
    return not ours.isdisjoint(theirs) if ours and theirs else None


def _names(described: Described) -> set[str]:
    return {
        name
        for author in described.authors
        for name in _NAME.findall(title_key(author))
    }


def _last_names(described: Described) -> set[str]:
    names = (name_key(author).rpartition(" ")[2] for author in described.authors)
    return {name for name in names if len(name) > 1}


# --- Drafts and lists in a corpus


def recognise(queries: Sequence[Query], papers: Papers) -> list[tuple[Query, str]]:
    """Add to each draft that is in the corpus the ids of its papers, found by its DOI, its title or its text.

    A query whose own id is in the corpus, or that already has `corpus_ids`, stays unchanged. So does one that is no
    draft, such as a sentence. What was recognised is returned with each query, for the user; empty if nothing was.
    """
    recognised: list[tuple[Query, str]] = []
    pairs = zip(queries, query_rows(queries, papers), strict=True)
    drafts = {
        query: query.kind is QueryKind.DRAFT and not rows for query, rows in pairs
    }
    unknown = [query for query, is_unknown in drafts.items() if is_unknown]
    similar = _similar_in([query.title for query in unknown], papers)
    by_doi = rows_by_doi({id_key(query.doi) for query in unknown}, papers)
    for query in queries:
        matched_by = "DOI"
        rows = sorted(by_doi.get(id_key(query.doi), ())) if drafts[query] else []
        if drafts[query] and not rows:
            matched_by = "title"
            by_row = papers.at(similar[query.title].equal)
            rows = [row for row, paper in by_row.items() if is_draft_of(query, paper)]
            if not rows and not query.abstract:
                rows = _rows_of_text(query.title, papers)
                matched_by = "text"
        if not rows:
            recognised.append((query, ""))
            continue
        ids = papers.ids_at(rows)
        notice = (
            f"this draft is in the corpus already, by its {matched_by}: it is not recommended, and its references are "
            "not used"
        )
        recognised.append((replace(query, corpus_ids=tuple(ids)), notice))
    return recognised


def _rows_of_text(text: str, papers: Papers) -> list[int]:
    """Return the rows of the papers of which a text is the title and abstract, or the start of both."""
    words = (key := title_key(text)).split()
    codes = [
        "".join(words[:n]) for n in range(LEAST_WORDS, min(len(words), _MOST_WORDS))
    ]
    found = papers.lookup.titles.rows_of(codes)
    by_row = papers.at(row for rows in found for row in rows.tolist())
    return [
        row
        for row, paper in by_row.items()
        if title_key(f"{paper.title} {paper.abstract}").startswith(key)
    ]


def listed_rows(paper_list: PaperList, papers: Papers) -> list[frozenset[int]]:
    """Return the rows of the papers that each entry of a list matches by id, DOI or title; empty if there are none."""
    ids = sorted({i for entry in paper_list.entries for i in entry.ids})
    by_id = dict(zip(ids, papers.rows_of(ids).tolist(), strict=True))
    by_doi = rows_by_doi(paper_list.ids, papers)
    named = [_named_in(entry, papers) for entry in paper_list.entries]
    similar = _similar_in([e.title for of_entry in named for e in of_entry], papers)
    candidates = papers.at(row for titles in similar.values() for row in titles.rows)
    keyed = papers.at(
        row
        for entry in paper_list.entries
        if entry.has_citation_key
        and entry.title
        and (row := by_id.get(entry.key, -1)) >= 0
    )

    def is_id(entry: Entry, docid: str, row: int) -> bool:
        """Whether it is more than a citation key that happens to be the id of another paper."""
        is_key = entry.has_citation_key and entry.title and docid == entry.key
        return not (is_key and keyed[row].title) or same_title(
            entry.title, keyed[row].title
        )

    return [
        frozenset(
            row for i in entry.ids if (row := by_id[i]) >= 0 and is_id(entry, i, row)
        ).union(
            *(by_doi.get(id_key(i), ()) for i in entry.ids),
            *(rows_of_entry(e, similar[e.title], candidates) for e in of_entry),
        )
        for entry, of_entry in zip(paper_list.entries, named, strict=True)
    ]


def _named_in(entry: Entry, papers: Papers) -> list[Entry]:
    """Return an entry, or those for the titles of the corpus in its text, whole between marks of punctuation."""
    parts = [part for part in _BETWEEN.split(entry.text) if title_key(part)]
    ends = ((i, i + n) for i in range(len(parts)) for n in range(1, _MOST_PARTS))
    texts = {"".join(title_key(t := " ".join(parts[i:j])).split()): t for i, j in ends}
    codes = [code for code in texts if len(code) >= _LEAST_LETTERS]
    rows = papers.lookup.titles.rows_of(codes)
    known = [code for code, found in zip(codes, rows, strict=True) if len(found)]
    longest = [
        title
        for title in known
        if not any(title != other and title in other for other in known)
    ]
    year = next(map(int, reversed(_YEAR.findall(entry.text))), None)
    words = tuple(title_key(entry.text).split())
    return [
        entry,
        *(
            Entry(title=texts[code], year=year, authors=words, dois=entry.dois)
            for code in longest
        ),
    ]


def _similar_in(titles: Sequence[str], papers: Papers) -> dict[str, SimilarTitles]:
    """Return the rows of a corpus with an equal or similar title, by title: those that share a code."""
    codes = sorted({code for title in titles for code in title_codes(title)})
    found = papers.lookup.titles.rows_of(codes)
    rows = np.unique(concatenated(found, np.int32))
    texts = papers.texts("title", rows).to_pylist()
    return similar_titles(titles, zip(rows.tolist(), texts, strict=True))


def rows_by_doi(ids: Iterable[str], papers: Papers) -> dict[str, set[int]]:
    """Return the rows of each DOI, in the form of `id_key`, that is in the corpus: as an id or as a stated DOI."""
    dois = sorted(filter(doi_of, ids))
    rows = papers.lookup.dois.rows_of(dois)
    return {doi: set(of_doi.tolist()) for doi, of_doi in zip(dois, rows, strict=True)}


# --- The tables of an index


def write_tables(
    folder: Path,
    papers: Papers,
    first: int = 0,
    old: Lookup | None = None,
    places: Rows | None = None,
) -> None:
    """Write the tables of ids, DOIs, titles and authors of an index into its folder.

    `papers` are those from the row `first` on, `old` has the tables of others, whose rows become `places`.
    """
    key_of_name = lru_cache(maxsize=2**16)(name_key)
    keys_of: dict[str, Callable[[Any], Iterator[Collection[str]]]] = {
        "ids": lambda batch: ((docid,) for docid in batch["id"].to_pylist()),
        "dois": lambda batch: (
            {doi.lower() for doi in map(doi_of, filter(None, texts)) if doi}
            for texts in zip(
                batch["id"].to_pylist(), batch["doi"].to_pylist(), strict=True
            )
        ),
        "titles": lambda batch: map(title_codes, batch["title"].to_pylist()),
        "authors": lambda batch: (
            {*map(key_of_name, names or ())} for names in batch["authors"].to_pylist()
        ),
    }
    tables: dict[str, Table] = {}
    for name, keys in keys_of.items():
        codes = [np.zeros(0, np.uint64)]
        rows = [np.zeros(0, np.int32)]
        if old and places is not None:
            table: Table = getattr(old, name).moved(places)
            codes.append(table.codes)
            rows.append(table.rows)
        for number, batch in enumerate(papers.table.to_batches()):
            of_papers = [*keys(batch)]
            codes.append(codes_of(chain.from_iterable(of_papers)))
            start = first + number * BATCH
            numbers = np.arange(start, start + len(batch), dtype=np.int32)
            rows.append(np.repeat(numbers, [*map(len, of_papers)]))
        tables[name] = Table.of(np.concatenate(codes), np.concatenate(rows))
    Lookup(**tables).write(folder)
