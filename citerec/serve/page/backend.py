"""What the routes of the page do with an open index, without any web framework."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from citerec.errors import BadInputError
from citerec.export import Result, dump
from citerec.export.jsonl import items
from citerec.recommend import BatchRecommender
from citerec.serve.page.messages import in_words_of_the_page
from citerec.serve.page.search import PageRequest, first_list, has_later_stages
from citerec.serve.page.view import FIELDS, CorpusView
from citerec.serve.service import Answered
from citerec.serve.version import OpenVersion
from citerec.types import Paper, Query, Recommendation

_QUERY = Query(id="page", title="Papers chosen on the page", named=False)


class PageBackend:
    """Describes open indexes, lists and papers to the page; several threads may use it."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[OpenVersion, CorpusView] = WeakKeyDictionary()
        self._lock = Lock()

    def facts(self, version: OpenVersion) -> dict[str, Any]:
        """Return what the chooser shows of an index; the years are 0 if none is known."""
        recommender = version.default
        found_by = " · ".join([_found_by(recommender), *_ranked_by(recommender)])
        first, last = version.corpus.years or (0, 0)
        years = {"first_year": first, "last_year": last}
        papers = len(version.index.papers)
        return {"name": version.name, "papers": papers, **years, "found_by": found_by}

    def first(self, version: OpenVersion, request: PageRequest) -> dict[str, Any] | None:
        """Return the list of the first stage as the page shows it; None if there is no other order than the last.

        Raises:
            CiterecError: If the request is wrong.
        """
        recommender = version.default
        found = first_list(request, recommender) if has_later_stages(recommender) else []
        if not found:
            return None
        return {**self._view(version).listed(found), "found_by": _found_by(recommender)}

    def last(self, version: OpenVersion, answered: Answered) -> dict[str, Any]:
        """Return the answer of `/v1/recommend` as the page shows it."""
        [of_draft] = answered.answers
        notices = [*answered.notices, *of_draft.notices]
        return {
            **self._view(version).listed(of_draft.to_dicts(FIELDS)),
            "why_nothing": _sentence(in_words_of_the_page(of_draft.why_nothing)),
            "notices": [in_words_of_the_page(notice) for notice in notices],
            "not_found": list(answered.not_found),
            "found_by": _found_by(version.default),
            "ranked_by": _ranked_by(version.default),
        }

    def papers(self, version: OpenVersion, ids: Sequence[str]) -> dict[str, Any]:
        """Return papers by their ids as the page shows them; unknown ids are left out."""
        found = Result(_QUERY, tuple(_as_list(_found(version, ids))))
        return self._view(version).listed(items(found, FIELDS))

    def example(self, version: OpenVersion) -> dict[str, str]:
        """Return title and abstract of a paper for a first try: a late one of those that cite many."""
        graph, years = version.index.graph, version.index.papers.years
        references = (graph.indptr[1:] - graph.indptr[:-1]).clip(max=30)
        paper = version.index.papers[int((references * 10_000 + years).argmax())]
        return {"title": paper.title, "abstract": paper.abstract}

    def _view(self, version: OpenVersion) -> CorpusView:
        with self._lock:
            return self._views.setdefault(version, CorpusView(version.index))


def export(version: OpenVersion, ids: Sequence[str], format: str) -> str:
    """Return papers as BibTeX, RIS or CSL-JSON, in the order given.

    Raises:
        BadInputError: If the index has none of them.
    """
    papers = _found(version, ids)
    if not papers:
        raise BadInputError("ids", "this index has none of these papers; search again")
    return dump([Result(_QUERY, tuple(_as_list(papers)))], format, batch=False)


def _found(version: OpenVersion, ids: Sequence[str]) -> list[Paper]:
    papers = version.index.papers
    rows = [row for row in papers.rows_of([*dict.fromkeys(ids)]).tolist() if row >= 0]
    by_row = papers.at(rows)
    return [by_row[row] for row in rows]


def _as_list(papers: Iterable[Paper]) -> Iterable[Recommendation]:
    return (Recommendation(rank=i, paper=paper, score=0.0) for i, paper in enumerate(papers, 1))


def _found_by(recommender: BatchRecommender) -> str:
    names = {"bm25": "BM25", "dense": f"{recommender.encoder} vectors"}
    return " + ".join(names.get(name, name) for name in recommender.retriever_names)


def _ranked_by(recommender: BatchRecommender) -> list[str]:
    stages = ["reranker"] if recommender.cascade else []
    return [*stages, "ranking model"] if recommender.ranker else stages


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
