"""The web application: its routes, and how errors become answers."""

from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException

from citerec.errors import CiterecError
from citerec.serve import answers
from citerec.serve.api import api_router, health_router
from citerec.serve.guard import Guard
from citerec.serve.metrics import Metrics
from citerec.serve.page.routes import page_router
from citerec.serve.problems import ProblemError
from citerec.serve.scholar import scholar_router
from citerec.serve.service import Service

SUMMARY = "Recommends papers that a draft should cite."


def create_app(service: Service) -> FastAPI:
    """Return the application over the open indexes of a service; closing the service is the caller's task.

    `app.state.service` is the service.
    """
    metrics = Metrics(service)
    app = FastAPI(
        title="citerec",
        summary=SUMMARY,
        version=version("citerec"),
        docs_url=None,  # it would load scripts of another server
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(api_router(service))
    app.include_router(scholar_router(service))
    app.include_router(health_router(service))
    app.include_router(_metrics_router(metrics))
    app.include_router(page_router(service))
    app.add_exception_handler(ProblemError, answers.on_problem)
    app.add_exception_handler(CiterecError, answers.on_citerec_error)
    app.add_exception_handler(RequestValidationError, answers.on_invalid)
    app.add_exception_handler(HTTPException, answers.on_http_error)
    settings = service.settings
    app.add_middleware(Guard, settings=settings, answered=metrics.answered)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return app


def _metrics_router(metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response)
    def read_metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return the metrics for Prometheus."""
        return Response(metrics.text(), media_type=metrics.media_type)

    return router
