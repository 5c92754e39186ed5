"""The web application: its routes, and how errors become answers."""

import asyncio

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from citerec.errors import CiterecError
from citerec.serve.schema import RecommendAnswer, RecommendRequest
from citerec.serve.service import Service


def create_app(service: Service) -> FastAPI:
    """Return the application over the open indexes of a service; closing the service is the caller's task."""
    app = FastAPI(title="citerec", docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_exception_handler(CiterecError, _refused)

    @app.post("/v1/recommend")
    async def recommend(request: RecommendRequest) -> RecommendAnswer:  # pyright: ignore[reportUnusedFunction]
        return await asyncio.wrap_future(service.submit(request))

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        return {"status": "ok"}

    # The page at / is included here: app.include_router(page_router(service))
    return app


async def _refused(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse(
        {"type": "about:blank", "title": "Invalid request", "status": 422, "detail": str(error)},
        status_code=422,
        media_type="application/problem+json",
    )
