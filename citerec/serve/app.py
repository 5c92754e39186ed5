"""The web application: the API under /v1, health and metrics, how errors become answers; and the process it runs in."""

import os
import signal
import socket
from asyncio import Transport
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from platform import python_version
from typing import Annotated, Any
from urllib.parse import quote

import prometheus_client as prometheus
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from prometheus_client import Counter, Gauge, Histogram, Info
from pydantic import BaseModel, Field, create_model
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from citerec.bibliography.keys import paper_doi
from citerec.collect.client import CollectError
from citerec.collect.zotero import save_papers
from citerec.errors import CiterecError, OutputError
from citerec.export import Format, pieces
from citerec.export.jsonl import place
from citerec.recommendations import Recommendations
from citerec.search import SearchFilter
from citerec.serve import ServeConfig, page, scholar
from citerec.serve.collector import Collector
from citerec.serve.desk import Desk
from citerec.serve.guard import MAX_HEADERS, Guard, ProblemError
from citerec.serve.requests import (
    PROBLEMS,
    CheckAnswer,
    CheckRequest,
    ExportRequest,
    IndexRequest,
    RecommendAnswer,
    RecommendRequest,
    SaveRequest,
    Year,
    json,
    problem_of,
    recommended,
)
from citerec.serve.service import (
    IndexFacts,
    OpenIndex,
    Served,
    Service,
    answer,
    stopping,
)
from citerec.types import BIBLIOGRAPHIC, Json

