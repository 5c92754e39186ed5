"""The recommendations of Semantic Scholar's API, for clients that were written for it.

Paths, parameters and answers are those of https://api.semanticscholar.org/api-docs/recommendations; a field that the
corpus does not have is null. `paperId` is the id in the corpus.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from citerec import Paper
from citerec.bibliography.keys import paper_doi
from citerec.serve.guard import ProblemError
from citerec.serve.requests import Papers, RecommendRequest, described, json, recommended
from citerec.serve.service import OpenIndex, Served, answer

MAX_LIMIT = 500
FIELDS = frozenset(
    (
        "paperId externalIds url title abstract venue year referenceCount citationCount publicationTypes journal "
        "authors corpusId influentialCitationCount isOpenAccess openAccessPdf fieldsOfStudy s2FieldsOfStudy "
        "publicationDate citationStyles embedding tldr"
    ).split()
)
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


router = APIRouter(
    prefix="/recommendations/v1", responses=described(400, 401, 404, 422, 429, 503, 504)
)


@router.post("/papers", response_model=ScholarAnswer)
async def papers(
    request: Request,
    service: Served,
    body: ScholarRequest,
    fields: Fields = "title",
    limit: Limit = 100,
    index: Index = None,
) -> Response:
    """Recommend papers for positive examples; negative ones are left out."""
    names = _checked(fields)

    def work(opened: OpenIndex) -> Response:
        ids = _ids(opened, [*body.positivePaperIds, *body.negativePaperIds])
        count = len(body.positivePaperIds)
        wanted = RecommendRequest(cited=ids[:count], exclude=ids[count:], k=limit)
        [found] = recommended(service, opened, wanted).lists
        return _answer(opened, found.papers, names)

    return await answer(request, work, index)


@router.get("/papers/forpaper/{paper_id:path}", response_model=ScholarAnswer)
async def for_paper(
    request: Request,
    service: Served,
    paper_id: str,
    fields: Fields = "title",
    limit: Limit = 100,
    index: Index = None,
) -> Response:
    """Recommend papers for one paper of the corpus, by its title and abstract."""
    names = _checked(fields)

    def work(opened: OpenIndex) -> Response:
        [docid] = _ids(opened, [paper_id])
        paper = opened.default.corpus.paper(docid).paper
        draft: dict[str, Any] = {"id": docid, "title": paper.title, "abstract": paper.abstract}
        draft |= {"year": paper.year} if paper.year else {}
        [found] = recommended(service, opened, RecommendRequest(query=draft, k=limit)).lists
        return _answer(opened, found.papers, names)

    return await answer(request, work, index)


def _checked(fields: str) -> list[str]:
    names = [name for part in fields.split(",") if (name := part.strip())]
    if unknown := [name for name in names if name.partition(".")[0] not in FIELDS]:
        detail = f"Unrecognized or unsupported fields: [{', '.join(unknown)[:200]}]"
        raise ProblemError("invalid-request", detail, status=400)
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


def _ids(opened: OpenIndex, given: Sequence[str]) -> list[str]:
    rows = opened.default.corpus.rows_of(given)
    if missing := [text for text, row in zip(given, rows, strict=True) if row is None]:
        raise ProblemError("not-found", f"Input papers not found: {', '.join(missing)[:500]}")
    return opened.index.papers.ids_at([row for row in rows if row is not None])


def _answer(opened: OpenIndex, papers: Sequence[Paper], fields: Sequence[str]) -> Response:
    corpus, ids = opened.default.corpus, [paper.id for paper in papers]
    counts = zip(corpus.reference_counts(ids), corpus.citation_counts(ids), strict=True)
    found: list[dict[str, Any]] = []
    for paper, (references, cited_by) in zip(papers, counts, strict=True):
        doi = paper_doi(paper)
        journal = {"name": paper.venue, "volume": paper.volume, "pages": paper.pages}
        values = {
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
            "referenceCount": references,
            "citationCount": cited_by,
        }
        found.append({name: values.get(name) for name in ("paperId", *fields)})
    return json({"recommendedPapers": found})
