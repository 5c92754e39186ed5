"""The recommendations of Semantic Scholar's API, for clients that were written for it.

Paths, parameters and answers are those of https://api.semanticscholar.org/api-docs/recommendations; a field that the
corpus does not have is null. `paperId` is the id in the corpus.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from citerec import Paper, Recommendations
from citerec.bibliography.keys import paper_doi
from citerec.serve.answers import ProblemError, described, finished, json
from citerec.serve.requests import Papers, RecommendRequest, recommended
from citerec.serve.service import OpenIndex, Service

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
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Index = Annotated[str | None, Query(description="An index of this server; by default the first.")]


class ScholarRequest(BaseModel):
    """Papers that the recommendations should resemble, and papers that they should not."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"positivePaperIds": ["DOI:10.1109/tvcg.2009.179"]}]}
    )

    positivePaperIds: Annotated[Papers, Field(min_length=1)]  # noqa: N815
    negativePaperIds: Papers = []  # noqa: N815


class ScholarAnswer(BaseModel):
    """The recommended papers, best first."""

    recommendedPapers: list[dict[str, Any]]  # noqa: N815


def scholar_router(service: Service) -> APIRouter:
    """Return the routes under /recommendations/v1."""
    errors = described(400, 401, 404, 422, 429, 503, 504)
    router = APIRouter(prefix="/recommendations/v1", responses=errors)
    seconds = service.settings.timeout_seconds

    def answered(opened: OpenIndex, request: RecommendRequest, fields: Sequence[str]) -> Response:
        [found] = recommended(service, opened, request).lists
        return json({"recommendedPapers": _papers(opened, found, fields)})

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

        def work(opened: OpenIndex) -> Response:
            ids = _ids(opened, [*body.positivePaperIds, *body.negativePaperIds])
            count = len(body.positivePaperIds)
            wanted = RecommendRequest(cited=ids[:count], exclude=ids[count:], k=limit)
            return answered(opened, wanted, names)

        return await finished(request, service.recommend(work, index), seconds)

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

        def work(opened: OpenIndex) -> Response:
            [docid] = _ids(opened, [paper_id])
            paper = opened.default.corpus.paper(docid).paper
            named = {name: getattr(paper, name) for name in ("id", "title", "abstract", "year")}
            draft = {name: value for name, value in named.items() if value is not None}
            return answered(opened, RecommendRequest(query=draft, k=limit), names)

        return await finished(request, service.recommend(work, index), seconds)

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


def _ids(opened: OpenIndex, given: Sequence[str]) -> list[str]:
    rows = opened.default.corpus.rows_of(given)
    if missing := [text for text, row in zip(given, rows, strict=True) if row is None]:
        raise ProblemError("not-found", f"Input papers not found: {', '.join(missing)[:500]}")
    return opened.index.papers.ids_at([row for row in rows if row is not None])


def _papers(
    opened: OpenIndex, found: Recommendations, fields: Sequence[str]
) -> list[dict[str, Any]]:
    corpus, ids = opened.default.corpus, found.ids
    counts = zip(corpus.reference_counts(ids), corpus.citation_counts(ids), strict=True)
    papers: list[dict[str, Any]] = []
    for paper, (references, cited_by) in zip(found.papers, counts, strict=True):
        values = _fields(paper) | {"referenceCount": references, "citationCount": cited_by}
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