MAX_OFFSET = 50_000
MAX_ERRORS = 20  # faults of one request that an answer names
EXPECTED = 'send an object as application/json, such as {"title": "Late interaction"}'
FILES = {  # formats of reference managers by media type, with the suffix of a file
    "application/x-bibtex": (Format.BIBTEX, ".bib"),
    "application/x-research-info-systems": (Format.RIS, ".ris"),
    "application/vnd.citationstyles.csl+json": (Format.CSL, ".json"),
}
TEXT = {"schema": {"type": "string"}}
# of references; text first: generated clients read an answer as the first type that they know
MEDIA = {"text": "text/plain", "doi": "text/plain", "html": "text/html"} | {
    form.value: name for name, (form, _) in FILES.items()
}
AS_FILE, AS_REFERENCES = (
    dict[int | str, Any](
        {200: {"content": {name: {} if "json" in name else TEXT for name in names}}}
    )
    for names in (FILES, MEDIA.values())
)
DRAIN_SECONDS = 30  # for requests in flight, after the first signal
# with some backlogs, which are accepted before one is closed, fewer than the files that may be open; not on Windows
MAX_CONNECTIONS = (
    min(256, os.sysconf("SC_OPEN_MAX") // 4) if hasattr(os, "sysconf") else 256
)
BACKLOG = MAX_CONNECTIONS // 8
IDLE_SECONDS = 15  # until a connection has sent the headers of a request
Index = Annotated[
    str | None, Query(description="The name of an index; by default the first.")
]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Name = Annotated[
    str, Query(max_length=200, description="Words of a name, up to case and accents.")
]


def refuse_unknown(request: Request) -> None:
    """Refuse parameters that the route does not have: a misspelt filter would be left out in silence."""
    known = {
        parameter.alias for parameter in request.scope["route"].dependant.query_params
    }
    if unknown := [name for name in request.query_params if name not in known]:
        message = f"expected {', '.join(sorted(known)) or 'no parameter'}"
        raise RequestValidationError(
            [
                {"type": "unknown", "loc": ("query", name), "msg": message}
                for name in unknown
            ]
        )


api = APIRouter(prefix="/v1", dependencies=[Depends(refuse_unknown)])
health = APIRouter(tags=["health"])


def create_app(
    service: Service, drafts: Desk | None = None, collections: Path | None = None
) -> FastAPI:
    """Return the application over the open indexes of a service; closing the service is the caller's task."""
    app = FastAPI(
        title="citerec",
        summary="Recommends papers that a draft should cite.",
        version=version("citerec"),
        docs_url=None,  # it would load scripts of another server
        redoc_url=None,
        responses=PROBLEMS,
    )
    app.state.service, app.state.metrics = service, Metrics(service)
    app.state.keeps = drafts is not None
    app.state.collects = collections is not None
    if drafts:
        app.include_router(drafts.router)
    if collections:
        app.include_router(Collector(collections, service).router)
    for router in (api, scholar.router, health, page.router):
        app.include_router(router)
    for kind in (CiterecError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _on_error)
    app.add_middleware(GZipMiddleware, compresslevel=5)
    app.add_middleware(
        Guard, settings=service.settings, answered=app.state.metrics.answered
    )
    if origins := service.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return app


# --- what the routes return


class BriefPaper(BaseModel):
    """What a list shows of a paper."""

    id: str
    title: str
    year: int | None
    authors: list[str]
    venue: str
    retracted: bool


class FoundPaper(BriefPaper):
    """A hit of a search."""

    score: float  # of BM25


texts: Json = dict.fromkeys(("abstract", *BIBLIOGRAPHIC), (str, ...))
# all that a corpus states
FullPaper = create_model("FullPaper", __base__=BriefPaper, **texts)


class SearchAnswer(BaseModel):
    """One page of a search, best first."""

    index: str
    version: str
    offset: int
    results: list[FoundPaper]
    more: bool  # whether there are more, after these


class PaperPage(BaseModel):
    """A page of a list of papers, such as `citerec.search.LinkedPapers`."""

    total: int
    offset: int
    results: list[BriefPaper] = Field(validation_alias="papers")


class PaperAnswer(BaseModel):
    """A paper, its references and the papers that cite it, inside the corpus."""

    index: str
    version: str
    paper: FullPaper  # pyright: ignore[reportInvalidTypeForm]
    references: PaperPage
    cited_by: PaperPage


class ConnectionsRequest(IndexRequest):
    """Papers by their ids, such as a list and the references of its draft."""

    ids: list[str] = Field(min_length=1, max_length=1_000)
    k: int = Field(
        10, ge=1, le=100, description="Prior works and derivative works, at most."
    )


class ConnectedPaper(BriefPaper):
    """A work that is connected with several papers."""

    links: int  # with how many


class ConnectionsAnswer(BaseModel):
    """The citations among some papers, and what several of them cite, or what cites several."""

    links: list[tuple[str, str]]  # ids: the first paper cites the second
    prior: list[ConnectedPaper]
    derivative: list[ConnectedPaper]


class IndexList(BaseModel):
    """All indexes, the default first."""

    indexes: list[IndexFacts]


# --- routes


@api.post("/recommend", response_model=RecommendAnswer, responses=AS_FILE)
async def recommend(request: Request, body: RecommendRequest) -> Response:
    """Recommend papers that a draft should cite, best first.

    With the type of BibTeX, RIS or CSL-JSON in `Accept`, the answer is a file for a reference manager.
    """

    def shown(
        opened: OpenIndex, lists: list[Recommendations], notices: Sequence[str]
    ) -> Response:
        request.app.state.metrics.queries.inc(len(lists))
        request.state.log |= {"index": opened.name, "queries": len(lists)}
        # a format of reference managers that the client asks for; else JSON
        accept = request.headers.get("accept", "").lower()
        wanted = [
            name
            for name in FILES
            if name in accept and "application/json" not in accept
        ]
        if not wanted:
            fields = [field.value for field in body.fields]
            answers = [
                {
                    "query": found.query.id,
                    **place(found),
                    "results": found.to_dicts(fields),
                    "empty_reason": found.empty_reason,
                    "notices": list(found.notices),
                }
                for found in lists
            ]
            return json(
                {
                    "index": opened.name,
                    "version": opened.version,
                    "answers": answers,
                    "notices": list(notices),
                    "not_found": list(dict.fromkeys(lists[0].not_found)),
                }
            )
        form, suffix = FILES[wanted[0]]
        headers = {
            "Content-Type": f"{wanted[0]}; charset=utf-8",
            "Content-Disposition": f'attachment; filename="citerec{suffix}"',
            "Vary": "Accept",
        }
        return Response("".join(pieces(lists, form, batch=True)), headers=headers)

    return await recommended(request, body, shown)


@api.post("/export", response_class=Response, responses=AS_REFERENCES)
async def export(request: Request, body: ExportRequest) -> Response:
    """Return papers as references: for a reference manager, or formatted; Zotero reads the HTML, too.

    The header `Citerec-Notice`, percent-encoded, names papers without a DOI, or without volume or pages.
    """

    def work(opened: OpenIndex) -> Response:
        text, notice = body.written(opened)
        headers = page.SAFE | ({"Citerec-Notice": quote(notice)} if notice else {})
        return Response(text, headers=headers, media_type=MEDIA[body.format])

    return await answer(request, work, body.index, "uploads")


@api.post("/zotero")
async def save_to_zotero(request: Request, body: SaveRequest) -> dict[str, int]:
    """Save papers into the Zotero of this machine, but those that it has; a server for other machines refuses.

    The answer is how many were `saved`, and how many were `known`.
    """

    def work(opened: OpenIndex) -> dict[str, int]:
        if not request.app.state.service.settings.is_local:
            fault = "only a server that this machine alone can reach saves to Zotero"
            raise ProblemError("not-found", fault)
        papers = body.papers(opened)
        try:
            saved = save_papers(papers, body.notes)
        except CollectError as error:
            raise ProblemError("zotero", str(error)) from error
        return {"saved": saved, "known": len(papers) - saved}

    return await answer(request, work, body.index, "uploads")


@api.post("/check")
async def check(request: Request, body: CheckRequest) -> CheckAnswer:
    """Compare a bibliography with an index: retracted papers, other years, DOIs and titles, preprints, duplicates."""
    return await answer(request, body.answered, body.index, "uploads")


@api.get("/search", response_model=SearchAnswer)
async def search(
    request: Request,
    q: Annotated[
        str, Query(min_length=1, max_length=1000, examples=["parallel coordinates"])
    ],
    index: Index = None,
    year_min: Year | None = None,
    year_max: Year | None = None,
    author: Name = "",
    venue: Name = "",
    limit: Limit = 20,
    offset: Offset = 0,
    as_typed: bool = False,
) -> Json:
    """Search the titles and abstracts by keywords (BM25), best first; a paper need not have all keywords.

    With `as_typed`, the last word may be the start of one.
    """
    bounds = SearchFilter(
        year_min=year_min, year_max=year_max, author=author, venue=venue
    )

    def work(opened: OpenIndex) -> Json:
        hits = opened.default.corpus.search(
            q, k=limit + 1, offset=offset, filter=bounds, as_typed=as_typed
        )
        return {
            "index": opened.name,
            "version": opened.version,
            "offset": offset,
            "results": [
                asdict(item.paper) | {"score": item.score} for item in hits[:limit]
            ],
            "more": len(hits) > limit,
        }

    return await answer(request, work, index, "lookups")


@api.get("/papers/{id:path}", response_model=PaperAnswer)
async def paper(
    request: Request,
    id: str,
    index: Index = None,
    limit: Limit = 100,
    references_offset: Offset = 0,
    cited_by_offset: Offset = 0,
) -> Json:
    """Return a paper by its id or DOI (`DOI:10....`), with its references and citing papers, most cited first."""

    def work(opened: OpenIndex) -> Json:
        corpus = opened.default.corpus
        paper = corpus.paper(id).paper
        return {
            "index": opened.name,
            "version": opened.version,
            "paper": asdict(paper) | {"doi": paper_doi(paper)},
            "references": corpus.references(
                paper.id, k=limit, offset=references_offset
            ),
            "cited_by": corpus.cited_by(paper.id, k=limit, offset=cited_by_offset),
        }

    return await answer(request, work, index, "lookups")


@api.post("/connections", response_model=ConnectionsAnswer)
async def connections(request: Request, body: ConnectionsRequest) -> Json:
    """Return how papers of a list are connected, and the prior and derivative works of the list."""

    def work(opened: OpenIndex) -> Json:
        found = opened.default.corpus.connections(body.ids, k=body.k)
        prior, derivative = (
            [asdict(paper) | {"links": links} for paper, links in works]
            for works in (found.prior, found.derivative)
        )
        return {"links": found.links, "prior": prior, "derivative": derivative}

    return await answer(request, work, body.index, "lookups")


@api.get("/index")
def index(service: Served) -> IndexList:
    """Return what each index holds, of new versions, too; the first one is the default."""
    service.renew()
    return IndexList(indexes=[served.facts() for served in service.indexes.values()])


@health.head("/healthz", include_in_schema=False)
@health.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process runs."""
    return {"status": "ok"}


@health.head("/readyz", include_in_schema=False)
@health.get("/readyz")
async def readyz(service: Served) -> Json:
    """Say whether requests are answered."""
    if service.is_closed:
        raise stopping()
    return {"status": "ready", "indexes": list(service.indexes)}


@health.get("/metrics", response_class=Response)
def read_metrics(request: Request) -> Response:
    """Return the metrics for Prometheus."""
    text = request.app.state.metrics.text()
    return Response(text, media_type=prometheus.CONTENT_TYPE_LATEST)


class Metrics:
    """The metrics of one application, for Prometheus."""

    def __init__(self, service: Service) -> None:
        self.registry = to = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=to)
        about = "Requests by route and status."
        self.requests = Counter(
            "citerec_requests", about, ["route", "status"], registry=to
        )
        self.seconds = Histogram(
            "citerec_request_seconds", "Time to answer.", ["route"], registry=to
        )
        self.queries = Counter(
            "citerec_queries", "Queries that were ranked.", registry=to
        )
        waiting = Gauge(
            "citerec_requests_in_flight", "Requests not answered yet.", registry=to
        )
        waiting.set_function(lambda: service.in_flight)
        build = Info("citerec_build", "The citerec that answers.", registry=to)
        build.info({"version": version("citerec"), "python": python_version()})
        about = "The open indexes, each with the models that are used on it."
        self.indexes = Info("citerec_index", about, ["index"], registry=to)
        self.service = service

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        shown = {"version", "encoder", "reranker", "ranker"}
        for name, opened in self.service.indexes.items():
            self.indexes.labels(name).info(opened.facts().model_dump(include=shown))
        return prometheus.generate_latest(self.registry)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that ids in paths make no new series."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)


# --- errors


async def _on_error(request: Request, error: Exception) -> Response:
    """Answer an error."""
    if isinstance(error, RequestValidationError):
        problem = _invalid(error)
    elif isinstance(error, CiterecError | ProblemError):
        problem = problem_of(error, request.app.state.service.hidden, request.state.log)
    else:  # of the framework, such as an unknown path
        assert isinstance(error, HTTPException)
        status = error.status_code
        kinds = {404: "not-found", 405: "method-not-allowed"}
        # 400: of the body's JSON: not UTF-8, or nested too deeply; or of its files
        is_json = status == 400 and "multipart" not in request.headers.get(
            "content-type", ""
        )
        detail = (
            f"the body cannot be read; {EXPECTED}" if is_json else str(error.detail)
        )
        kind = kinds.get(status, "invalid-request")
        problem = ProblemError(kind, detail, headers=error.headers, status=status)
    if not request.url.path.startswith("/recommendations/"):
        return problem.response(request.state.log["id"])
    # clients of Semantic Scholar read "error", and know 400 alone for what is wrong with a request
    if problem.kind == "invalid-request":
        problem.status_code = 400
    return problem.response(request.state.log["id"], error=problem.detail)


def _invalid(error: RequestValidationError) -> ProblemError:
    """Return the problem of a request that its schema refuses.

    `pointer` (RFC 6901) leads to a wrong value from the body, or is a parameter.
    """
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        place = found[0]["loc"][1]
        detail = f"the body is not JSON from character {place} on; {EXPECTED}"
        return ProblemError("invalid-request", detail, status=400)
    by_place: dict[str, list[str]] = {}
    for fault in found:
        name, *more = [*fault["loc"][1:], ""]
        # the types that a value may have are no part of the place
        parts = [str(name), *(str(part) for part in more if isinstance(part, int))]
        place = "".join(
            f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts if part
        )
        by_place.setdefault(place, []).append(fault["msg"] if place else EXPECTED)
    faults = [
        {"pointer": place, "detail": ", or ".join(dict.fromkeys(messages))}
        for place, messages in islice(by_place.items(), MAX_ERRORS)
    ]
    first = f"{faults[0]['pointer'] or 'the body'}: {faults[0]['detail']}"
    return ProblemError("invalid-request", first, faults)


# --- the process


def bound(settings: ServeConfig) -> socket.socket:
    """Return the socket of a server, bound but not listening yet: the address is taken before models are loaded."""
    place = settings.host, settings.port
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server(place, family=family, backlog=BACKLOG)
        # the two parts of an answer leave at once: asyncio sets it for other sockets alone
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        reason = f"{settings.host}:{settings.port}: {error.strerror or error}"
        raise OutputError(
            f"cannot listen on {reason}; choose another with --host or --port"
        ) from error


def url(listening: socket.socket) -> str:
    """Return the URL of a socket, such as `http://127.0.0.1:8000`."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Connection(H11Protocol):
    """A connection of uvicorn, which has no limits of its own on slow headers and on the number of connections."""

    def connection_made(self, transport: Transport) -> None:
        """Open it; where there are too many, one that has no request, or else this one, is closed."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            waiting = (
                connection
                for connection in self.connections
                if isinstance(connection, Connection)
                and connection.timeout_keep_alive_task
            )
            next(waiting, self).transport.abort()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def data_received(self, data: bytes) -> None:
        """Read as uvicorn does, but let the time limit run until the headers are complete."""
        self.conn.receive_data(data)
        self.handle_events()


def web_server(app: ASGIApp) -> uvicorn.Server:
    """Return the web server of an application."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADERS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, service: Service, listening: socket.socket) -> None:
    """Serve an application on a bound socket until a signal ends the process; requests in flight are answered first.

    A second signal ends it at once.
    """
    server = web_server(app)
    # in place of uvicorn's handlers, which go on to wait after a second signal
    server.capture_signals = nullcontext  # pyright: ignore[reportAttributeAccessIssue]

    def stop(number: int, _: object) -> None:
        if server.should_exit:
            os._exit(128 + number)
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
        has_ended = service.close()
    if not has_ended:
        os._exit(0)  # Python would wait for the threads; nothing is left to be written
