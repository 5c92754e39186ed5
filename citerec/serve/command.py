"""The route by which `citerec recommend` lets a running server work; no part of the API, as it changes with citerec.

The command line gives what answers (`citerec.cli.remote.server`), so that this package imports nothing of it.
"""

from collections.abc import Callable, Iterator

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

ROUTE = "/v1/command/recommend"
MOST_BYTES = 8 * 2**20  # of a request

# Takes the body of a request; returns a status and the lines of the answer.
CommandAnswer = Callable[[bytes], tuple[int, Iterator[bytes]]]


def command_router(answer: CommandAnswer) -> APIRouter:
    """Return the route for the requests of commands."""
    router = APIRouter()

    @router.post(ROUTE, include_in_schema=False)
    async def work(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return Response("the request is too long", status_code=413)
        status, lines = await run_in_threadpool(answer, bytes(body))
        if status == 200:
            return StreamingResponse(lines, media_type="application/x-ndjson")
        return Response(b"".join(lines), status_code=status, media_type="text/plain")

    return router
