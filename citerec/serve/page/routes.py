"""The routes of the page; `create_app` includes `page_router`."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version as version_of
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from citerec.errors import BadInputError, CiterecError
from citerec.serve.answers import finished, hidden_of, json
from citerec.serve.page.backend import PageBackend, export
from citerec.serve.page.search import MOST, PageRequest
from citerec.serve.page.template import render
from citerec.serve.page.uploads import MOST_FILES, Upload, read_uploads
from citerec.serve.problems import ProblemError, problem_of
from citerec.serve.service import Service
from citerec.serve.version import OpenVersion

LOG = logging.getLogger("citerec.serve")
STATIC = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
READERS = 2  # uploads that are read at once; a large PDF takes seconds
POLICY = (  # everything from this server, and no script or style within the page
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks whether its copy is the newest: an update is complete
}


class ExportRequest(BaseModel):
    """Papers of an index, and the format to write them in."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = None
    ids: list[str] = Field(min_length=1, max_length=1_000)
    format: Literal["bibtex", "ris", "csl"] = "bibtex"


def page_router(service: Service) -> APIRouter:
    """Return the routes of the page over the open indexes of a service."""
    router = APIRouter(include_in_schema=False)
    backend = PageBackend()
    _add_files(router, service, backend)
    _add_papers(router, service, backend)
    _add_uploads(router, service)

    @router.post("/page/recommend")
    async def recommend(request: Request, body: PageRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        # A server that is busy answers 429 here, before the stream begins.
        first = service.call(lambda version: backend.first(version, body), body.index)
        events = _events(body, first, service, backend)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    return router


def _facts(service: Service, backend: PageBackend) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in service.names:
        with service.indexes.use(name) as version:
            found.append(backend.facts(version))
    return found


def _add_files(router: APIRouter, service: Service, backend: PageBackend) -> None:
    names = {path.name for path in STATIC.iterdir()}
    settings = service.settings

    @router.get("/")
    def page() -> Response:  # pyright: ignore[reportUnusedFunction]
        # Without a token the page holds nothing of the corpora; its scripts ask for one.
        indexes = [] if settings.tokens else _facts(service, backend)
        text = render(indexes, version=version_of("citerec"), most_bytes=settings.max_body_bytes)
        return HTMLResponse(text, headers=SAFE)

    @router.get("/static/{name}")
    def static(name: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        if name not in names:
            raise ProblemError("not-found", "no such file")
        return FileResponse(STATIC / name, media_type=TYPES[Path(name).suffix], headers=SAFE)

    @router.get("/page/indexes")
    def indexes() -> Response:  # pyright: ignore[reportUnusedFunction]
        return json(_facts(service, backend))


def _add_papers(router: APIRouter, service: Service, backend: PageBackend) -> None:
    async def called(
        request: Request, work: Callable[[OpenVersion], Any], index: str | None
    ) -> Any:
        return await finished(request, service.call(work, index), service.settings.timeout_seconds)

    @router.get("/page/papers")
    async def papers(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        ids: Annotated[list[str], Query(max_length=MOST)],
        index: str | None = None,
    ) -> Response:
        return json(await called(request, lambda version: backend.papers(version, ids), index))

    @router.get("/page/example")
    async def example(request: Request, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        return json(await called(request, backend.example, index))

    @router.post("/page/export")
    async def exported(request: Request, body: ExportRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        text = await called(
            request, lambda version: export(version, body.ids, body.format), body.index
        )
        return Response(text, media_type="text/plain")


def _add_uploads(router: APIRouter, service: Service) -> None:
    readers = ThreadPoolExecutor(READERS, "citerec-uploads")

    def read(files: list[Upload], index: str | None) -> dict[str, Any]:
        try:
            with service.indexes.use(index) as version:
                return read_uploads(files, version.index)
        finally:
            service.admission.leave(1)

    @router.post("/page/draft")
    async def draft(request: Request, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        files = await _uploaded(request)
        service.admission.admit(1)
        return json(await asyncio.wrap_future(readers.submit(read, files, index)))


async def _events(
    request: PageRequest,
    first: "Future[dict[str, Any] | None]",
    service: Service,
    backend: PageBackend,
) -> AsyncIterator[bytes]:
    """Yield the events `first` (unless the first stage is all) and `last`, or `problem`."""
    start = perf_counter()

    def event(name: str, data: Mapping[str, Any]) -> bytes:
        timed = {**data, "seconds": round(perf_counter() - start, 4)}
        return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(timed))

    try:
        if found := await asyncio.wrap_future(first):
            yield event("first", found)
        answered = await asyncio.wrap_future(service.submit(request.for_api()))
        shown = service.call(lambda version: backend.last(version, answered), request.index)
        yield event("last", await asyncio.wrap_future(shown))
    except CiterecError as error:
        problem = problem_of(error, hidden_of(service))
        if problem.status >= 500:
            LOG.error("%s: %s", type(error).__name__, error)
        yield event("problem", problem.as_json())
    except ProblemError as problem:
        retry_after = int(problem.headers.get("Retry-After", 0))
        yield event("problem", {**problem.as_json(), "retry_after": retry_after})


async def _uploaded(request: Request) -> list[Upload]:
    """Return the files of a multipart request, whose size is limited as that of any request.

    Raises:
        BadInputError: If it is no such request.
    """
    try:
        parser = MultiPartParser(
            request.headers, request.stream(), max_files=MOST_FILES, max_fields=0
        )
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        fault = error.message if isinstance(error, MultiPartException) else "no files"
        raise BadInputError("upload", f"cannot be read: {fault}") from error
    sent = [part for part in form.getlist("files") if isinstance(part, UploadFile)]
    files = [Upload(part.filename or "", await part.read()) for part in sent]
    await form.close()
    return files
