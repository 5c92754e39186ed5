"""The recommendations of Semantic Scholar's API, for clients that were written for it.

Paths, parameters and answers are those of https://api.semanticscholar.org/api-docs/recommendations; a field that the
corpus does not have is null. `paperId` is the id in the corpus.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from citerec.bibliography.doi import paper_doi
from citerec.serve.answers import finished, json, problems
from citerec.serve.problems import ProblemError
from citerec.serve.schema import Papers, RecommendRequest
from citerec.serve.service import QueryAnswer, Service
from citerec.serve.version import OpenVersion
from citerec.types import Paper

MAX_LIMIT = 500
DEFAULT_FIELDS = "title"
_UNKNOWN = (
    "corpusId influentialCitationCount isOpenAccess openAccessPdf fieldsOfStudy s2FieldsOfStudy publicationDate "
    "citationStyles embedding tldr"
).split()
_KNOWN = (
    "paperId externalIds url title abstract venue year referenceCount citationCount publicationTypes journal authors"
).split()
FIELDS = frozenset([*_KNOWN, *_UNKNOWN])
Fields = Annotated[str, Query(max_length=500, description="Names, separated by commas.")]
Limit = Annotated[int, Query(ge=0, le=MAX_LIMIT)]
Index = Annotated[str | None, Query(description="An index of this server; by default the first.")]


class ScholarRequest(BaseModel):
    """Papers that the recommendations should resemble, and papers that they should not."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"positivePaperIds": ["DOI:10.1109/tvcg.2009.179"]}]}
    )

    positivePaperIds: Annotated[Papers, Field(min_length=1)]  # noqa: N815
    negativePaperIds: list[StrictStr] = Field(default=[], max_length=10_000)  # noqa: N815


class ScholarAnswer(BaseModel):
    """The recommended papers, best first."""

    recommendedPapers: list[dict[str, Any]]  # noqa: N815


def scholar_router(service: Service) -> APIRouter:
    """Return the routes under /recommendations/v1."""
    errors = problems(400, 401, 404, 422, 429, 503, 504)
    router = APIRouter(prefix="/recommendations/v1", responses=errors)
    seconds = service.settings.timeout_seconds

    async def answered(
        request: Request, body: RecommendRequest, limit: int, fields: Sequence[str]
    ) -> Response:
        if not limit:
            return json({"recommendedPapers": []})
        found = await finished(request, service.submit(body), seconds)
        [answer] = found.answers
        call = service.call(lambda version: _papers(version, answer, fields), body.index)
        return json({"recommendedPapers": await finished(request, call, seconds)})

    @router.post("/papers", response_model=ScholarAnswer)
    async def papers(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        body: ScholarRequest,
        fields: Fields = DEFAULT_FIELDS,
        limit: Limit = 100,
        index: Index = None,
    ) -> Response:
        """Recommend papers for positive examples; negative ones are left out."""
        names = _checked(fields)
        given = [*body.positivePaperIds, *body.negativePaperIds]
        call = service.call(lambda version: _ids(version, given), index)
        ids = await finished(request, call, seconds)
        count = len(body.positivePaperIds)
        wanted = RecommendRequest(
            index=index, cited=ids[:count], exclude=ids[count:], k=max(limit, 1)
        )
        return await answered(request, wanted, limit, names)

    @router.get("/papers/forpaper/{paper_id:path}", response_model=ScholarAnswer)
    async def for_paper(  # pyright: ignore[reportUnusedFunction]
        request: Request,
        paper_id: str,
        fields: Fields = DEFAULT_FIELDS,
        limit: Limit = 100,
        index: Index = None,
    ) -> Response:
        """Recommend papers for one paper of the corpus, by its title and abstract."""
        names = _checked(fields)
        call = service.call(lambda version: _draft(version, paper_id), index)
        draft = await finished(request, call, seconds)
        wanted = RecommendRequest(index=index, query=draft, k=max(limit, 1))
        return await answered(request, wanted, limit, names)

    return router


def _checked(fields: str) -> list[str]:
    names = [name for part in fields.split(",") if (name := part.strip())]
    if unknown := [name for name in names if name.partition(".")[0] not in FIELDS]:
        raise ProblemError(
            "invalid-request",
            f"Unrecognized or unsupported fields: [{', '.join(unknown)[:200]}]",
            status_code=400,
        )
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


def _ids(version: OpenVersion, given: Sequence[str]) -> list[str]:
    rows = version.corpus.rows_of(given)
    if missing := [text for text, row in zip(given, rows, strict=True) if row is None]:
        raise ProblemError("not-found", f"Input papers not found: {', '.join(missing)[:500]}")
    return version.index.papers.ids_at([row for row in rows if row is not None])


def _draft(version: OpenVersion, paper_id: str) -> dict[str, Any]:
    [docid] = _ids(version, [paper_id])
    paper = version.index.papers[int(version.index.papers.rows_of([docid])[0])]
    draft = {"id": paper.id, "title": paper.title, "abstract": paper.abstract}
    return draft if paper.year is None else draft | {"year": paper.year}


def _papers(
    version: OpenVersion, answer: QueryAnswer, fields: Sequence[str]
) -> list[dict[str, Any]]:
    corpus, ids = version.corpus, [item.paper.id for item in answer.items]
    counts = zip(corpus.reference_counts(ids), corpus.citation_counts(ids), strict=True)
    papers: list[dict[str, Any]] = []
    for item, (references, cited_by) in zip(answer.items, counts, strict=True):
        values = _fields(item.paper) | {"referenceCount": references, "citationCount": cited_by}
        papers.append({name: values.get(name) for name in ("paperId", *fields)})
    return papers


def _fields(paper: Paper) -> dict[str, Any]:
    doi = paper_doi(paper)
    journal = {"name": paper.venue, "volume": paper.volume, "pages": paper.pages}
    return {
        "paperId": paper.id,
        "externalIds": {"DOI": doi} if doi else {},
        "url": paper.url or (f"https://doi.org/{doi}" if doi else None),
        "title": paper.title,
        "abstract": paper.abstract or None,
        "venue": paper.venue,
        "year": paper.year,
        "publicationTypes": [paper.type] if paper.type else None,
        "journal": {k: v for k, v in journal.items() if v} or None,
        "authors": [{"authorId": None, "name": name} for name in paper.authors],
    }
