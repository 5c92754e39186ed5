"""The routes of the API under /v1, and those of health."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from citerec.api.corpus import SearchFilter
from citerec.serve import lookup
from citerec.serve.answers import finished, json, problems
from citerec.serve.exports import MEDIA_TYPES, accepted_format, bibliography, headers
from citerec.serve.schema import (
    IndexList,
    PaperAnswer,
    RecommendAnswer,
    RecommendRequest,
    SearchAnswer,
)
from citerec.serve.service import Service

MAX_OFFSET = 50_000
Index = Annotated[str | None, Query(description="The name of an index; by default the first.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]
Limit = Annotated[int, Query(ge=1, le=1000)]
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            media_type: {"schema": {"type": "string"}} for media_type in MEDIA_TYPES.values()
        }
    }
}
NAME_OF_AUTHOR = "Words of the name of one author, such as: Knuth"
NAME_OF_VENUE = "Words of the name of the venue, such as: SIGIR"
YearBound = Annotated[int | None, Query(ge=1, le=9999)]


def api_router(service: Service) -> APIRouter:
    """Return the routes under /v1."""
    router = APIRouter(
        prefix="/v1",
        responses=problems(401, 422, 429, 503, 504),
        dependencies=[Depends(_refuse_unknown)],
    )
    seconds = service.settings.timeout_seconds

    @router.post("/recommend", response_model=RecommendAnswer, responses=FILES | problems(400, 404))
    async def recommend(  # pyright: ignore[reportUnusedFunction]
        request: Request, body: RecommendRequest
    ) -> Response:
        """Recommend papers that a draft should cite, best first.

        With the type of BibTeX, RIS or CSL-JSON in `Accept`, the answer is a file for a reference manager.
        """
        answered = await finished(request, service.submit(body), seconds)
        request.state.log |= {
            "index": answered.index,
            "queries": len(answered.answers),
            "batch": answered.batch,
            "model_ms": round(1000 * answered.seconds, 1),
        }
        if chosen := accepted_format(request.headers.get("accept", "")):
            return Response(bibliography(answered.answers, chosen), headers=headers(chosen))
        return json(answered.as_json())

    @router.get("/search", response_model=SearchAnswer, responses=problems(404))
    async def search(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        q: Annotated[str, Query(min_length=1, max_length=1000, examples=["parallel coordinates"])],
        index: Index = None,
        year_min: YearBound = None,
        year_max: YearBound = None,
        author: Annotated[str, Query(max_length=200, description=NAME_OF_AUTHOR)] = "",
        venue: Annotated[str, Query(max_length=200, description=NAME_OF_VENUE)] = "",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Response:
        """Search the titles and abstracts by keywords (BM25), best first; a paper need not have all keywords."""
        passes = SearchFilter(year_min=year_min, year_max=year_max, author=author, venue=venue)
        call = service.call(
            lambda version: lookup.search(version, q, passes, offset=offset, limit=limit), index
        )
        return json(await finished(request, call, seconds))

    @router.get("/papers/{id:path}", response_model=PaperAnswer, responses=problems(404))
    async def paper(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        id: str,
        index: Index = None,
        limit: Limit = 100,
        references_offset: Offset = 0,
        cited_by_offset: Offset = 0,
    ) -> Response:
        """Return a paper by its id or DOI (`DOI:10....`), with its references and citing papers, most cited first."""
        call = service.call(
            lambda version: lookup.paper(
                version,
                id,
                limit=limit,
                references_offset=references_offset,
                cited_by_offset=cited_by_offset,
            ),
            index,
        )
        return json(await finished(request, call, seconds))

    @router.get("/index", response_model=IndexList)
    async def index() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Return what each index holds; the first one is the default."""
        found: list[dict[str, Any]] = []
        indexes = service.indexes
        for name in indexes.names:
            with indexes.use(name) as version:
                found.append(lookup.describe(version))
        return json({"indexes": found})

    return router


def _refuse_unknown(request: Request) -> None:
    """Refuse parameters that the route does not have: a misspelt filter would be left out in silence."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        message = f"expected {', '.join(sorted(known)) or 'no parameter'}"
        raise RequestValidationError(
            [{"type": "unknown", "loc": ("query", name), "msg": message} for name in unknown]
        )


def health_router(service: Service) -> APIRouter:
    """Return the routes by which a supervisor watches the process."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
        """Say that the process runs."""
        return {"status": "ok"}

    @router.get("/readyz", responses=problems(503))
    async def readyz() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Say whether requests are answered."""
        if service.is_ready:
            return JSONResponse({"status": "ready", "indexes": list(service.names)})
        return JSONResponse({"status": "stopping"}, 503)

    return router
