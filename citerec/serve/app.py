"""The web application: the API under /v1, health and metrics, and how errors become answers."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from time import monotonic
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from citerec.bibliography.keys import paper_doi
from citerec.errors import CiterecError
from citerec.export import Format, Result, dump
from citerec.search import LinkedPapers, SearchFilter
from citerec.serve.answers import (
    ProblemError,
    described,
    finished,
    json,
    problem_of,
    problem_response,
)
from citerec.serve.guard import LOG, Guard
from citerec.serve.metrics import Metrics
from citerec.serve.page import page_router
from citerec.serve.requests import RecommendAnswer, RecommendRequest, recommended
from citerec.serve.scholar import scholar_router
from citerec.serve.service import OpenIndex, Service
from citerec.types import BIBLIOGRAPHIC, Paper

MAX_OFFSET = 50_000
MAX_ERRORS = 20  # faults of one request that an answer names
EXPECTED = 'send an object, such as {"title": "Late interaction"}'
MEDIA_TYPES = {
    Format.BIBTEX: "application/x-bibtex",
    Format.RIS: "application/x-research-info-systems",
    Format.CSL: "application/vnd.citationstyles.csl+json",
}
SUFFIXES = {Format.BIBTEX: ".bib", Format.RIS: ".ris", Format.CSL: ".json"}
FILES: dict[int | str, dict[str, Any]] = {
    200: {"content": {name: {"schema": {"type": "string"}} for name in MEDIA_TYPES.values()}}
}
Index = Annotated[str | None, Query(description="The name of an index; by default the first.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
Limit = Annotated[int, Query(ge=1, le=1000)]
YearBound = Annotated[int | None, Query(ge=1, le=9999)]
Name = Annotated[str, Query(max_length=200, description="Words of a name, up to case and accents.")]


def create_app(service: Service) -> FastAPI:
    """Return the application over the open indexes of a service; closing the service is the caller's task."""
    metrics = Metrics(service)
    app = FastAPI(
        title="citerec",
        summary="Recommends papers that a draft should cite.",
        version=version("citerec"),
        docs_url=None,  # it would load scripts of another server
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(_api_router(service, metrics))
    app.include_router(scholar_router(service))
    app.include_router(_health_router(service, metrics))
    app.include_router(page_router(service))
    app.add_exception_handler(ProblemError, _on_problem)
    app.add_exception_handler(CiterecError, _on_citerec_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_middleware(Guard, settings=service.settings, answered=metrics.answered)
    if origins := service.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return app


# --- routes


def _api_router(service: Service, metrics: Metrics) -> APIRouter:
    router = APIRouter(
        prefix="/v1",
        responses=described(401, 422, 429, 503, 504),
        dependencies=[Depends(_refuse_unknown)],
    )
    seconds = service.settings.timeout_seconds

    @router.post(
        "/recommend", response_model=RecommendAnswer, responses=FILES | described(400, 404)
    )
    async def recommend(  # pyright: ignore[reportUnusedFunction]
        request: Request, body: RecommendRequest
    ) -> Response:
        """Recommend papers that a draft should cite, best first.

        With the type of BibTeX, RIS or CSL-JSON in `Accept`, the answer is a file for a reference manager.
        """

        def work(opened: OpenIndex) -> Response:
            started = monotonic()
            answered = recommended(service, opened, body)
            spent = monotonic() - started
            metrics.ranked(len(answered.lists), spent)
            request.state.log |= {
                "index": opened.name,
                "queries": len(answered.lists),
                "model_ms": round(1000 * spent, 1),
            }
            if chosen := accepted_format(request.headers.get("accept", "")):
                lists = [Result(one.query, one.items, one.empty_reason) for one in answered.lists]
                return _file(dump(lists, chosen, batch=True), chosen)
            return json(answered.as_json())

        return await finished(request, service.recommend(work, body.index), seconds)

    @router.get("/search", response_model=SearchAnswer, responses=described(404))
    async def search(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        q: Annotated[str, Query(min_length=1, max_length=1000, examples=["parallel coordinates"])],
        index: Index = None,
        year_min: YearBound = None,
        year_max: YearBound = None,
        author: Name = "",
        venue: Name = "",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Response:
        """Search the titles and abstracts by keywords (BM25), best first; a paper need not have all keywords."""
        passes = SearchFilter(year_min=year_min, year_max=year_max, author=author, venue=venue)

        def work(opened: OpenIndex) -> Response:
            corpus = opened.default.corpus
            found = corpus.search(q, k=limit + 1, offset=offset, filter=passes)
            results = [_brief(item.paper) | {"score": item.score} for item in found[:limit]]
            more = {"results": results, "more": len(found) > limit, "offset": offset}
            return json({"index": opened.name, "version": opened.version, **more})

        return await finished(request, service.look_up(work, index), seconds)

    @router.get("/papers/{id:path}", response_model=PaperAnswer, responses=described(404))
    async def paper(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        id: str,
        index: Index = None,
        limit: Limit = 100,
        references_offset: Offset = 0,
        cited_by_offset: Offset = 0,
    ) -> Response:
        """Return a paper by its id or DOI (`DOI:10....`), with its references and citing papers, most cited first."""

        def work(opened: OpenIndex) -> Response:
            corpus = opened.default.corpus
            found = corpus.paper(id).paper
            references = corpus.references(found.id, k=limit, offset=references_offset)
            cited_by = corpus.cited_by(found.id, k=limit, offset=cited_by_offset)
            pages = {"references": _page(references), "cited_by": _page(cited_by)}
            named = {"index": opened.name, "version": opened.version}
            return json(named | {"paper": _full(found), **pages})

        return await finished(request, service.look_up(work, index), seconds)

    @router.get("/index", response_model=IndexList)
    async def index() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return what each index holds; the first one is the default."""
        return json({"indexes": [_described(one) for one in service.indexes.values()]})

    return router


def _health_router(service: Service, metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """Say that the process runs."""
        return {"status": "ok"}

    @router.get("/readyz", responses=described(503))
    async def readyz() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Say whether requests are answered."""
        if service.is_closed:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ready", "indexes": list(service.indexes)})

    @router.get("/metrics", response_class=Response)
    def read_metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return the metrics for Prometheus."""
        return Response(metrics.text(), media_type=metrics.media_type)

    return router


def _refuse_unknown(request: Request) -> None:
    """Refuse parameters that the route does not have: a misspelt filter would be left out in silence."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    if unknown := [name for name in request.query_params if name not in known]:
        message = f"expected {', '.join(sorted(known)) or 'no parameter'}"
        raise RequestValidationError(
            [{"type": "unknown", "loc": ("query", name), "msg": message} for name in unknown]
        )


def accepted_format(accept: str) -> Format | None:
    """Return the format of reference managers that a header `Accept` names first; None for JSON."""
    formats = {media_type: name for name, media_type in MEDIA_TYPES.items()}
    for part in accept[:1_000].split(","):
        media_type = part.partition(";")[0].strip().lower()
        if media_type in formats:
            return formats[media_type]
        if media_type in ("application/json", "*/*"):
            return None
    return None


def _file(text: str, format: Format) -> Response:
    return Response(
        text,
        headers={
            "Content-Type": f"{MEDIA_TYPES[format]}; charset=utf-8",
            "Content-Disposition": f'attachment; filename="citerec{SUFFIXES[format]}"',
            "Vary": "Accept",
        },
    )


# --- answers


class BriefPaper(BaseModel):
    """What a list shows of a paper."""

    id: str
    title: str
    year: int | None
    authors: list[str]
    venue: str


class FoundPaper(BriefPaper):
    """A hit of a search."""

    score: float  # of BM25


class FullPaper(BriefPaper):
    """All that the corpus states of a paper."""

    abstract: str
    doi: str
    url: str
    type: str
    volume: str
    issue: str
    pages: str
    publisher: str


class SearchAnswer(BaseModel):
    """One page of a search, best first."""

    index: str
    version: str
    offset: int
    results: list[FoundPaper]
    more: bool  # whether there are more, after these


class PaperPage(BaseModel):
    """A page of a list of papers."""

    total: int
    offset: int
    results: list[BriefPaper]


class PaperAnswer(BaseModel):
    """A paper, its references and the papers that cite it, inside the corpus."""

    index: str
    version: str
    paper: FullPaper
    references: PaperPage
    cited_by: PaperPage


class IndexAnswer(BaseModel):
    """What an index holds, and the models that are used on it."""

    name: str
    version: str
    papers: int
    citations: int
    years: tuple[int, int] | None
    retrievers: list[str]
    encoder: str
    reranker: str
    ranker: str


class IndexList(BaseModel):
    """All indexes, the default first."""

    indexes: list[IndexAnswer]


def _brief(paper: Paper) -> dict[str, Any]:
    named = {name: getattr(paper, name) for name in ("id", "title", "year", "venue")}
    return named | {"authors": list(paper.authors)}


def _full(paper: Paper) -> dict[str, Any]:
    named = {name: getattr(paper, name) for name in ("abstract", *BIBLIOGRAPHIC)}
    return _brief(paper) | named | {"doi": paper_doi(paper)}


def _page(links: LinkedPapers) -> dict[str, Any]:
    results = [_brief(paper) for paper in links.papers]
    return {"total": links.total, "offset": links.offset, "results": results}


def _described(opened: OpenIndex) -> dict[str, Any]:
    recommender = opened.default
    return {
        "name": opened.name,
        "version": opened.version,
        "papers": len(opened.index.papers),
        "citations": int(opened.index.manifest.counts.get("citations", 0)),
        "years": recommender.corpus.years,
        "retrievers": list(recommender.retriever_names),
        "encoder": recommender.encoder,
        "reranker": recommender.reranker,
        "ranker": recommender.ranker,
    }


# --- errors


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    # Clients of Semantic Scholar read "error".
    more = {"error": error.detail} if request.url.path.startswith("/recommendations/") else {}
    return problem_response(error, request.state.log["id"], **more)


async def _on_citerec_error(request: Request, error: Exception) -> Response:
    """Answer a `CiterecError`; one that is not the client's fault is logged."""
    assert isinstance(error, CiterecError)
    problem = problem_of(error, request.app.state.service.hidden)
    if problem.status >= 500:
        LOG.error("%s: %s", type(error).__name__, error, extra={"fields": request.state.log})
    return await _on_problem(request, problem)


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown path."""
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "invalid-request")
    detail, headers = str(error.detail), dict(error.headers or {})
    if error.status_code == 400:  # of the body's JSON: not UTF-8, or nested too deeply
        detail = f"the body cannot be read; {EXPECTED}"
    status = error.status_code
    return await _on_problem(
        request, ProblemError(kind, detail, headers=headers, status_code=status)
    )


async def _on_invalid(request: Request, error: Exception) -> Response:
    """Answer a request that its schema refuses."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        before = str(error.body)[: int(found[0]["loc"][1])]
        line, character = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = str(found[0]["ctx"]["error"]).lower()
        detail = f"the body is not JSON: line {line}, character {character}: {reason}; {EXPECTED}"
        return await _on_problem(request, ProblemError("invalid-request", detail, status_code=400))
    faults = [*islice(_faults(found, error.body), MAX_ERRORS)]
    first = f"{faults[0]['pointer'] or 'the body'}: {faults[0]['detail']}"
    return await _on_problem(request, ProblemError("invalid-request", first, faults))


def _faults(found: Sequence[Mapping[str, Any]], body: object) -> Iterator[dict[str, str]]:
    """Yield the faults, one for each place; `pointer` (RFC 6901) leads to it from the body or is a parameter.

    Pydantic names a fault for each type that a value may have: the place is as far as its parts are in the body.
    """
    by_place: dict[str, list[str]] = {}
    for fault in found:
        source, *parts = fault["loc"]
        place, value = "", body
        for part in parts:
            is_inside = part in value if isinstance(value, dict) else isinstance(part, int)
            if is_inside and isinstance(value, dict | list):
                value = value[part]
            elif source == "body" and fault["type"] != "missing":
                continue
            place += "/" + str(part).replace("~", "~0").replace("/", "~1")
        by_place.setdefault(place, []).append(str(fault["msg"]))
    for place, messages in by_place.items():
        is_object = place or isinstance(body, dict)
        no_object = f"it is no JSON object of the Content-Type application/json; {EXPECTED}"
        detail = ", or ".join(dict.fromkeys(messages)) if is_object else no_object
        yield {"pointer": place, "detail": detail}
