"""Look-ups of the API as JSON: hits of a search, a paper with its citations, what an index holds."""

from typing import Any

from citerec.api.corpus import LinkedPapers, SearchFilter
from citerec.bibliography.doi import paper_doi
from citerec.recommend import BatchRecommender
from citerec.serve.version import OpenVersion
from citerec.types import BIBLIOGRAPHIC, Paper


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


def search(
    version: OpenVersion, keywords: str, filter: SearchFilter, *, offset: int, limit: int
) -> dict[str, Any]:
    """Return a page of `Corpus.search`; see it for the errors."""
    found = version.corpus.search(keywords, k=limit + 1, offset=offset, filter=filter)
    return {
        "index": version.name,
        "version": version.version,
        "offset": offset,
        "results": [brief_json(item.paper) | {"score": item.score} for item in found[:limit]],
        "more": len(found) > limit,
    }


def paper(
    version: OpenVersion, paper_id: str, *, limit: int, references_offset: int, cited_by_offset: int
) -> dict[str, Any]:
    """Return a paper with pages of its references and of the papers that cite it, inside the corpus.

    Raises:
        PaperNotFoundError: If it is not in the index.
    """
    corpus = version.corpus
    found = corpus.paper(paper_id).paper
    return {
        "index": version.name,
        "version": version.version,
        "paper": paper_json(found),
        "references": _page(corpus.references(found.id, k=limit, offset=references_offset)),
        "cited_by": _page(corpus.cited_by(found.id, k=limit, offset=cited_by_offset)),
    }


def _page(links: LinkedPapers) -> dict[str, Any]:
    results = [brief_json(paper) for paper in links.papers]
    return {"total": links.total, "offset": links.offset, "results": results}


def describe(version: OpenVersion) -> dict[str, Any]:
    """Return what an index holds, and the models that are used on it."""
    recommender: BatchRecommender = version.default
    return {
        "name": version.name,
        "version": version.version,
        "papers": len(version.index.papers),
        "citations": int(version.index.manifest.counts.get("citations", 0)),
        "years": version.corpus.years,
        "retrievers": list(recommender.retriever_names),
        "encoder": recommender.encoder,
        "reranker": recommender.reranker,
        "ranker": str(recommender.ranker or ""),
    }
