"""What the routes of the page do, without any web framework: lists, papers, drafts of uploads, exports."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

from citerec.errors import BadInputError, shown
from citerec.export import Result, dump
from citerec.export.jsonl import items
from citerec.recommend import BatchRecommender
from citerec.serve.page.messages import in_words_of_the_page
from citerec.serve.page.search import (
    PageRequest,
    first_list,
    has_later_stages,
    unreadable_notice,
)
from citerec.serve.page.uploads import Upload, read_uploads
from citerec.serve.page.view import FIELDS, CorpusView
from citerec.serve.schema import RecommendAnswer
from citerec.serve.service import Service
from citerec.types import Paper, Query, Recommendation


MOST_RELATED = 200  # papers that a paper cites, and that cite it


class PageBackend:
    """Serves the page from the open indexes of a service; several threads may use it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._views: dict[str, CorpusView] = {}
        self._lock = Lock()

    def indexes(self) -> list[dict[str, Any]]:
        """Return what the chooser shows of each index, the default first."""
        return [self._facts(name) for name in self._service.names]

    def first(self, request: PageRequest) -> dict[str, Any] | None:
        """Return the list of the first stage as the page shows it; None if there is no other order than the last.

        Raises:
            CiterecError: If the request is wrong.
        """
        recommender = self._service.recommender(request.index)
        found = first_list(request, recommender) if has_later_stages(recommender) else []
        if not found:
            return None
        return {
            **self._view(request.index, recommender).listed(found),
            "found_by": _by(recommender),
        }

    def last(self, request: PageRequest, answer: RecommendAnswer) -> dict[str, Any]:
        """Return the answer of `/v1/recommend` as the page shows it."""
        recommender = self._service.recommender(request.index)
        [of_draft] = answer.answers
        notices = [*answer.notices, *of_draft.notices, unreadable_notice(request, recommender)]
        return {
            **self._view(request.index, recommender).listed(of_draft.results),
            "why_nothing": _sentence(in_words_of_the_page(of_draft.why_nothing)),
            "notices": [in_words_of_the_page(notice) for notice in notices if notice],
            "not_found": answer.not_found,
            "found_by": _by(recommender),
            "ranked_by": _ranked_by(recommender),
        }

    def papers(self, index: str | None, ids: Sequence[str]) -> dict[str, Any]:
        """Return papers by their ids as the page shows them, without scores; unknown ids are left out."""
        recommender = self._service.recommender(index)
        found = items(Result(_QUERY, tuple(_as_list(self._found(index, ids)))), FIELDS)
        return self._view(index, recommender).listed(found)

    def related(self, index: str | None, docid: str) -> dict[str, Any]:
        """Return what a paper cites and what cites it inside the index, newest first, and how many papers that are.

        Raises:
            BadInputError: If the index has no such paper.
        """
        recommender = self._service.recommender(index)
        [row] = recommender.index.papers.rows_of([docid]).tolist()
        if row < 0:
            raise BadInputError("id", f"this index has no paper {shown(docid)}; search again")
        view = self._view(index, recommender)
        references, citing = recommender.index.graph.references(row), view.citing(row)
        return {
            "references": view.named(references, MOST_RELATED),
            "reference_count": len(references),
            "cited_by": view.named(citing, MOST_RELATED),
            "cited_by_count": len(citing),
        }

    def read(self, index: str | None, files: Sequence[Upload]) -> dict[str, Any]:
        """Read uploaded files; see `read_uploads`."""
        return read_uploads(files, self._service.recommender(index).index)

    def export(self, index: str | None, ids: Sequence[str], format: str) -> str:
        """Return papers as BibTeX, RIS or CSL-JSON, in the order given.

        Raises:
            BadInputError: If the index has none of them.
        """
        papers = self._found(index, ids)
        if not papers:
            raise BadInputError("ids", "this index has none of these papers; search again")
        return dump([Result(_QUERY, tuple(_as_list(papers)))], format, batch=False)

    def a_draft(self, index: str | None) -> dict[str, str]:
        """Return title and abstract of a paper that makes a good first try: the latest of the many that it cites."""
        folder = self._service.recommender(index).index
        graph, years = folder.graph, folder.papers.years
        references = graph.indptr[1:] - graph.indptr[:-1]
        row = int((references.clip(max=30) * 10_000 + years).argmax())
        paper = folder.papers[row]
        return {"title": paper.title, "abstract": paper.abstract}

    def _found(self, index: str | None, ids: Sequence[str]) -> list[Paper]:
        papers = self._service.recommender(index).index.papers
        rows = [row for row in papers.rows_of([*dict.fromkeys(ids)]).tolist() if row >= 0]
        by_row = papers.at(rows)
        return [by_row[row] for row in rows]

    def _facts(self, name: str) -> dict[str, Any]:
        recommender = self._service.recommender(name)
        facts = self._view(name, recommender).facts()
        return {
            "name": name,
            **facts,
            "found_by": " · ".join([_by(recommender), *_ranked_by(recommender)]),
        }

    def _view(self, name: str | None, recommender: BatchRecommender) -> CorpusView:
        name = name or self._service.names[0]
        with self._lock:
            view = self._views.get(name)
            if view is None or view.index is not recommender.index:  # a new version was swapped in
                view = self._views[name] = CorpusView(recommender.index)
        return view


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


_QUERY = Query(id="page", title="Papers chosen on the page", named=False)


def _as_list(papers: Iterable[Paper]) -> Iterable[Recommendation]:
    return (Recommendation(rank=i, paper=paper, score=0.0) for i, paper in enumerate(papers, 1))


def _by(recommender: BatchRecommender) -> str:
    names = {"bm25": "BM25", "dense": f"{recommender.encoder} vectors"}
    return " + ".join(names.get(name, name) for name in recommender.retriever_names)


def _ranked_by(recommender: BatchRecommender) -> list[str]:
    stages = ["reranker"] if recommender.cascade else []
    return [*stages, "ranking model"] if recommender.ranker else stages
