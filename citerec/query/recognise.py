"""Finds drafts and references in a corpus, by id, DOI or title."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from citerec.corpus.papers import Papers, as_rows, compute
from citerec.eligibility import own_rows
from citerec.query.exclude import Excluded, doi_rows, id_key, title_key
from citerec.query.same import is_draft_of, rows_of_entry, similar_titles
from citerec.types import Log, Query

FEW = 8  # drafts whose titles are looked for one by one; more are compared with all titles at once


def recognised(queries: Sequence[Query], papers: Papers, log: Log | None = None) -> list[Query]:
    """Give each draft that is in the corpus the ids of the papers that it is, by its DOI, else by its title.

    A query whose own id is in the corpus, or that has `corpus_ids` already, stays as it is.

    Args:
        queries: The drafts.
        papers: The corpus.
        log: Receives a line for each draft that was recognised.
    """
    known = [bool(rows) for rows in own_rows(queries, papers)]
    unknown = [query for query, own in zip(queries, known, strict=True) if not own]
    by_title = _title_rows([query.title for query in unknown], papers)
    return [
        query if own else _recognised(query, papers, by_title.get(title_key(query.title), ()), log)
        for query, own in zip(queries, known, strict=True)
    ]


def _recognised(query: Query, papers: Papers, same_title: Sequence[int], log: Log | None) -> Query:
    how, dois = "DOI", [query.doi.lower()] if query.doi else []
    rows = sorted({row for column in papers.doi_columns for row in doi_rows(dois, column)})
    if not rows:
        there = papers.at(same_title)
        how, rows = "title", [row for row in same_title if is_draft_of(query, there[row])]
    if not rows:
        return query
    ids = papers.ids_at(rows)
    if log:
        log(
            f"{query.id!r} is in this corpus ({', '.join(ids)}, by its {how}): it is left out, and its own citations "
            "are not used"
        )
    return replace(query, corpus_ids=tuple(ids))


def _title_rows(titles: Sequence[str], papers: Papers) -> dict[str, list[int]]:
    """Return the rows that have each title, by its key."""
    found: dict[str, list[int]] = {key: [] for title in titles if (key := title_key(title))}
    if len(found) > FEW:
        for row, title in enumerate(papers.titles()):
            if (rows := found.get(title_key(title))) is not None:
                rows.append(row)
        return found
    for key, rows in found.items():
        maybe = _rows_with(max(key.split(), key=len), papers.title_column)
        pairs = zip(maybe.to_pylist(), papers.title_column.take(maybe).to_pylist(), strict=True)
        rows += [row for row, title in pairs if title_key(title) == key]
    return found


def _rows_with(word: str, titles: Any) -> Any:
    """Return the rows whose title may have a word of a key: those that it is in, and those that a key may fold."""
    folded = compute.match_substring_regex(titles, r"[^\x00-\x7f]|[\\${}]")
    there = compute.match_substring(compute.ascii_lower(titles), word)
    return compute.indices_nonzero(compute.or_(there, folded))


def listed_rows(listed: Excluded, papers: Papers) -> list[frozenset[int]]:
    """Return the rows of the papers that each entry of a list is, by id, DOI or title; none if not in the corpus."""
    wanted = sorted({i for entry in listed.entries for i in entry.ids})
    by_id = dict(zip(wanted, papers.rows_of(wanted).tolist(), strict=True))
    by_doi = _doi_rows(listed.ids, papers)
    similar = similar_titles(listed.titles, papers.titles())
    there = papers.at(row for found in similar.values() for row in found.rows)
    return [
        frozenset(row for i in entry.ids if (row := by_id[i]) >= 0).union(
            *(by_doi.get(id_key(i), ()) for i in entry.ids),
            rows_of_entry(entry, similar[entry.title], there) if entry.title in similar else (),
        )
        for entry in listed.entries
    ]


def _doi_rows(ids: Iterable[str], papers: Papers) -> dict[str, set[int]]:
    """Return the rows of each DOI, as `id_key` gives it, that is in the corpus."""
    found: dict[str, set[int]] = {}
    for column in papers.doi_columns:
        rows = sorted(doi_rows(ids, column))
        for row, text in zip(rows, column.take(as_rows(rows)).to_pylist(), strict=True):
            found.setdefault(id_key(text), set()).add(row)
    return found
