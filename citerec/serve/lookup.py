"""Looks papers of an index up: by words, by id, by citations. Nothing here runs a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from citerec.bibliography.doi import paper_doi
from citerec.bibliography.paper_list import paper_list_of
from citerec.corpus.papers import NO_YEAR
from citerec.errors import ConfigError
from citerec.matching.recognise import listed_rows
from citerec.recommend import BatchRecommender
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.rules.known import Rows
from citerec.serve.problems import ProblemError
from citerec.serve.version import OpenVersion
from citerec.types import BIBLIOGRAPHIC, Eligibility, Paper, Query

MOST_SEARCHED = 100_000  # hits of BM25 that filters are applied to
PREFIXES = ("doi:", "corpusid:", "arxiv:", "mag:", "acl:", "pmid:", "pmcid:", "url:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched: words, and bounds of year and venue."""

    q: str
    year_min: int | None = None
    year_max: int | None = None
    venue: str = ""  # part of the venue's name, in any case
    offset: int = 0
    limit: int = 20


def paper_json(paper: Paper) -> dict[str, Any]:
    """Return a paper as JSON, with its DOI as the exports write it."""
    names = ("id", "title", "abstract", "year", "authors", "venue", *BIBLIOGRAPHIC)
    values = {name: getattr(paper, name) for name in names}
    return values | {"authors": list(paper.authors), "doi": paper_doi(paper)}


def brief_json(paper: Paper) -> dict[str, Any]:
    """Return what a list shows of a paper."""
    return {
        "id": paper.id,
        "title": paper.title,
        "year": paper.year,
        "authors": list(paper.authors),
        "venue": paper.venue,
    }


def search(version: OpenVersion, wanted: Search) -> dict[str, Any]:
    """Return the papers that match words best, filtered by year and venue.

    Raises:
        ConfigError: If there are no words.
    """
    bm25 = version.default.retriever.bm25
    if not wanted.q.strip():
        raise ConfigError("q is empty; give some words")
    if bm25 is None:
        raise ConfigError(f"the index {version.name} has no words to search")
    query = Query(id="query", title=" ".join(wanted.q.split()), named=False)
    needed = wanted.offset + wanted.limit
    rows, scores, is_complete = _matches(bm25, version, query, wanted, needed)
    shown = slice(wanted.offset, needed)
    papers = version.index.papers.at(rows[shown].tolist())
    pairs = zip(rows[shown].tolist(), scores[shown].tolist(), strict=True)
    return {
        "index": version.name,
        "version": version.version,
        "offset": wanted.offset,
        "results": [brief_json(papers[row]) | {"score": score} for row, score in pairs],
        "more": len(rows) > needed or not is_complete,
    }


def _matches(
    bm25: Bm25Retriever, version: OpenVersion, query: Query, wanted: Search, needed: int
) -> tuple[Rows, Any, bool]:
    """Return the rows and scores of at least `needed` matches, and whether there are no others.

    More hits are fetched until enough of them pass the filters, at most `MOST_SEARCHED`.
    """
    depth = min(max(4 * needed, 100), MOST_SEARCHED)
    while True:
        [hits] = bm25.retrieve([query], [Eligibility(wanted.year_max)], depth)
        keep = _passing(version, hits.rows, wanted)
        is_complete = len(hits) < depth
        if is_complete or int(keep.sum()) > needed or depth == MOST_SEARCHED:
            return hits.rows[keep], hits.scores[keep], is_complete
        depth = min(8 * depth, MOST_SEARCHED)


def _passing(version: OpenVersion, rows: Rows, wanted: Search) -> Any:
    papers = version.index.papers
    keep = np.ones(len(rows), np.bool_)
    years = papers.years[rows]
    if wanted.year_min is not None:
        keep &= (years >= wanted.year_min) & (years != NO_YEAR)
    if wanted.year_max is not None:
        keep &= years != NO_YEAR
    if part := wanted.venue.casefold().strip():
        venues = papers.texts("venue", rows).to_pylist()
        keep &= np.array([part in venue.casefold() for venue in venues], np.bool_)
    return keep


def row_of(version: OpenVersion, paper_id: str) -> int:
    """Return the row of a paper by its id or DOI; a prefix such as `DOI:` may precede it.

    Raises:
        ProblemError: If it is not in the index.
    """
    [row] = rows_of(version, [paper_id])
    if row is None:
        raise ProblemError("not-found", f"no paper {paper_id[:200]!r} in the index {version.name}")
    return row


def rows_of(version: OpenVersion, paper_ids: Sequence[str]) -> list[int | None]:
    """Return the rows of papers by id or DOI; None for one that is not in the index."""
    papers = version.index.papers
    exact = papers.rows_of(paper_ids).tolist()
    found: list[int | None] = [row if row >= 0 else None for row in exact]
    for place, text in enumerate(paper_ids):
        if found[place] is None:
            entry = paper_list_of(_without_prefix(text).split(" ")[:1])
            rows = listed_rows(entry, papers)
            found[place] = min(rows[0], default=None) if rows else None
    return found


def _without_prefix(text: str) -> str:
    lower = text.lower()
    return next((text[len(p) :] for p in PREFIXES if lower.startswith(p)), text).strip()


def paper(
    version: OpenVersion, paper_id: str, *, limit: int, references_offset: int, cited_by_offset: int
) -> dict[str, Any]:
    """Return a paper with pages of its references and of the papers that cite it, inside the corpus.

    Raises:
        ProblemError: If it is not in the index.
    """
    row = row_of(version, paper_id)
    graph = version.default.graph
    cited_by = graph.cited_by
    citing = np.sort(cited_by.indices[cited_by.indptr[row] : cited_by.indptr[row + 1]])
    references = version.index.graph.references(row)
    return {
        "index": version.name,
        "version": version.version,
        "paper": paper_json(version.index.papers[row]),
        "references": _page(version, references, references_offset, limit),
        "cited_by": _page(version, citing, cited_by_offset, limit),
    }


def _page(version: OpenVersion, rows: Rows, offset: int, limit: int) -> dict[str, Any]:
    shown = rows[offset : offset + limit].tolist()
    papers = version.index.papers.at(shown)
    return {
        "total": len(rows),
        "offset": offset,
        "results": [brief_json(papers[row]) for row in shown],
    }


def describe(version: OpenVersion, *, swaps: int, is_failed: bool) -> dict[str, Any]:
    """Return what an index holds, and the models that are used on it."""
    recommender: BatchRecommender = version.default
    counts, years = version.index.manifest.counts, version.index.papers.years
    known = years[years != NO_YEAR]
    return {
        "name": version.name,
        "version": version.version,
        "papers": len(years),
        "citations": int(counts.get("citations", 0)),
        "years": [int(known.min()), int(known.max())] if len(known) else None,
        "retrievers": list(recommender.retriever_names),
        "encoder": recommender.encoder,
        "reranker": recommender.reranker,
        "ranker": str(recommender.ranker or ""),
        "swaps": swaps,
        "failed_update": is_failed,
    }
