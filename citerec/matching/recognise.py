"""Finds drafts and references in a corpus, by id, DOI or title."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from string import whitespace
from typing import Any

import numpy as np

from citerec.bibliography.doi import doi_of, paper_doi
from citerec.bibliography.keys import id_key, title_key
from citerec.bibliography.paper_list import PaperList
from citerec.corpus.papers import Papers, as_rows, compute, strings
from citerec.matching.same import (
    Described,
    SimilarTitles,
    is_draft_of,
    letters_code,
    rows_of_entry,
    same_title,
    similar_among,
    similar_titles,
    title_codes,
)
from citerec.rules.eligible import query_rows
from citerec.types import Paper, Query, QueryKind

# drafts whose titles are searched one by one; more are compared with all titles in one pass
ONE_BY_ONE = 8
_SPACES = f"{whitespace}\x1c\x1d\x1e\x1f"  # all of ASCII that Python's strip removes


@dataclass(frozen=True, slots=True)
class RecognisedQuery:
    """A query, with the ids of its papers if it was recognised in the corpus."""

    query: Query
    notice: str = ""  # what was recognised, for the user; empty if nothing was


def recognise(queries: Sequence[Query], papers: Papers) -> list[RecognisedQuery]:
    """Add to each draft that is in the corpus the ids of its papers, found by its DOI, else by its title.

    A query whose own id is in the corpus, or that already has `corpus_ids`, stays unchanged. So does one that is no
    draft, such as a sentence.
    """
    in_corpus = [
        bool(rows) or query.kind is not QueryKind.DRAFT
        for query, rows in zip(queries, query_rows(queries, papers), strict=True)
    ]
    unknown = [query for query, is_known in zip(queries, in_corpus, strict=True) if not is_known]
    by_title = _title_rows([query.title for query in unknown], papers)
    return [
        RecognisedQuery(query)
        if is_known
        else _recognised(query, papers, by_title.get(title_key(query.title), ()))
        for query, is_known in zip(queries, in_corpus, strict=True)
    ]


def _recognised(query: Query, papers: Papers, same_title: Sequence[int]) -> RecognisedQuery:
    matched_by, dois = "DOI", [query.doi.lower()] if query.doi else []
    rows = sorted({row for found in rows_by_doi(dois, papers).values() for row in found})
    if not rows:
        candidates = papers.at(same_title)
        matched_by, rows = (
            "title",
            [row for row in same_title if is_draft_of(query, candidates[row])],
        )
    if not rows:
        return RecognisedQuery(query)
    ids = papers.ids_at(rows)
    notice = (
        f"{query.id!r} is in this corpus ({', '.join(ids)}, by its {matched_by}): it is not recommended, "
        "and its own references are not used"
    )
    return RecognisedQuery(replace(query, corpus_ids=tuple(ids)), notice)


def _title_rows(titles: Sequence[str], papers: Papers) -> dict[str, list[int]]:
    """Return the rows with each title, by `title_key`."""
    rows_by_key: dict[str, list[int]] = {key: [] for title in titles if (key := title_key(title))}
    if papers.lookup:
        keys = list(rows_by_key)
        possible = papers.lookup.titles.rows_of([letters_code(key) for key in keys])
        for key, rows in zip(keys, possible, strict=True):
            texts = papers.texts("title", rows).to_pylist()
            pairs = zip(rows.tolist(), texts, strict=True)
            rows_by_key[key] += [row for row, title in pairs if title_key(title) == key]
        return rows_by_key
    if len(rows_by_key) > ONE_BY_ONE:
        for row, title in enumerate(papers.titles()):
            if (rows := rows_by_key.get(title_key(title))) is not None:
                rows.append(row)
        return rows_by_key
    for key, rows in rows_by_key.items():
        possible = _rows_with(max(key.split(), key=len), papers.title_column)
        pairs = zip(
            possible.to_pylist(), papers.title_column.take(possible).to_pylist(), strict=True
        )
        rows += [row for row, title in pairs if title_key(title) == key]
    return rows_by_key


def _rows_with(word: str, titles: Any) -> Any:
    """Return the rows whose title may have a word of a key: those that contain it, and those that need folding."""
    folded = compute.match_substring_regex(titles, r"[^\x00-\x7f]|[\\${}]")
    has_word = compute.match_substring(compute.ascii_lower(titles), word)
    return compute.indices_nonzero(compute.or_(has_word, folded))


def listed_rows(paper_list: PaperList, papers: Papers) -> list[frozenset[int]]:
    """Return the rows of the papers that each entry of a list matches by id, DOI or title; empty if there are none."""
    ids = sorted({i for entry in paper_list.entries for i in entry.ids})
    by_id = dict(zip(ids, papers.rows_of(ids).tolist(), strict=True))
    by_doi = rows_by_doi(paper_list.ids, papers)
    similar = _similar(paper_list.titles, papers)
    candidates = papers.at(row for titles in similar.values() for row in titles.rows)
    return [
        frozenset(row for i in entry.ids if (row := by_id[i]) >= 0).union(
            *(by_doi.get(id_key(i), ()) for i in entry.ids),
            rows_of_entry(entry, similar[entry.title], candidates)
            if entry.title in similar
            else (),
        )
        for entry in paper_list.entries
    ]


def _similar(titles: Sequence[str], papers: Papers) -> dict[str, SimilarTitles]:
    """Return the rows of a corpus with an equal or similar title, by title."""
    if not papers.lookup:
        return similar_titles(titles, papers.titles())
    codes = sorted({code for title in titles for code in title_codes(title)})
    found = papers.lookup.titles.rows_of(codes)
    rows = np.unique(np.concatenate([*found, np.zeros(0, np.int32)]))
    texts = papers.texts("title", rows).to_pylist()
    return similar_among(titles, zip(rows.tolist(), texts, strict=True))


def listed_papers(paper_list: PaperList, papers: Sequence[Paper]) -> list[frozenset[int]]:
    """Return the positions of the papers that each entry of a list matches, as `listed_rows` does for a corpus.

    A citation key that is the id of a paper with another title does not count: authors and corpora make both from the
    same name and year.
    """
    by_id: dict[str, set[int]] = {}
    for place, paper in enumerate(papers):
        for paper_id in filter(None, (paper.id, id_key(paper.id), paper_doi(paper).lower())):
            by_id.setdefault(paper_id, set()).add(place)
    by_title = same_entries(paper_list.entries, papers)
    return [
        titles.union(
            place
            for i in entry.ids
            for place in by_id.get(i, set()) | by_id.get(id_key(i), set())
            if i != entry.key or not entry.title or same_title(entry.title, papers[place].title)
        )
        for entry, titles in zip(paper_list.entries, by_title, strict=True)
    ]


def same_entries(entries: Sequence[Described], others: Sequence[Described]) -> list[frozenset[int]]:
    """Return for each entry the positions of those of `others` that are the same paper by title, year and authors."""
    titles = {entry.title for entry in entries if title_key(entry.title)}
    similar = similar_titles(sorted(titles), [other.title for other in others])
    by_place = dict(enumerate(others))
    return [
        frozenset(rows_of_entry(entry, similar[entry.title], by_place))
        if entry.title in similar
        else frozenset()
        for entry in entries
    ]


def rows_by_doi(ids: Iterable[str], papers: Papers) -> dict[str, set[int]]:
    """Return the rows of each DOI, in the form of `id_key`, that is in the corpus."""
    rows_by_key: dict[str, set[int]] = {}
    if papers.lookup:
        dois = sorted(filter(doi_of, ids))
        for doi, rows in zip(dois, papers.lookup.dois.rows_of(dois), strict=True):
            for name in papers.doi_names:
                pairs = zip(rows.tolist(), papers.texts(name, rows).to_pylist(), strict=True)
                found = {row for row, text in pairs if id_key(text) == doi}
                rows_by_key.setdefault(doi, set()).update(found)
        return rows_by_key
    for column in papers.doi_columns:
        rows = sorted(doi_rows(ids, column))
        for row, text in zip(rows, column.take(as_rows(rows)).to_pylist(), strict=True):
            rows_by_key.setdefault(id_key(text), set()).add(row)
    return rows_by_key


def doi_rows(ids: Iterable[str], corpus_ids: Any) -> frozenset[int]:
    """Return the rows of a corpus whose id equals one of `ids` as a DOI, by `id_key`.

    The corpus may write a DOI as a link, or in capitals. Arrow selects candidates; ids that are not ASCII are always
    candidates, because Arrow's lower case differs from Python's for them.

    Args:
        ids: The ids to find, in the form of `id_key`.
        corpus_ids: The ids of the corpus, an Arrow column.
    """
    dois = sorted(filter(doi_of, ids))
    if not dois:
        return frozenset()
    candidate_rows = compute.indices_nonzero(compute.match_substring(corpus_ids, "10."))
    candidates = corpus_ids.take(candidate_rows)
    # the prefix of a DOI link has no 1
    bare = compute.replace_substring_regex(candidates, "^[^1]+", "")
    lowered = compute.ascii_lower(compute.ascii_rtrim(bare, characters=_SPACES))
    listed = compute.is_in(lowered, value_set=strings(dois))
    maybe = compute.or_(listed, compute.invert(compute.string_is_ascii(candidates)))
    rows = candidate_rows.filter(maybe).to_pylist()
    requested = frozenset(dois)
    pairs = zip(rows, candidates.filter(maybe).to_pylist(), strict=True)
    return frozenset(row for row, docid in pairs if id_key(docid) in requested)
