"""The routes of the page; `create_app` includes `page_router`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from citerec.errors import BadInputError, CiterecError
from citerec.serve.page.backend import PageBackend
from citerec.serve.page.search import MOST, PageRequest
from citerec.serve.page.template import render
from citerec.serve.page.uploads import MOST_FILES, Upload
from citerec.serve.service import Service

STATIC = Path(__file__).parent / "static"
THREADS = 2  # of the first stage, uploads and exports; the models have threads of their own
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (  # everything from this server, and no script or style within the page
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
Run = Callable[..., Any]


class ExportRequest(BaseModel):
    """Papers of an index, and the format to write them in."""

    model_config = ConfigDict(extra="forbid")

    index: str | None = None
    ids: list[str] = Field(min_length=1, max_length=1_000)
    format: Literal["bibtex", "ris", "csl"] = "bibtex"


def page_router(service: Service) -> APIRouter:
    """Return the routes of the page over the open indexes of a service."""
    router = APIRouter(include_in_schema=False)
    backend = PageBackend(service)
    threads = ThreadPoolExecutor(THREADS, "citerec-page")

    async def run(work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.wrap_future(threads.submit(work, *arguments))

    _add_files(router, backend, run, service.settings.max_body_bytes)
    _add_papers(router, backend, run)

    @router.post("/page/recommend")
    async def recommend(request: PageRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        events = _events(request, service, backend, run)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    @router.post("/page/draft")
    async def draft(request: Request, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        files = await _uploaded(request, service.settings.max_body_bytes)
        return JSONResponse(await run(backend.read, index, files))

    return router


def _add_files(router: APIRouter, backend: PageBackend, run: Run, most_bytes: int) -> None:
    names = {path.name for path in STATIC.iterdir()}

    @router.get("/")
    async def page() -> Response:  # pyright: ignore[reportUnusedFunction]
        indexes = await run(backend.indexes)
        text = render(indexes, version=version("citerec"), most_bytes=most_bytes)
        return HTMLResponse(text, headers={**SAFE, "Cache-Control": "no-cache"})

    @router.get("/static/{name}")
    async def static(name: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        if name not in names:
            return Response(status_code=404)
        # The browser asks each time whether its copy is the newest: an update is complete.
        headers = {**SAFE, "Cache-Control": "no-cache"}
        return FileResponse(STATIC / name, media_type=TYPES[Path(name).suffix], headers=headers)


def _add_papers(router: APIRouter, backend: PageBackend, run: Run) -> None:
    @router.get("/page/papers")
    async def papers(  # pyright: ignore[reportUnusedFunction]
        ids: Annotated[list[str], Query(max_length=MOST)], index: str | None = None
    ) -> Response:
        return _json(await run(backend.papers, index, ids))

    @router.get("/page/related")
    async def related(id: str, index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        return _json(await run(backend.related, index, id))

    @router.get("/page/example")
    async def example(index: str | None = None) -> Response:  # pyright: ignore[reportUnusedFunction]
        return _json(await run(backend.a_draft, index))

    @router.post("/page/export")
    async def export(request: ExportRequest) -> Response:  # pyright: ignore[reportUnusedFunction]
        text = await run(backend.export, request.index, request.ids, request.format)
        return Response(text, media_type="text/plain")


async def _events(
    request: PageRequest, service: Service, backend: PageBackend, run: Run
) -> AsyncIterator[bytes]:
    """Yield the events `first` (unless the first stage is all) and `last`, or `problem`."""
    start = perf_counter()

    def event(name: str, data: Mapping[str, Any]) -> bytes:
        timed = {**data, "seconds": round(perf_counter() - start, 4)}
        return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(timed))

    try:
        if first := await run(backend.first, request):
            yield event("first", first)
        answer = await asyncio.wrap_future(service.submit(request.for_api()))
        yield event("last", await run(partial(backend.last, request, answer)))
    except CiterecError as error:
        yield event("problem", {"status": 422, "detail": str(error)})


async def _uploaded(request: Request, most: int) -> list[Upload]:
    """Return the files of a multipart request.

    Raises:
        BadInputError: If it is larger than `most` bytes, or no such request.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            limit = f"at most {most / 2**20:.0f} MB"
            raise BadInputError("upload", f"the files are too large; expected {limit} in all")

    async def parts() -> AsyncIterator[bytes]:
        yield bytes(body)

    try:
        parser = MultiPartParser(request.headers, parts(), max_files=MOST_FILES, max_fields=0)  # pyright: ignore[reportArgumentType]
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        fault = error.message if isinstance(error, MultiPartException) else "no files"
        raise BadInputError("upload", f"cannot be read: {fault}") from error
    sent = [part for part in form.getlist("files") if isinstance(part, UploadFile)]
    files = [Upload(part.filename or "", await part.read()) for part in sent]
    await form.close()
    return files


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
